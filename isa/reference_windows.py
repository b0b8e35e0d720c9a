"""Which vertical group adds which products to which output, where one MVM yields a window of outputs.

A part of the golden reference: NumPy alone, nothing shared with the compiler. spec/image.md, section 5, states the
rules in words. With im2col a window is one output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cim.isa.reference import Described


@dataclass(frozen=True)
class Share:
    """Output vectors at the same place in their windows, and for each kernel row (ky, kx, c) its vertical group."""

    outputs: NDArray[np.int64]
    groups: NDArray[np.int64]


def _reads(layer: Described) -> tuple[list[int], list[int]]:
    """The rows and the columns of pixels that a window reads, from its corner."""
    lines = []
    for axis, count in enumerate((layer.window_height, layer.window_width)):
        reads = {
            output * layer.strides[axis] + tap * layer.dilations[axis]
            for output in range(count)
            for tap in range(layer.kernel[axis])
        }
        lines.append(sorted(reads))
    return lines[0], lines[1]


def check_vertical_groups(layer: Described, crossbar_inputs: int) -> None:
    """Raise `ValueError` unless the rows of a window make P_V groups."""
    lines, line = _reads(layer)
    pixels, channels = len(lines) * len(line), layer.kernel[2]
    if layer.mapping == "vw-sdk":
        what = f"{channels} channels of a window of {pixels} pixels"
        made = -(-channels // max(crossbar_inputs // pixels, 1))
    else:
        what = f"{pixels * channels} {'kernel' if layer.mapping == 'im2col' else 'window'} rows"
        made = -(-pixels * channels // crossbar_inputs)
    if made != layer.vertical_groups:
        raise ValueError(
            f"{what} on crossbars with {crossbar_inputs} inputs make {made} vertical groups, the layer has "
            f"{layer.vertical_groups}"
        )


def _output_image(layer: Described, outputs: int) -> tuple[int, int]:
    if layer.layout == "ROWS":
        return outputs, 1
    width = layer.output_shape[-1]
    return outputs // width, width


def windows_of(layer: Described, outputs: int) -> tuple[NDArray[np.int64], int]:
    """The window of each output vector, and how many windows there are."""
    _, width = _output_image(layer, outputs)
    y, x = np.divmod(np.arange(outputs), width)
    across = -(-width // layer.window_width)
    windows = y // layer.window_height * across + x // layer.window_width
    return windows, int(windows.max(initial=-1)) + 1


def window_shares(layer: Described, outputs: int, crossbar_inputs: int) -> Iterator[Share]:
    """Every output vector in one share. The last window of a line ends at the border."""
    height, width = _output_image(layer, outputs)
    y, x = np.divmod(np.arange(outputs), width)
    i = y - np.minimum(y // layer.window_height * layer.window_height, height - layer.window_height)
    j = x - np.minimum(x // layer.window_width * layer.window_width, width - layer.window_width)
    lines, line = _reads(layer)
    channels = layer.kernel[2]
    ky, kx, c = np.indices(tuple(layer.kernel[:3])).reshape(3, -1)
    for down in range(layer.window_height):
        for right in range(layer.window_width):
            row = np.searchsorted(lines, down * layer.strides[0] + ky * layer.dilations[0])
            column = np.searchsorted(line, right * layer.strides[1] + kx * layer.dilations[1])
            if layer.mapping == "vw-sdk":  # all pixels of some channels
                groups = c // max(crossbar_inputs // (len(lines) * len(line)), 1)
            else:
                groups = ((row * len(line) + column) * channels + c) // crossbar_inputs
            yield Share(np.flatnonzero((i == down) & (j == right)), groups)
