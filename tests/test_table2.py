"""Table II of the paper: cores, loads, stores and CALLs of all 21 rows, from the emulator's own counters."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cim.codegen.driver import compile_model
from cim.emulator.check import check_layer
from cim.emulator.host import run_layer
from cim.emulator.prepare import prepare
from cim.emulator.stats import collect
from cim.explore.table1 import Counts, make_layer, read_counts, read_table
from cim.isa.machine import load_machine

LAYERS = {row.layer: row for row in read_table()}
ROWS = read_counts()


def test_the_table_is_whole() -> None:
    assert len(ROWS) == 21


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.layer}-{row.crossbar}")
def test_counts_equal_the_paper(row: Counts, tmp_path: Path) -> None:
    layer = LAYERS[row.layer]
    path = tmp_path / "layer.onnx"
    path.write_bytes(make_layer(layer).SerializeToString())
    side = row.crossbar
    machine = load_machine("pelke23", [f"core.crossbar={side}x{side}"])
    (compiled,) = compile_model(path, machine).layers
    assert compiled.mode.mode == "i8n"  # a value is one byte, as in the paper
    image = compiled.image()
    rng = np.random.default_rng(0)
    shape = (1, layer.in_channels, layer.input_h, layer.input_w)
    x = rng.integers(0, 256, shape).astype(np.uint8)
    done = run_layer(prepare(image), x)
    stats = collect(done.results)
    assert {
        "cores": stats.cores,
        "load_values": stats.values.load,
        "store_values": stats.values.store,
        "calls": stats.instructions.call,
    } == {key: getattr(row, key) for key in ("cores", "load_values", "store_values", "calls")}
    assert stats.bytes.load == stats.values.load
    assert stats.bytes.store == stats.values.store
    assert stats.bytes.call == 4 * row.calls
    if side == 64:  # the values too, where the reference takes no more than a second
        (tmp_path / compiled.program.reference[0]).write_bytes(compiled.program.reference[1])
        check_layer(replace(image, path=tmp_path / image.path.name), x, done.output)
