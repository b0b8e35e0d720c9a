"""The hand-written examples compute what their README says."""

from pathlib import Path

import numpy as np
import pytest

from cim.asm import cli_as, cli_ld
from cim.emulator import cli as cli_emu

FOLDER = Path(__file__).parents[1] / "examples/handwritten"


@pytest.mark.parametrize(
    ("name", "weights", "inputs"),
    [
        ("handover", np.vstack([np.eye(4), 2 * np.eye(4)]), [[1, -2, 3, -4, 5, 6, -7, 8]]),
        ("relay", [[1, 0, 2, -1], [0, 1, 1, -1], [1, 1, 0, -1], [1, 0, 1, -1], [1] * 4, [1] * 4],
         np.arange(1, 19).reshape(3, 6)),
    ],
)  # fmt: skip
def test_the_example(
    name: str, weights, inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli_as.main([str(FOLDER / f"{name}.s"), "-o", "p.o"]) == 0
    assert cli_ld.main(["p.o", "-o", "p"]) == 0
    x = np.array(inputs, dtype=np.int8)
    np.save("x.npy", x if len(x) > 1 else x[0])
    assert cli_emu.main(["p.cfg", "--load", "x=x.npy", "--dump", "y=y.npy", "--quiet"]) == 0
    expected = np.maximum(x.astype(int) @ np.array(weights, dtype=int), 0)
    assert np.array_equal(np.atleast_2d(np.load("y.npy")), expected)
