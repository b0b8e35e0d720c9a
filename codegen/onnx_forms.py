"""Which operators are rewritten, and by what, before layers are looked for."""

from __future__ import annotations

from cim.codegen.onnx_custom import QGEMM, qgemm
from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_pad import unpadded
from cim.codegen.onnx_products import gemm, product
from cim.codegen.onnx_reasons import NotMappedError
from cim.codegen.onnx_rewrite import Replacement, Rewriter
from cim.codegen.onnx_transposed import conv_transpose


def _transposed(graph: Graph, node: Node) -> Replacement | None:
    try:
        return conv_transpose(graph, node)
    except NotMappedError:
        return None  # the importer asks again, for the reason


REWRITERS: dict[str, Rewriter] = {
    "Conv": unpadded,
    "ConvInteger": unpadded,
    "ConvTranspose": _transposed,
    "Gemm": gemm,
    "MatMul": product,
    "MatMulInteger": product,
    "QLinearConv": unpadded,
    "QLinearMatMul": product,
    QGEMM: qgemm,
}
