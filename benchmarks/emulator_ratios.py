"""cim-emu against the SystemC model of tests/systemc, on the same images in the same run.

    python benchmarks/emulator_ratios.py

Both compute values, time and counters on one thread; `--stats` adds sums and bounds, which the model has not. Taken is
the least processor time of several runs in turn: of cim-emu after compilation and without the start of Python, of the
model without reading and building the image.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS / "systemc"), str(TESTS / "emulator")]

from systemc_model import MissingTool, Model, build  # noqa: E402
from table1_images import table1_image  # noqa: E402

from cim.emulator.prepare import prepare  # noqa: E402
from cim.emulator.run import execute  # noqa: E402
from cim.emulator.stats import collect  # noqa: E402

RUNS = 15
CASES = ((1, 32, 32), (7, 32, 32))  # layer, crossbar side, bus bytes


def compare(model: Model, layer: int, side: int, width: int, folder: Path) -> None:
    image = table1_image(layer, side, width, folder)
    prepared = prepare(image)
    memory = prepared.image.memory()
    instructions = len(prepared.program)
    expected = execute(prepared).cycles  # compiles
    running, counting, theirs = [], [], []
    for _ in range(RUNS):
        began = time.process_time()
        result = execute(prepared, memory)
        ran = time.process_time()
        collect([result])
        running.append(ran - began)
        counting.append(time.process_time() - began)
        (outcome,) = model.run([image], folder)
        theirs.append(outcome.seconds)
        assert result.cycles == outcome.told["cycles"] == expected
    rates = [instructions / min(seconds) / 1e6 for seconds in (running, counting, theirs)]
    what = f"layer {layer}, {side}x{side}, {width} bytes, {len(prepared.configs)} cores"
    for kind, rate in zip(("run", "with --stats"), rates, strict=False):
        figure = f"{rate:.1f} M instr/s, SystemC {rates[-1]:.1f}"
        print(f"{what + ': ' + kind:<60} {figure:>32} {rate / rates[-1]:>8.2f} x SystemC")


def main() -> None:
    try:
        model = Model(build())
    except MissingTool as missing:
        print(f"no comparison with the SystemC model: {missing}")
        return
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            compare(model, *case, Path(folder))


if __name__ == "__main__":
    main()
