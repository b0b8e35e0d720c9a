"""Toolchain for multi-core RRAM computing-in-memory chips.

The stages live in `cim.isa`, `cim.asm`, `cim.codegen` and `cim.emulator`, the exploration of designs in
`cim.explore`. This package itself holds what all of them share: diagnostics, file output and the frame of the command
lines; and, on top of them, `cim.compile` and `cim.Program` for use from Python.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cim.api import Program, Run, compile  # noqa: A004

__all__ = ["Program", "Run", "compile"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The compiler and the emulator are imported when they are first asked for: `--help` needs neither."""
    if name in __all__:
        from cim import api

        return getattr(api, name)
    raise AttributeError(f"module 'cim' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Also what is not imported yet."""
    return sorted({*globals(), *__all__})
