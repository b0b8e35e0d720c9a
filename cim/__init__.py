"""Toolchain for multi-core RRAM computing-in-memory chips.

The stages live in `cim.isa`, `cim.asm`, `cim.codegen` and `cim.emulator`. This package itself holds only
what all of them share: diagnostics, file output and the frame of the command lines.
"""

__version__ = "0.1.0"
