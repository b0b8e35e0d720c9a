"""How a matrix operator moves over its input: layout, strides, dilations, pads, and its MACs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_reasons import NotMappedError, shown

CONVOLUTIONS = ("Conv", "QLinearConv", "ConvInteger")
WEIGHT_INPUT = {
    "Conv": 1,
    "ConvInteger": 1,
    "ConvTranspose": 1,
    "QLinearConv": 3,
    "Gemm": 1,
    "MatMul": 1,
    "MatMulInteger": 1,
    "QLinearMatMul": 3,
    "com.microsoft.QGemm": 3,
}


@dataclass(frozen=True)
class Geometry:
    """How an operator moves over its input.

    `axis` is the output-channel axis of the weights as the model stores them, `order` the axes of
    that array in the order (KY, KX, C, K), without KY and KX for a matrix.
    """

    layout: str
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]
    axis: int
    order: tuple[int, ...]
    groups: int = 1

    def hwio(self, weights: NDArray[Any]) -> NDArray[Any]:
        """The model's weight array as [KY, KX, C, K]."""
        turned = np.ascontiguousarray(weights.transpose(self.order))
        return turned.reshape((1,) * (4 - turned.ndim) + turned.shape)


def geometry_of(graph: Graph, node: Node, x: str, weights: NDArray[Any]) -> Geometry:
    """The geometry of a matrix operator with input value `x`.

    Raises `NotMappedError` for what the cores cannot do.
    """
    shape = graph.type(x).shape
    if shape is None:
        raise NotMappedError(f"the shape of input '{x}'", "not known", "known at compile time")
    if graph.is_constant(x):
        raise NotMappedError(f"input '{x}'", "constant", "computed at run time")
    for role, sizes in (("input", shape), ("weights", weights.shape)):
        if 0 in sizes:
            raise NotMappedError(
                f"the shape of the {role}", shown(sizes), "without empty dimensions"
            )
    found = _convolution if node.operator in CONVOLUTIONS else _product
    geometry = found(node, shape, weights)
    inferred = graph.type(node.outputs[0]).shape
    if inferred is not None and inferred != geometry.output_shape:
        raise NotMappedError("the output's shape", shown(inferred), shown(geometry.output_shape))
    return geometry


def _convolution(node: Node, shape: tuple[int, ...], weights: NDArray[Any]) -> Geometry:
    if len(shape) not in (3, 4) or weights.ndim != len(shape):
        raise NotMappedError("the input's rank", len(shape), "3 or 4 (a 1-D or 2-D convolution)")
    flat = len(shape) == 3  # a 1-D convolution is one over an image of height 1
    groups = node.attribute("group", 1)
    outputs, channels, *kernel = weights.shape
    if groups < 1 or shape[1] % groups or outputs % groups:
        raise NotMappedError("group", groups, f"a divisor of {shape[1]} and {outputs} channels")
    if channels != shape[1] // groups:
        raise NotMappedError("the weights' number of input channels", channels, shape[1] // groups)
    stated = node.attribute("kernel_shape")
    if stated is not None and list(stated) != kernel:
        raise NotMappedError("kernel_shape", list(stated), kernel)
    strides = _pair(node, "strides", flat)
    dilations = _pair(node, "dilations", flat)
    size = (1, shape[2]) if flat else (shape[2], shape[3])
    kernel = [1, *kernel] if flat else kernel
    dilated = (dilations[0] * (kernel[0] - 1) + 1, dilations[1] * (kernel[1] - 1) + 1)
    pads = _pads(node, size, dilated, strides, flat)
    height = (size[0] + pads[0] + pads[2] - dilated[0]) // strides[0] + 1
    width = (size[1] + pads[1] + pads[3] - dilated[1]) // strides[1] + 1
    if height < 1 or width < 1:
        raise NotMappedError("the output's size", f"{height}x{width}", ">= 1x1")
    output = (shape[0], outputs, width) if flat else (shape[0], outputs, height, width)
    order = (2, 1, 0) if flat else (2, 3, 1, 0)
    return Geometry("NCHW", shape, output, strides, dilations, pads, 0, order, groups)


def _product(node: Node, shape: tuple[int, ...], weights: NDArray[Any]) -> Geometry:
    if weights.ndim != 2:
        raise NotMappedError("the rank of the weights B", weights.ndim, "2")
    if len(shape) < 2:
        raise NotMappedError("the rank of input A", len(shape), ">= 2")
    if node.attribute("transA", 0):
        raise NotMappedError("transA", node.attribute("transA"), "0")
    order = (1, 0) if node.attribute("transB", 0) else (0, 1)
    channels, outputs = weights.shape[order[0]], weights.shape[order[1]]
    if channels != shape[-1]:
        raise NotMappedError("the weights' number of rows", channels, shape[-1])
    output = (*shape[:-1], outputs)
    return Geometry("ROWS", shape, output, (1, 1), (1, 1), (0, 0, 0, 0), order[1], order)


def _pair(node: Node, name: str, flat: bool) -> tuple[int, int]:
    """Down and right; a 1-D convolution has the second alone."""
    count = 1 if flat else 2
    values = list(node.attribute(name) or [1] * count)
    if len(values) != count or min(values) < 1:
        raise NotMappedError(name, values, f"{'one number' if flat else 'two numbers'} >= 1")
    return (1, values[0]) if flat else (values[0], values[1])


def _pads(
    node: Node,
    size: tuple[int, int],
    dilated: tuple[int, int],
    strides: tuple[int, int],
    flat: bool,
) -> tuple[int, int, int, int]:
    mode = bytes(node.attribute("auto_pad", b"NOTSET")).decode(errors="replace") or "NOTSET"
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        upper = mode == "SAME_UPPER"
        top, bottom = same_padding(size[0], dilated[0], strides[0], upper)
        left, right = same_padding(size[1], dilated[1], strides[1], upper)
        return top, left, bottom, right
    if mode == "VALID":
        return 0, 0, 0, 0
    if mode != "NOTSET":
        raise NotMappedError("auto_pad", mode, "NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    count = 2 if flat else 4
    values = list(node.attribute("pads") or [0] * count)
    if len(values) != count or min(values) < 0:
        raise NotMappedError("pads", values, f"{'two' if flat else 'four'} numbers >= 0")
    return (0, values[0], 0, values[1]) if flat else (values[0], values[1], values[2], values[3])


def same_padding(size: int, dilated_kernel: int, stride: int, upper: bool) -> tuple[int, int]:
    """Padding before and after so that ceil(size / stride) outputs come out.

    An odd total has its extra element after the image for SAME_UPPER, before it for SAME_LOWER.
    With dilation the kernel counts at its dilated extent.
    """
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + dilated_kernel - size, 0)
    less, more = total // 2, total - total // 2
    return (less, more) if upper else (more, less)


def multiply_accumulates(graph: Graph, node: Node) -> int:
    """The MACs of a matrix operator from its shapes; 0 for others, and where shapes are unknown."""
    operator = node.operator
    if operator not in WEIGHT_INPUT:
        return 0
    weights = graph.type(node.input(WEIGHT_INPUT[operator])).shape
    x = graph.type(node.input(0)).shape
    y = graph.type(node.outputs[0]).shape
    if not weights or not x or y is None:  # not known, or of rank 0
        return 0
    if operator == "ConvTranspose":  # every input element meets its group's whole kernel
        return int(np.prod(x, dtype=np.int64) * np.prod(weights[1:], dtype=np.int64))
    if operator in CONVOLUTIONS:
        depth = int(np.prod(weights[1:], dtype=np.int64))
    elif operator.endswith("Gemm") and node.attribute("transA", 0):
        depth = x[0]
    else:
        depth = x[-1]
    return int(np.prod(y, dtype=np.int64)) * depth
