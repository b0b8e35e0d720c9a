"""All layers of Table I, three crossbars and three bus widths: the SystemC model against cim-emu.

    python tests/systemc/compare_table1.py

Prints a line a run and exits with 1 if any of them differs in cycles, counters or memory.
"""

import sys
import tempfile
from itertools import product
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "emulator")]

from systemc_model import Model, build, differences  # noqa: E402
from table1_images import LAYERS, table1_image  # noqa: E402

CROSSBARS = (32, 64, 128)
WIDTHS = (4, 32, 64)


def main() -> int:
    model = Model(build())
    wrong = 0
    for layer, side, width in product(sorted(LAYERS), CROSSBARS, WIDTHS):
        with tempfile.TemporaryDirectory() as folder:
            image = table1_image(layer, side, width, Path(folder))
            (outcome,) = model.run([image], Path(folder))
            found = differences(image, outcome)
        wrong += bool(found)
        print(
            f"layer {layer}, {side}x{side}, {width:2d} bytes: {outcome.told.get('cycles')} cycles,",
            "; ".join(found)[:300] or "equal",
            flush=True,
        )
    print(f"{wrong} of {len(LAYERS) * len(CROSSBARS) * len(WIDTHS)} runs differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
