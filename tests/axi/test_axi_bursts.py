"""Where accesses are split into bursts: against an AXI master that others wrote, cocotbext-axi under Icarus Verilog.

Its rules are those of spec/timing.md, section 3: INCR bursts of at most 256 beats that never cross 4 KiB, as long as
possible, an unaligned start or end at the price of its whole beat.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from cim.emulator.ideal import split

FOLDER = Path(__file__).parent
CASES = 12
MEMORY = 1 << 16


def cases(width):
    """Random accesses; starts and ends around boundaries; bursts of 256 beats, and of one more."""
    rng = np.random.default_rng(width)
    longest = min(4096, 520 * width)  # three bursts, or as many bytes as an instruction moves
    size = np.where(
        rng.integers(0, 2, CASES) == 1, rng.integers(1, 3 * width + 1, CASES), rng.integers(1, longest, CASES)
    )  # fmt: skip
    near = 4096 * rng.integers(1, 10, CASES) + rng.integers(-2 * width, 2 * width + 1, CASES)
    begin = np.where(rng.integers(0, 2, CASES) == 1, near, rng.integers(0, MEMORY - longest, CASES))
    full = 256 * width
    edges = [
        (4096 - width, width), (4096 - width, width + 1), (4095, 1), (4095, 2), (8192 - 3, 3), (8192 - 3, 4),
        (4096, min(full, longest)), (4096, min(full + 1, longest)), (4096 + width - 1, min(full, longest - width)),
        (0, longest), (1, longest),
    ]  # fmt: skip
    edges += [(stop - count, count) for stop in (4096, 4097) for count in (1, 2, width, 2 * width)]
    return [*zip(begin.tolist(), size.tolist(), strict=True), *edges]


def ours(accesses, width):
    """The bursts of accesses as (address, beats)."""
    begin, size = np.array(accesses).T
    bursts = []
    for address, beats in zip(begin.tolist(), split(begin, size, width).T.tolist(), strict=True):
        at, one = address, []
        for count in filter(None, beats):
            one.append([at, count])
            at = (at // width + count) * width
        bursts.append(one)
    return bursts


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32, 64, 128])
def test_bursts_as_cocotbext_axi(width, tmp_path, monkeypatch):
    if shutil.which("iverilog") is None:
        pytest.skip("needs Icarus Verilog (on Debian: iverilog)")
    pytest.importorskip("cocotbext.axi")
    from cocotb_tools.runner import get_runner

    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])  # that of the simulator's Python
    accesses = cases(width)
    given, seen = tmp_path / "cases.json", tmp_path / "bursts.json"
    given.write_text(json.dumps(accesses), encoding="utf-8")
    runner = get_runner("icarus")
    runner.build(
        sources=[FOLDER / "axi_wires.v"], hdl_toplevel="axi_wires", parameters={"BYTES": width},
        build_dir=tmp_path, log_file=tmp_path / "build.log",
    )  # fmt: skip
    runner.test(
        hdl_toplevel="axi_wires", test_module="axi_bench", test_dir=tmp_path, build_dir=tmp_path,
        log_file=tmp_path / "run.log", extra_env={
            "CIM_AXI_CASES": str(given), "CIM_AXI_BURSTS": str(seen), "COCOTB_LOG_LEVEL": "WARNING",
        },
    )  # fmt: skip
    assert seen.exists(), (tmp_path / "run.log").read_text(encoding="utf-8")
    found = json.loads(seen.read_text(encoding="utf-8"))
    expected = ours(accesses, width)
    for number, (reads, writes) in enumerate(found):
        for bursts in (reads, writes):
            assert [burst[:2] for burst in bursts] == expected[number], accesses[number]
            assert {burst[2] for burst in bursts} == {width}
    assert len(found) == len(accesses)
