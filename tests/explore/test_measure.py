"""Design points: one compilation for all bus widths, in any order, on any number of processes."""

from __future__ import annotations

import pytest

from cim.explore.measure import Task, bus_runs, pick, run_all, run_task, speedups
from cim.explore.paper import layer_of
from cim.explore.table1 import Row, make_layer

SMALL = layer_of(make_layer(Row(9, 1, 1, 96, 48, 96, 48, 5, 4)), "small")


def one(points, **wanted):
    (found,) = pick(points, **wanted)
    return found


def task(scheme="linear", widest=32, widths=(4, 8, 16, 32)):
    compiled = ("core.crossbar=32x32", f"bus.width_bytes={widest}")
    return Task("9", SMALL, "pelke23", scheme, compiled, bus_runs(widths))


@pytest.mark.parametrize("scheme", ["sequential", "linear", "cyclic", "ring"])
@pytest.mark.parametrize("width", [4, 16, 32])
def test_a_program_for_a_wide_bus_runs_alike_on_a_narrow_one(scheme, width):
    wide = one(run_task(task(scheme)), bus_bytes=width)
    own = one(run_task(task(scheme, width, (width,))), bus_bytes=width)
    assert (wide.cycles, wide.lower_bound, wide.data_bytes) == (
        own.cycles,
        own.lower_bound,
        own.data_bytes,
    )


def test_processes_give_the_points_of_one_in_the_order_of_the_tasks():
    tasks = [task("sequential"), task("ring", widths=(8,)), task("cyclic")]
    done = []
    points = run_all(tasks, done.append)
    assert points == [run_task(each) for each in tasks]
    assert done == [1, 2, 3]


def test_speedups_compare_with_the_same_bus():
    points = [*run_task(task("sequential")), *run_task(task("ring"))]
    found = speedups(points)
    ring = one(points, scheme="ring", bus_bytes=4)
    base = one(points, scheme="sequential", bus_bytes=4)
    assert found[ring] == base.cycles / ring.cycles
    assert found[base] == 1
    assert 1 < found[ring] <= ring.p_v == 3
    assert speedups([ring]) == {}
