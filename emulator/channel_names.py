"""The channels of the bus by the numbers that the engine gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.emulator import layout
from cim.emulator.prepare import Prepared

ROLES = ("AR", "R", "AW", "B", "W")  # of set 0, in the order of their numbers
TARGET_ROLES = ROLES[layout.AW :]


def channel_name(number: int, prepared: Prepared) -> str:
    """`R`, or `AW of core 3` for a set of its own."""
    if number < layout.FIRST_OF_TARGETS:
        return ROLES[number]
    target, role = divmod(number - layout.FIRST_OF_TARGETS, layout.CHANNELS_OF_TARGET)
    return f"{TARGET_ROLES[role]} of core {prepared.names[target]}"


def roles_of(channels: NDArray[Any]) -> NDArray[np.int64]:
    """The channel of set 0 that each channel corresponds to."""
    numbers = channels.astype(np.int64)
    own = layout.AW + (numbers - layout.FIRST_OF_TARGETS) % layout.CHANNELS_OF_TARGET
    return np.where(numbers < layout.FIRST_OF_TARGETS, numbers, own)
