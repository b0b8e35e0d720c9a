"""`cim-emu --check`: compares an output with the NumPy reference of the layer."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from cim.asm.image import Image
from cim.diagnostics import error


def check(image: Image, x: NDArray[Any], y: NDArray[Any]) -> None:
    """Compare `y` with what the reference computes from `x`; raises `CimError` if it cannot be done."""
    raise error("--check needs the NumPy reference, which is not there", where=str(image.path))
