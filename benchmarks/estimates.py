"""How near the predictions of `cim-cc --report` come: predicted beside emulated cycles for the layers of Table I.

Crossbars of 64x64 to 256x256, buses of 4 to 64 bytes, MVMs of 100 and 1000 cycles, all schemes; layers of at most 300
cores. An error is |predicted / emulated - 1|.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cim.codegen.compile_layer import compile_layer
from cim.codegen.estimate import estimate
from cim.codegen.layer import Layer
from cim.codegen.mapping import map_layer
from cim.codegen.onnx_import import import_model
from cim.codegen.schedule import SCHEMES
from cim.emulator.prepare import prepare
from cim.emulator.run import execute
from cim.explore.table1 import make_layer, read_table
from cim.isa.machine import apply_settings, load_machine

CROSSBARS = (64, 128, 256)
WIDTHS = (4, 8, 16, 32, 64)
LATENCIES = (100, 1000)
MOST_CORES = 300


def errors(layer: Layer, crossbar: int, scheme: str) -> Iterator[float]:
    """One for each latency and bus. Partial sums lie as the widest bus wants them."""
    machine = load_machine("default", [f"core.crossbar={crossbar}x{crossbar}", f"bus.width_bytes={max(WIDTHS)}"])  # fmt: skip
    compiled = compile_layer(layer, machine, scheme, "layer")
    prepared = prepare(compiled.image())
    for latency in LATENCIES:
        for width in WIDTHS:
            settings = [f"core.mvm_cycles={latency}", f"bus.width_bytes={width}"]
            timed = apply_settings(machine, settings)
            cycles = execute(prepared, machine=timed, values=False).cycles
            yield abs(estimate(compiled, timed).predicted / cycles - 1)


def main() -> None:
    """Print a table."""
    found: dict[str, list[float]] = {scheme: [] for scheme in SCHEMES}
    for row in read_table():
        layer = import_model(make_layer(row)).layers[0]
        for crossbar in CROSSBARS:
            mapping = map_layer(layer, crossbar, crossbar)
            if mapping.cores <= MOST_CORES:
                for scheme in SCHEMES if mapping.p_v > 1 else ["linear"]:
                    found[scheme] += errors(layer, crossbar, scheme)
    found["all"] = [error for off in found.values() for error in off]
    print(f"{'scheme':12}{'points':>8}{'mean':>8}{'9 of 10':>9}{'worst':>8}")
    for scheme, off in found.items():
        print(
            f"{scheme:12}{len(off):8}{np.mean(off):8.1%}{np.quantile(off, 0.9):9.1%}{max(off):8.1%}"
        )


if __name__ == "__main__":
    main()
