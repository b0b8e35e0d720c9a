"""In which order the vertical groups add to an output, where the cores of a layer work in several turns.

A part of the golden reference: NumPy alone, nothing shared with the compiler. spec/image.md, section 5, states the
rules in words. Without turns the whole chain is one part.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cim.isa.reference import Described

Part = tuple[int, int]  # vertical groups first..end-1, which work in the same turn


def chain_parts(
    layer: Described, crossbar_outputs: int
) -> Iterator[tuple[NDArray[np.int64], list[Part]]]:
    """Output channels with the parts that their chains fall into, in the order in which these work.

    Raises `ValueError` where the turns are not those of so many cores.
    """
    p_v, channels = layer.vertical_groups, np.arange(layer.kernel[3])
    ends = list(layer.turn_ends)
    if p_v == 1 or not ends:
        yield channels, [(0, p_v)]
        return
    if ends != sorted(set(ends)) or ends[-1] != p_v * layer.horizontal_groups:
        raise ValueError(
            f"turns that end before cores {ends} are not those of {p_v} x {layer.horizontal_groups} cores"
        )
    group_of = _horizontal_groups(layer, crossbar_outputs)
    for hg in range(layer.horizontal_groups):
        inner = [end - hg * p_v for end in ends if 0 < end - hg * p_v < p_v]
        edges = [0, *inner, p_v]
        yield channels[group_of == hg], list(pairwise(edges))


def _horizontal_groups(layer: Described, crossbar_outputs: int) -> NDArray[np.int64]:
    """The horizontal group of each output channel: as many of a group of channels as a crossbar has columns for.

    Raises `ValueError` where that is none, or does not make P_H groups.
    """
    own = layer.kernel[3] // layer.groups
    held = crossbar_outputs // (layer.window_height * layer.window_width)
    if not held:
        raise ValueError(
            f"a window of {layer.window_height} x {layer.window_width} outputs does not fit crossbars with {crossbar_outputs} outputs"
        )
    group, channel = np.divmod(np.arange(layer.kernel[3]), own)
    found: NDArray[np.int64] = group * -(-own // held) + channel // held
    if found[-1] + 1 != layer.horizontal_groups:
        raise ValueError(
            f"{layer.kernel[3]} channels on crossbars with {crossbar_outputs} outputs make {found[-1] + 1} horizontal groups, the "
            f"layer has {layer.horizontal_groups}"
        )
    return found
