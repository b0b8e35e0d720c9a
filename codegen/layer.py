"""One convolution or dense layer, with all numbers, and no trace of the format it came from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.isa.numerics import SHORT_NAMES


@dataclass(frozen=True)
class Activation:
    """`kind` is none, relu, leaky_relu, clip (to `low`..`high`, may be infinite) or, of a float layer, hard_swish.

    Below 0 a leaky_relu has the slope `alpha`, or where `slopes` are given one of them per output channel.
    """

    kind: str = "none"
    alpha: float = 0.0
    slopes: tuple[float, ...] = ()
    low: float = -np.inf
    high: float = np.inf

    @property
    def slope(self) -> NDArray[np.float32]:
        """The slope or slopes of a leaky_relu, float32 [] or [K]."""
        return np.array(self.slopes or self.alpha, dtype=np.float32)


@dataclass(frozen=True)
class Quantization:
    """Scales and zero points of an integer layer.

    `w_scale` has one element, or one per output channel; `w_zp` likewise. `y_scale` is None where the
    output is the int32 sum itself (ConvInteger, MatMulInteger).
    """

    x_scale: np.float32
    x_zp: int
    w_scale: NDArray[np.float32]
    w_zp: NDArray[np.int32]
    y_scale: np.float32 | None
    y_zp: int


@dataclass(frozen=True)
class Layer:
    """A 2-D convolution over an HWC image, or a dense layer as a 1x1 convolution.

    `weights` is [KY, KX, C / groups, K] (HWIO): float32, or the quantized int8/uint8 numbers. Group g takes
    channels g * C / groups on to output channels g * K / groups on. `bias` is float32, or
    int32 in units of x_scale * w_scale; an all-zero bias is None. `pads` are top, left, bottom, right.
    `layout` is NCHW (input [N, C, H, W], or [N, C, W] of height 1; the host gives the images one by one) or
    ROWS (input [..., C], every row one output vector; then H is the number of rows and W is 1). Shapes are the
    model's own.
    """

    name: str
    operator: str
    layout: str
    input_name: str
    output_name: str
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    input_dtype: np.dtype[Any]
    output_dtype: np.dtype[Any]
    weights: NDArray[Any]
    bias: NDArray[Any] | None
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]
    activation: Activation
    quantization: Quantization | None
    groups: int = 1

    @property
    def image(self) -> tuple[int, int, int]:
        """Height, width and channels of the unpadded input."""
        if self.layout == "NCHW":
            _, channels, *height, width = self.input_shape
            return height[0] if height else 1, width, channels
        return int(np.prod(self.input_shape[:-1], dtype=np.int64)), 1, self.input_shape[-1]

    @property
    def padded(self) -> tuple[int, int, int]:
        """Height, width and channels of the padded input, as it lies in shared memory."""
        height, width, channels = self.image
        top, left, bottom, right = self.pads
        return height + top + bottom, width + left + right, channels

    @property
    def output_image(self) -> tuple[int, int]:
        """Output height and width: floor((padded - dilated kernel) / stride) + 1, as ONNX defines it."""
        height, width, _ = self.padded
        ky, kx = self.weights.shape[:2]
        return (
            (height - self.dilations[0] * (ky - 1) - 1) // self.strides[0] + 1,
            (width - self.dilations[1] * (kx - 1) - 1) // self.strides[1] + 1,
        )

    @property
    def outputs(self) -> int:
        """O: output vectors."""
        height, width = self.output_image
        return height * width

    @cached_property
    def cells(self) -> NDArray[Any]:
        """What the crossbars hold, [KY * KX * C / groups rows of the own group][K], rows in order (ky, kx, c).

        Integer layers hold w - w_zp as int16.
        """
        flat = self.weights.reshape(-1, self.weights.shape[3])
        if self.quantization is None:
            return flat.astype(np.float32)
        return (flat.astype(np.int32) - self.quantization.w_zp).astype(np.int16)

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """Rows KY * KX * C and columns K of the whole kernel matrix, which is block-diagonal with groups."""
        ky, kx, channels, outputs = self.weights.shape
        return ky * kx * channels * self.groups, outputs

    def block(self, rows: NDArray[np.int64], columns: slice) -> NDArray[Any]:
        """Cells of some rows (in the order ky, kx, c of all channels) and columns of the kernel matrix.

        Where a row's channel and a column belong to different groups there is no connection: 0.
        """
        _, _, channels, outputs = self.weights.shape
        pixel, channel = np.divmod(rows, channels * self.groups)
        group, local = np.divmod(channel, channels)
        cells = self.cells[pixel * channels + local, columns]
        of_column = np.arange(outputs)[columns] * self.groups // outputs
        return np.where(group[:, None] == of_column[None, :], cells, cells.dtype.type(0))

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference of the model, with all images of its batch."""
        images = self.input_shape[0] if self.layout == "NCHW" else 1
        return images * self.outputs * int(np.prod(self.weights.shape))

    @property
    def type_names(self) -> tuple[str, str]:
        """The IFM's and OFM's element types as the machine calls them."""
        return SHORT_NAMES[self.input_dtype], SHORT_NAMES[self.output_dtype]
