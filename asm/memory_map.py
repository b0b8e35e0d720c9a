"""What the linker tells about an image: the map file and the memory usage."""

from __future__ import annotations

from cim.asm.image import Image


def map_text(image: Image) -> str:
    """The content of `-Map`: regions and programs by address, then the cores."""
    config = image.config
    lines = [
        f"image {image.path.with_suffix('').name}, machine {config.machine.name}, mode {config.mode}"
    ]
    lines += ["", "shared memory", f"{'address':>12} {'bytes':>10}  what"]
    entries = [
        (r.address, r.size_bytes, f"region {r.name} {r.type} {r.shape}") for r in config.regions
    ]
    entries += [
        (c.address, c.program.size, f"program of core {c.number} '{c.name}'") for c in config.cores
    ]
    lines += [f"{address:#12x} {size:>10}  {what}" for address, size, what in sorted(entries)]
    lines += [f"{config.memory_bytes:#12x} {'':>10}  end"]
    lines += ["", "cores", f"{'number':>8} {'hg':>4} {'vg':>4} {'rows':>5} {'columns':>7}  name"]
    lines += [
        f"{c.number:>8} {c.hg:>4} {c.vg:>4} {c.rows:>5} {c.columns:>7}  {c.name}"
        + (f", starts at {c.address + c.entry:#x}" if c.entry else "")
        for c in config.cores
    ]
    return "\n".join(lines) + "\n"


def usage_text(image: Image) -> str:
    """`--print-memory-usage`: used and available, in bytes, cores and cells."""
    config = image.config
    machine = config.machine
    cells = sum(core.rows * core.columns for core in config.cores)
    programs = max(core.program.size for core in config.cores)
    per_crossbar = machine.core.outputs * machine.core.inputs
    share = cells / (per_crossbar * len(config.cores))
    rows = [
        ("shared memory", f"{config.memory_bytes} B", _limit(machine.memory.size_bytes, " B")),
        ("largest program", f"{programs} B", _limit(machine.core.instruction_memory_bytes, " B")),
        ("cores", str(len(config.cores)), _limit(machine.core.count, "")),
        ("crossbar cells", f"{cells} ({share:.1%})", str(per_crossbar * len(config.cores))),
    ]
    lines = [f"{'':<16} {'used':>20} {'available':>20}"]
    lines += [f"{name:<16} {used:>20} {available:>20}" for name, used, available in rows]
    return "\n".join(lines)


def _limit(value: int | str, unit: str) -> str:
    return f"{value}{unit}" if isinstance(value, int) else value
