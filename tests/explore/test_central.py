"""Scheme central beside CALL and WAIT: no CALLs, the same data, an area and attributes for each hop."""

from __future__ import annotations

import pytest

from cim.codegen.schedule import SCHEMES
from cim.explore.central import compare_central
from cim.explore.measure import Task, bus_runs, run_all
from cim.explore.paper import layer_of
from cim.explore.table1 import Row, make_layer

INPUTS, OUTPUTS, HEIGHT, WIDTH = 128, 64, 5, 4
LAYER = layer_of(make_layer(Row(9, 1, 1, INPUTS, OUTPUTS, INPUTS, OUTPUTS, HEIGHT, WIDTH)), "small")


@pytest.fixture(scope="module")
def rows():
    tasks = [
        Task("9", LAYER, "pelke23", scheme, (f"core.crossbar={n}x{n}", "bus.width_bytes=32"), bus_runs((4, 32)))
        for scheme in SCHEMES
        for n in (32, 64, 128)
    ]  # fmt: skip
    return compare_central([p for made in run_all(tasks) for p in made])


def test_every_chain_of_several_cores_is_compared(rows):
    assert [(row.run.crossbar, row.run.bus_bytes) for row in rows] == [
        ("32x32", 4), ("32x32", 32), ("64x64", 4), ("64x64", 32),
    ]  # fmt: skip


def test_traffic_and_memory(rows):
    outputs = HEIGHT * WIDTH
    for row in rows:
        linear = row.beside["linear"]
        assert row.run.calls == row.run.call_bytes == 0
        assert linear.calls == linear.p_h * (linear.p_v - 1) * outputs
        assert row.run.data_bytes == linear.data_bytes
        assert row.run.lower_bound <= row.run.cycles
        # One byte a value: an area of all partial sums for each hop.
        area = outputs * OUTPUTS
        assert row.run.partial_sum_bytes == (row.run.p_v - 1) * area
        assert row.extra_data_bytes == row.run.partial_sum_bytes - linear.partial_sum_bytes
        assert row.attribute_bytes == row.run.partial_sum_bytes // 2
        assert row.register_bytes == 4 * row.run.cores
