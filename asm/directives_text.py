"""Directives as text: what the compiler and the disassembler write and the assembler reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from cim.isa.interpreter import PARAMETERS
from cim.isa.machine import Machine, load_machine, presets


@lru_cache(maxsize=16)  # every turn of a layer says it
def machine_directive(machine: Machine) -> str:
    """`.machine` with every setting that differs from the preset of that name, or from `default`."""
    name = machine.name if machine.name in presets() else "default"
    base = load_machine(name)
    settings = [f"{k}={v}" for k, v in machine.settings().items() if base.settings()[k] != v]
    if name != machine.name:
        settings.insert(0, f"name={machine.name}")
    return ", ".join([f'.machine "{name}"', *(f'"{setting}"' for setting in settings)])


def value_text(value: object) -> str:
    """An attribute's value as the operand of a directive."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(value_text(item) for item in value)}]"
    return repr(value)


def region_directive(
    name: str, type_name: str, shape: Sequence[int], role: str, layout: str = "",
    scale: float | None = None, zero_point: int = 0, align: int = 64,
) -> str:  # fmt: skip
    """`.region`, without the options that are empty."""
    parts = [f".region {name}, {type_name}, {value_text(list(shape))}", f"role={role}"]
    if layout:
        parts.append(f"layout={value_text(layout)}")
    if scale is not None:
        parts.append(f"scale={scale!r}")
    if zero_point:
        parts.append(f"zero_point={zero_point}")
    parts.append(f"align={align}")
    return ", ".join(parts)


def parameter_lines(name: str, values: list[float]) -> Iterator[str]:
    """`.param` lines, a few values each; float32 values in their shortest exact form."""
    floats = PARAMETERS[name][0] == "f32"
    texts = [str(np.float32(value)) if floats else str(int(value)) for value in values]
    for start in range(0, len(texts), 6):
        yield f".param {name}, {', '.join(texts[start : start + 6])}"
