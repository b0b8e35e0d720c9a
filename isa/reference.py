"""The golden reference of a layer: NumPy alone, from its description and its ONNX reference.

It shares no code with compiler, interpreter or emulator. spec/machine.md states the same rules in
words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cim.isa.reference_turns import chain_parts
from cim.isa.reference_windows import check_vertical_groups, window_shares, windows_of


class Described(Protocol):
    """What the reference reads of a layer's description (`LayerDescription` of the cfg has it).

    `kernel` is KY, KX, C, K; `pads` are top, left, bottom, right.
    """

    @property
    def layout(self) -> str:
        """NCHW or ROWS."""
        ...

    @property
    def output_shape(self) -> Sequence[int]:
        """The model's own."""
        ...

    @property
    def kernel(self) -> Sequence[int]:
        """KY, KX, C, K."""
        ...

    @property
    def groups(self) -> int:
        """Of channels; C of `kernel` are those of one group."""
        ...

    @property
    def strides(self) -> Sequence[int]:
        """Down, right."""
        ...

    @property
    def dilations(self) -> Sequence[int]:
        """Down, right."""
        ...

    @property
    def pads(self) -> Sequence[int]:
        """Top, left, bottom, right."""
        ...

    @property
    def activation(self) -> str:
        """One of none, relu, leaky_relu, clip, hard_swish."""
        ...

    @property
    def alpha(self) -> float:
        """The slope of a leaky_relu whose reference has no `slope`, one a channel."""
        ...

    @property
    def scheme(self) -> str:
        """One of sequential, linear, cyclic, ring, central."""
        ...

    @property
    def vertical_groups(self) -> int:
        """P_V."""
        ...

    @property
    def horizontal_groups(self) -> int:
        """P_H."""
        ...

    @property
    def turn_ends(self) -> Sequence[int]:
        """For each turn the core P_V * hg + vg before which it ends; empty where all cores work at a time."""
        ...

    @property
    def mapping(self) -> str:
        """One of im2col, sdk, vw-sdk."""
        ...

    @property
    def window_height(self) -> int:
        """Output vectors that one MVM yields, down."""
        ...

    @property
    def window_width(self) -> int:
        """The same, right."""
        ...


OUTPUT_TYPES = {
    name: np.dtype(kind)
    for name, kind in (("i8", "i1"), ("u8", "u1"), ("i32", "i4"), ("f32", "f4"))
}


def reference_output(
    layer: Described, mode: str, ofm: str, model: bytes, x: NDArray[Any], crossbar: tuple[int, int]
) -> NDArray[Any]:
    """What the layer gives for input `x` (the model's shape, layout and type), likewise.

    A convolution takes any number of images.

    `mode` is f32, i8 or i8n, `ofm` the OFM's element type, `model` the bytes of the layer's ONNX
    reference, `crossbar` the columns M and rows N of a crossbar, which cut the kernel matrix. i8 and i8n
    are exact to the bit; f32 accumulates in float64. Raises `ValueError` where kernel matrix and
    P_V, or cores and turns, do not go together.
    """
    numbers = _initializers(model)
    rows = int(np.prod(layer.kernel[:3], dtype=np.int64))
    check_vertical_groups(layer, crossbar[1])
    weights = numbers["w"]
    if layer.layout == "ROWS":
        return _vectors(layer, mode, ofm, numbers, weights, x, crossbar).reshape(layer.output_shape)
    # [K, C, KX] and [N, C, W] of a 1-D convolution have a height of 1.
    weights = weights.reshape(*weights.shape[:2], *layer.kernel[:2])
    matrix = weights.transpose(2, 3, 1, 0).reshape(rows, layer.kernel[3])
    channels = layer.kernel[2] * layer.groups
    outputs = [
        _vectors(layer, mode, ofm, numbers, matrix, image, crossbar).T
        for image in x.reshape(len(x), channels, -1, x.shape[-1])
    ]
    return np.ascontiguousarray(np.stack(outputs)).reshape(len(x), *layer.output_shape[1:])


def _vectors(
    layer: Described, mode: str, ofm: str, numbers: dict[str, NDArray[Any]], matrix: NDArray[Any],
    x: NDArray[Any], crossbar: tuple[int, int],
) -> NDArray[Any]:  # fmt: skip
    """All output vectors [O][K] of one image [C][H][W], or of all rows."""
    if mode == "f32":
        y = _float(layer, numbers, matrix, x)
    else:
        patches = _patches(layer, x.astype(np.int64) - int(numbers["x_zp"]))
        cells = matrix.astype(np.int64) - numbers["w_zp"].astype(np.int64)
        if mode == "i8":
            y = _wide(layer, ofm, numbers, patches, cells)
        else:
            y = _narrow(layer, ofm, numbers, patches, cells, crossbar)
    return y.astype(OUTPUT_TYPES[ofm])


def _initializers(model: bytes) -> dict[str, NDArray[Any]]:
    import onnx
    from onnx import numpy_helper

    graph = onnx.load_model_from_string(model).graph
    return {tensor.name: np.asarray(numpy_helper.to_array(tensor)) for tensor in graph.initializer}


def _patches(layer: Described, x: NDArray[Any]) -> NDArray[np.float64]:
    """im2col: one row per output vector, columns in the order (ky, kx, c); padding is 0.

    Integers below 2**53 are exact as float64, and so are their products and sums here: at most
    2**31 rows of 2**16 stay far below it.
    """
    if layer.layout == "ROWS":
        return x.reshape(-1, x.shape[-1]).astype(np.float64)
    ky, kx, _, _ = layer.kernel
    top, left, bottom, right = layer.pads
    down, across = layer.strides
    image = np.pad(x.transpose(1, 2, 0), ((top, bottom), (left, right), (0, 0)))
    width = layer.output_shape[-1]
    height = layer.output_shape[2] if len(layer.output_shape) == 4 else 1
    parts = []
    for i in range(ky):
        for j in range(kx):
            first, left_most = i * layer.dilations[0], j * layer.dilations[1]
            part = image[
                first : first + (height - 1) * down + 1 : down,
                left_most : left_most + (width - 1) * across + 1 : across,
            ]
            parts.append(part.reshape(height * width, -1))
    return np.concatenate(parts, axis=1).astype(np.float64)


def _product(
    layer: Described,
    patches: NDArray[np.float64],
    matrix: NDArray[Any],
    piece: slice | NDArray[np.int64],
) -> NDArray[np.float64]:
    """Per output vector and channel, the products of some rows of the channel's group, summed."""
    outputs, groups = len(patches), layer.groups
    columns = matrix.shape[1] // groups
    apart = patches.reshape(outputs, -1, groups, layer.kernel[2])
    parts = []
    for group in range(groups):
        own = apart[:, :, group].reshape(outputs, -1)[:, piece]
        block = matrix[piece, group * columns : (group + 1) * columns]
        parts.append(own @ block.astype(np.float64))
    return np.concatenate(parts, axis=1)


def _float(
    layer: Described, numbers: dict[str, NDArray[Any]], matrix: NDArray[Any], x: NDArray[Any]
) -> NDArray[Any]:
    y = _product(layer, _patches(layer, x), matrix, slice(None))
    if "b" in numbers:
        y += numbers["b"].astype(np.float64)
    if layer.activation == "relu":
        return np.maximum(y, 0)
    if layer.activation == "leaky_relu":
        return np.where(y >= 0, y, y * _slopes(layer, numbers).astype(np.float64))
    if layer.activation == "hard_swish":
        return np.asarray(y * np.clip(y / 6 + 0.5, 0, 1))
    return np.minimum(np.maximum(y, numbers.get("low", -np.inf)), numbers.get("high", np.inf))


def _wide(
    layer: Described,
    ofm: str,
    numbers: dict[str, NDArray[Any]],
    patches: NDArray[np.float64],
    cells: NDArray[np.int64],
) -> NDArray[Any]:
    """Exact sums, one requantization."""
    sums = _product(layer, patches, cells, slice(None)).astype(np.int64)
    if "b" in numbers:
        sums += numbers["b"].astype(np.int64)
    if ofm == "i32":
        return sums
    factor = (numbers["x_scale"] * numbers["w_scale"]) / numbers["y_scale"]
    return _requantize(layer, ofm, numbers, sums, factor)


def _narrow(
    layer: Described,
    ofm: str,
    numbers: dict[str, NDArray[Any]],
    patches: NDArray[np.float64],
    cells: NDArray[np.int64],
    crossbar: tuple[int, int],
) -> NDArray[Any]:
    """Every vertical group's result as int8, added with saturation in the chain's order."""
    adc, factor = _narrow_factors(layer, ofm, numbers)

    def digitize(values: NDArray[Any]) -> NDArray[np.int64]:
        return np.clip(_round(values.astype(np.float32) * adc), -128, 127)

    p_v = layer.vertical_groups
    digitized = np.zeros((p_v, len(patches), layer.kernel[3]), dtype=np.int64)
    for share in window_shares(layer, len(patches), crossbar[1]):
        own = patches[share.outputs]
        for v in range(p_v):
            products = _product(layer, own, cells, np.flatnonzero(share.groups == v))
            digitized[v, share.outputs] = digitize(products.astype(np.int64))
    windows, count = windows_of(layer, len(patches))
    outputs = np.arange(len(patches))
    sums = np.zeros(digitized.shape[1:], dtype=np.int64)
    if "b" in numbers:
        sums = sums + digitize(numbers["b"])
    for channels, parts in chain_parts(layer, crossbar[0]):
        for first, end in parts:
            for owners in _chain(layer.scheme, count, end - first):
                added = digitized[first + owners[windows], outputs][:, channels]
                sums[:, channels] = np.clip(sums[:, channels] + added, -128, 127)
    return _requantize(layer, ofm, numbers, sums, factor)


def _narrow_factors(
    layer: Described, ofm: str, numbers: dict[str, NDArray[Any]]
) -> tuple[NDArray[np.float32], np.float32]:
    """What digitizes sums (one, or one a channel), and what makes outputs of the digitized ones.

    Every operation rounds to float32.
    """
    limits = np.iinfo(OUTPUT_TYPES[ofm])
    zero_point = int(numbers["y_zp"])
    reach = np.float32(max(limits.max - zero_point, zero_point - limits.min))
    if layer.activation == "leaky_relu":
        slopes = _slopes(layer, numbers)
        least = min((slope for slope in slopes if 0 < slope < 1), default=np.float32(1))
        reach = np.float32(reach / least)
    y_scale = np.float32(numbers["y_scale"])
    step = np.float32(np.float32(y_scale * reach) / np.float32(127))  # p_scale
    adc = _float32(_float32(numbers["x_scale"] * numbers["w_scale"]) / step)
    return adc, np.float32(step / y_scale)


def _chain(scheme: str, outputs: int, p_v: int) -> list[NDArray[np.int64]]:
    """For each position in the chain the owner of every output vector, or of every window of them."""
    o = np.arange(outputs)
    if scheme in ("sequential", "linear", "central"):
        return [np.full(outputs, v) for v in range(p_v)]
    if scheme == "cyclic":
        first = o % p_v
    else:  # ring: the core with the largest number that starts at or before o
        starts = np.array([v * outputs // p_v for v in range(p_v)])
        first = np.searchsorted(starts, o, side="right") - 1
    return [(first - position) % p_v for position in range(p_v)]


def _requantize(
    layer: Described,
    ofm: str,
    numbers: dict[str, NDArray[Any]],
    sums: NDArray[np.int64],
    factor: Any,
) -> NDArray[np.int64]:
    """Scale, round half to even, add the zero point, saturate, clip."""
    limits = np.iinfo(OUTPUT_TYPES[ofm])
    zero_point = int(numbers["y_zp"])
    below = factor
    if layer.activation == "relu":
        below = np.float32(0)
    elif layer.activation == "leaky_relu":
        below = _float32(factor * _slopes(layer, numbers))
    scaled = sums.astype(np.float32) * np.where(sums >= 0, factor, below).astype(np.float32)
    y = np.clip(_round(scaled) + zero_point, limits.min, limits.max)
    for name, apply in (("low", np.maximum), ("high", np.minimum)):
        if layer.activation == "clip" and name in numbers:
            with np.errstate(over="ignore"):
                steps = _round(_float32(numbers[name]) / np.float32(numbers["y_scale"]))
            y = apply(y, np.clip(steps + zero_point, limits.min, limits.max))
    return y


def _slopes(layer: Described, numbers: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
    """The slopes of a leaky_relu: one, or one a channel."""
    return _float32(numbers.get("slope", layer.alpha)).reshape(-1)


def _float32(values: Any) -> NDArray[np.float32]:
    return np.asarray(values, dtype=np.float32)


def _round(values: Any) -> NDArray[np.int64]:
    """To the nearest integer, ties to even; what leaves int32 stays at its end."""
    wide = np.rint(_float32(values)).astype(np.float64)
    return np.clip(wide, -(2.0**31), 2.0**31 - 1).astype(np.int64)
