"""Element types of the numeric modes, and the conversions that the spec defines to the bit.

spec/machine.md states the same rules in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.isa.model import MODES

DTYPES: dict[str, np.dtype[Any]] = {
    "i8": np.dtype("<i1"),
    "u8": np.dtype("<u1"),
    "i32": np.dtype("<i4"),
    "f32": np.dtype("<f4"),
}
SHORT_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class NumericMode:
    """A mode with its IFM and OFM types; raises `ValueError` for a combination that does not exist."""

    mode: str
    ifm: str
    ofm: str

    def __post_init__(self) -> None:
        allowed = {"f32": ("f32",), "i8": ("i8", "u8"), "i8n": ("i8", "u8")}
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, not '{self.mode}'")
        if self.ifm not in allowed[self.mode]:
            raise ValueError(
                f"in mode {self.mode} the IFM must be {' or '.join(allowed[self.mode])}, not '{self.ifm}'"
            )
        results = allowed[self.mode] + (("i32",) if self.mode == "i8" else ())
        if self.ofm not in results:
            raise ValueError(
                f"in mode {self.mode} the OFM must be {' or '.join(results)}, not '{self.ofm}'"
            )

    @property
    def partial_sum(self) -> str:
        """The element type of `ob`, `pb` and of partial sums in memory."""
        return {"f32": "f32", "i8": "i32", "i8n": "i8"}[self.mode]

    @property
    def cell(self) -> np.dtype[Any]:
        """How crossbar content is stored in files."""
        return np.dtype("<f4") if self.mode == "f32" else np.dtype("<i2")

    def of(self, role: str) -> str:
        """The type named by a buffer's `type` in the spec: ifm, ofm or partial_sum."""
        return {"ifm": self.ifm, "ofm": self.ofm, "partial_sum": self.partial_sum}[role]


def convert(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Assignment to a buffer element: 8-bit saturates, int32 wraps, float32 rounds to nearest even.

    `values` are int64 results of exact integer arithmetic, or floats in mode f32.
    """
    if dtype.kind == "f":
        return values.astype(dtype)
    if dtype.itemsize == 1:
        limits = np.iinfo(dtype)
        return np.asarray(np.clip(values, limits.min, limits.max).astype(dtype))
    return values.astype(np.int64).astype(dtype)  # int64 to int32 keeps the low 32 bits


def f32(values: NDArray[Any]) -> NDArray[np.float32]:
    """An integer as the nearest float32, ties to even."""
    return np.asarray(values).astype(np.float32)


def rint(values: NDArray[np.float32]) -> NDArray[np.int64]:
    """Round to the nearest integer, ties to even; values beyond int32 saturate, NaN gives 0."""
    rounded = np.rint(np.asarray(values, dtype=np.float32)).astype(np.float64)
    return np.clip(np.nan_to_num(rounded, nan=0.0), -(2.0**31), 2.0**31 - 1).astype(np.int64)
