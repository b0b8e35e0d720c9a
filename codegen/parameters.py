"""The parameter vectors that setup programs into the cores, and the bias region, from a layer.

All arithmetic is float32, in the order written here; spec/machine.md has the same formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.layer import Activation, Layer, Quantization
from cim.isa.numerics import convert, f32, rint

INT8 = np.dtype(np.int8)


@dataclass(frozen=True)
class Requantization:
    """Parameters with one entry an output channel, float32 [K], and what belongs to them.

    `bias` is as the bias region stores it: float32, int32, or int8 (digitized) [K]; None if there
    is nothing to add. `clip` are the bounds that `gpeu.max` and `gpeu.min` apply to the OFM:
    integers, floats in mode f32; None where the bound does nothing.
    """

    adc_mul: NDArray[np.float32]
    mul_pos: NDArray[np.float32]
    mul_neg: NDArray[np.float32]
    y_zp: int
    bias: NDArray[Any] | None
    clip: tuple[int | float | None, int | float | None]


def requantization(layer: Layer, mode: str) -> Requantization:
    """The parameters of a layer in mode f32, i8 or i8n.

    f32 leaves the sums as they are, but for the slope of a LeakyRelu. In i8 the last owner scales
    by m = x_scale * w_scale / y_scale. In i8n every core scales by adc_mul = x_scale * w_scale /
    p_scale, and the last owner by p_scale / y_scale.
    """
    q = layer.quantization
    channels = layer.weights.shape[3]
    one = np.ones(channels, dtype=np.float32)
    if q is None or q.y_scale is None:
        slope = layer.activation.slope if layer.activation.kind == "leaky_relu" else np.float32(1)
        clip = _float_bounds(layer.activation) if q is None else (None, None)
        return Requantization(one, one, one * slope, 0, layer.bias, clip)
    product = np.broadcast_to(q.x_scale * q.w_scale, (channels,)).astype(np.float32)
    y_scale = np.float32(q.y_scale)
    adc_mul, mul_pos, bias = one, product / y_scale, layer.bias
    if mode == "i8n":
        p_scale = partial_sum_scale(layer, q)
        adc_mul = product / p_scale
        mul_pos = one * (p_scale / y_scale)
        if bias is not None:
            digitized = convert(rint(f32(bias) * adc_mul), INT8)
            bias = digitized if np.any(digitized) else None
    return Requantization(
        adc_mul,
        mul_pos,
        _below_zero(mul_pos, layer.activation),
        q.y_zp,
        bias,
        _integer_bounds(layer, q),
    )


def partial_sum_scale(layer: Layer, q: Quantization) -> np.float32:
    """p_scale of mode i8n: what one step of an int8 partial sum stands for.

    p_scale = y_scale * R / 127, R the farthest that the OFM's type reaches from its zero point,
    divided by the least slope between 0 and 1 of a LeakyRelu or PRelu, whose negative sums are wider than
    its outputs.
    """
    limits = np.iinfo(layer.output_dtype)
    reach = np.float32(max(int(limits.max) - q.y_zp, q.y_zp - int(limits.min)))
    slopes = layer.activation.slope.reshape(-1)
    if layer.activation.kind == "leaky_relu" and np.any((slopes > 0) & (slopes < 1)):
        reach = reach / slopes[(slopes > 0) & (slopes < 1)].min()
    assert q.y_scale is not None
    return np.float32(np.float32(q.y_scale) * reach / np.float32(127))


def input_offset(layer: Layer, cells: NDArray[Any]) -> NDArray[np.int32]:
    """`offset` of the core that holds these `cells` [rows][columns], int32 [columns].

    -x_zp times the sum of each column's cells: it takes the IFM's zero point out of the core's
    sums.
    """
    zero_point = layer.quantization.x_zp if layer.quantization is not None else 0
    offset: NDArray[np.int32] = (-zero_point * cells.astype(np.int64).sum(axis=0)).astype(np.int32)
    return offset


def _below_zero(factor: NDArray[np.float32], activation: Activation) -> NDArray[np.float32]:
    """`mul_neg`: the factor of negative sums."""
    if activation.kind == "relu":
        return np.zeros_like(factor)
    if activation.kind == "leaky_relu":
        return factor * activation.slope
    return factor


def _float_bounds(activation: Activation) -> tuple[float | None, float | None]:
    low, high = activation.low, activation.high
    return (low if np.isfinite(low) else None, high if np.isfinite(high) else None)


def _integer_bounds(layer: Layer, q: Quantization) -> tuple[int | None, int | None]:
    """The bounds of a Clip as the OFM's integers; None at the limits of its type."""
    limits = np.iinfo(layer.output_dtype)

    def quantized(bound: float, limit: int) -> int | None:
        if not np.isfinite(bound):
            return None
        with np.errstate(over="ignore"):
            steps = rint(np.asarray(np.float32(bound) / np.float32(q.y_scale)))
        value = int(convert(steps + q.y_zp, layer.output_dtype))
        return None if value == limit else value

    activation = layer.activation
    return quantized(activation.low, int(limits.min)), quantized(activation.high, int(limits.max))
