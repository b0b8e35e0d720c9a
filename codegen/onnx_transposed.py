"""ConvTranspose as a convolution: over the input with zeros between its pixels, with flipped kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_reasons import NotMappedError, shown
from cim.codegen.onnx_rewrite import Replacement


@dataclass(frozen=True)
class Axis:
    """One spatial axis of a transposed convolution: input size, stride, dilation, kernel, output size.

    Input element i adds its product with kernel element k to output i * stride + k * dilation - cut.
    """

    size: int
    stride: int
    dilation: int
    kernel: int
    cut: int
    outputs: int

    @property
    def before(self) -> int:
        """Zeros before the first pixel, so that a convolution of stride 1 gives the outputs; may be < 0."""
        return (self.kernel - 1) * self.dilation - self.cut

    @property
    def after(self) -> int:
        """Zeros after the last pixel, likewise."""
        return self.outputs - 1 + self.cut - (self.size - 1) * self.stride

    @property
    def picks(self) -> NDArray[np.int64]:
        """For each place of the spread and padded input its pixel; `size` stands for a zero."""
        places = np.arange(-self.before, self.outputs + self.cut)
        pixels, between = np.divmod(places, self.stride)
        inside = (between == 0) & (pixels >= 0) & (pixels < self.size)
        return np.where(inside, pixels, self.size)


def axes_of(
    node: Node, x_shape: tuple[int, ...], w_shape: tuple[int, ...]
) -> list[Axis]:  # fmt: skip
    """The axes of a ConvTranspose. Raises `NotMappedError` for attributes that do not fit."""
    rank = len(x_shape) - 2
    kernel = list(w_shape[2:])
    strides = _numbers(node, "strides", rank, 1, 1)
    dilations = _numbers(node, "dilations", rank, 1, 1)
    extra = _numbers(node, "output_padding", rank, 0, 0)
    pads = _numbers(node, "pads", 2 * rank, 0, 0)
    mode = bytes(node.attribute("auto_pad", b"NOTSET")).decode(errors="replace") or "NOTSET"
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise NotMappedError("auto_pad", mode, "NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    stated = node.attribute("output_shape")
    wanted = list(stated)[-rank:] if stated else None
    if wanted is None and mode.startswith("SAME"):
        wanted = [size * stride for size, stride in zip(x_shape[2:], strides, strict=True)]
    made = []
    for i, size in enumerate(x_shape[2:]):
        whole = strides[i] * (size - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1
        if wanted is not None:
            surplus = max(whole - wanted[i], 0)
            cut = surplus // 2 if mode == "SAME_UPPER" else surplus - surplus // 2
            outputs = wanted[i]
        else:
            cut, end = (0, 0) if mode == "VALID" else (pads[i], pads[rank + i])
            outputs = whole - cut - end
        if outputs < 1:
            raise NotMappedError("the output's size", outputs, ">= 1")
        made.append(Axis(size, strides[i], dilations[i], kernel[i], cut, outputs))
    return made


def _numbers(node: Node, name: str, count: int, missing: int, least: int) -> list[int]:
    values = list(node.attribute(name) or [missing] * count)
    if len(values) != count or min(values) < least:
        raise NotMappedError(name, values, f"{count} numbers >= {least}")
    return values


def conv_transpose(graph: Graph, node: Node) -> Replacement:
    """The convolution that computes a ConvTranspose with constant weights, float or between Q and DQ.

    Raises `NotMappedError` for what the cores cannot do.
    """
    source = graph.dequantize(node.input(1))
    stored = node.input(1) if source is None else source.input(0)
    weights = graph.constant(stored)
    x_shape = graph.type(node.input(0)).shape
    if weights is None:
        raise NotMappedError(f"weights '{stored}'", "computed at run time", "constant")
    if x_shape is None:
        raise NotMappedError(f"the shape of input '{node.input(0)}'", "not known", "known at compile time")  # fmt: skip
    if len(x_shape) not in (3, 4) or weights.ndim != len(x_shape):
        raise NotMappedError("the input's rank", len(x_shape), "3 or 4 (a 1-D or 2-D convolution)")
    groups = node.attribute("group", 1)
    if groups < 1 or x_shape[1] % groups or weights.shape[0] != x_shape[1] or 0 in (*x_shape, *weights.shape):  # fmt: skip
        raise NotMappedError("the weights' shape", shown(weights.shape), f"of {x_shape[1]} channels in {groups} groups")  # fmt: skip
    axes = axes_of(node, x_shape, weights.shape)
    made = Replacement(graph, node)
    flipped = made.constant(_as_convolution(weights, groups), "weights")
    if source is not None:
        flipped = _dequantized(made, source, flipped, weights, groups)
    attributes: dict[str, Any] = {"dilations": [axis.dilation for axis in axes], "group": groups}
    x = node.input(0)
    if all(a.stride == 1 and a.before >= 0 and a.after >= 0 for a in axes):
        attributes["pads"] = [*(a.before for a in axes), *(a.after for a in axes)]
    else:
        x = _spread(made, x, x_shape, axes)
    inputs = [x, flipped, *([node.input(2)] if node.input(2) else [])]
    y = made.add("Conv", inputs, node.name, **attributes)
    made.end(y, node.outputs[0])
    return made


def _as_convolution(weights: NDArray[Any], groups: int) -> NDArray[Any]:
    """[C, K / groups, ...] of a transposed convolution as [K, C / groups, ...], kernels flipped."""
    channels, outputs, *kernel = weights.shape
    apart = weights.reshape(groups, channels // groups, outputs, *kernel).swapaxes(1, 2)
    whole = apart.reshape(groups * outputs, channels // groups, *kernel)
    return np.flip(whole, axis=tuple(range(2, whole.ndim)))


def _dequantized(
    made: Replacement, source: Node, flipped: str, weights: NDArray[Any], groups: int
) -> str:
    """The DequantizeLinear of the weights, numbers per output channel once for each group."""
    graph = made.graph
    inputs = [flipped]
    for name in source.proto.input[1:]:
        array = graph.constant(name)
        if array is None:
            raise NotMappedError(f"'{name}'", "computed at run time", "constant")
        if array.size > 1:
            axis = source.attribute("axis", 1)
            if axis not in (1, 1 - weights.ndim) or source.attribute("block_size", 0):
                raise NotMappedError("the axis of w_scale", axis, "1 (the output channels)")
            array = np.tile(array, groups)
        inputs.append(made.constant(array, "numbers"))
    return made.add("DequantizeLinear", inputs, axis=0)


def _spread(made: Replacement, x: str, shape: tuple[int, ...], axes: list[Axis]) -> str:
    """The input with its zeros; before its DequantizeLinear, where it has one, whose zero point they are."""
    graph = made.graph
    source = graph.dequantize(x)
    zero: Any = np.float32(0)
    if source is not None:
        x = source.input(0)
        element = graph.type(x).dtype
        zero = np.zeros((), element)
        if source.input(2):
            stored = graph.constant(source.input(2))
            if stored is None or stored.size != 1:
                raise NotMappedError(f"x_zero_point '{source.input(2)}'", "not one constant", "one constant")  # fmt: skip
            zero = stored.reshape(())
    elif graph.type(x).dtype != np.float32:
        raise NotMappedError("the type of the input", graph.type(x).dtype or "not known", "float32")
    sizes = list(shape)
    for number, axis in enumerate(axes, start=2):
        sizes[number] = 1
        zeros = made.constant(np.full(sizes, zero), "zeros")
        longer = made.add("Concat", [x, zeros], axis=number)
        x = made.add("Gather", [longer, made.constant(axis.picks, "picks")], axis=number)
        sizes[number] = len(axis.picks)
    if source is not None:
        x = made.add("DequantizeLinear", [x, *source.proto.input[1:]])
    return x
