"""Which operators are rewritten, and by what, before layers are looked for."""

from __future__ import annotations

from cim.codegen.onnx_custom import QGEMM, qgemm
from cim.codegen.onnx_gemm import gemm
from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_pad import unpadded
from cim.codegen.onnx_products import product
from cim.codegen.onnx_reasons import NotMappedError
from cim.codegen.onnx_rewrite import Replacement, Rewriter
from cim.codegen.onnx_squeeze import squeeze_later, transpose_later
from cim.codegen.onnx_transposed import conv_transpose
from cim.codegen.onnx_unquantized import unquantized


def _transposed(graph: Graph, node: Node) -> Replacement | None:
    try:
        return conv_transpose(graph, node)
    except NotMappedError:
        return None  # the importer asks again, for the reason


def _first(*rewriters: Rewriter) -> Rewriter:
    """What the first of several makes that makes anything."""

    def rewrite(graph: Graph, node: Node) -> Replacement | None:
        made = (rewriter(graph, node) for rewriter in rewriters)
        return next((one for one in made if one is not None), None)

    return rewrite


# Done before the others: which layer a convolution becomes depends on what follows it.
MOVES: dict[str, Rewriter] = {"Squeeze": squeeze_later, "Transpose": transpose_later}

# Every matrix operator is here.
REWRITERS: dict[str, Rewriter] = {
    "Conv": _first(unpadded, unquantized),
    "ConvInteger": unpadded,
    "ConvTranspose": _transposed,
    "Gemm": _first(gemm, unquantized),
    "MatMul": _first(product, unquantized),
    "MatMulInteger": product,
    "QLinearConv": unpadded,
    "QLinearMatMul": product,
    QGEMM: qgemm,
}
