"""Design points: a layer on a machine with a scheme, compiled and emulated by the ordinary path.

One compilation serves all bus widths: the width changes only when things happen. The program is compiled for the
widest one, to which its partial sums are aligned.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from cim.codegen.compile_layer import compile_layer
from cim.codegen.layer import Layer
from cim.codegen.schedule import SCHEMES
from cim.emulator import stats
from cim.emulator.prepare import prepare
from cim.emulator.run import execute
from cim.isa.machine import apply_settings, load_machine

BY_CALLS = tuple(scheme for scheme in SCHEMES if scheme != "central")


@dataclass(frozen=True)
class Task:
    """A program to compile, and the settings of the machine (each a list of KEY=VALUE) to run it with.

    `label` says what it is in the results; `compiled` are the settings that it is compiled with.
    """

    label: str
    layer: Layer
    arch: str
    scheme: str
    compiled: tuple[str, ...]
    runs: tuple[tuple[str, ...], ...]
    mapping: str = "im2col"


@dataclass(frozen=True)
class Point:
    """One run: what was run, and what it counted. Cycles are of the bus clock, sizes bytes.

    `mapping` is what was asked for, `window` the outputs of an MVM, down and right. `cells_used` is the share of all
    cells of the crossbars that hold a weight, `partial_sum_bytes` shared memory for partial sums beside the OFM.
    """

    label: str
    scheme: str
    crossbar: str
    bus_bytes: int
    settings: tuple[str, ...]
    p_v: int
    p_h: int
    cores: int
    cycles: int
    lower_bound: int
    binding: str
    load_values: int
    store_values: int
    calls: int
    data_bytes: int
    call_bytes: int
    fetch_bytes: int
    fullest_channel: str
    fullest_share: float
    mapping: str
    window: str
    mvms: int
    ifm_values: int
    cells_used: float
    partial_sum_bytes: int


def run_task(task: Task) -> list[Point]:
    """Compile once, run with every setting. Raises `CimError` as the compiler and the emulator do."""
    machine = load_machine(task.arch, task.compiled)
    compiled = compile_layer(task.layer, machine, task.scheme, "layer", task.mapping)
    mapped = compiled.mapping
    image = compiled.image()
    prepared = prepare(image)
    sums = sum(region.size_bytes for region in image.config.regions if region.role == "partial_sum")
    points = []
    for settings in task.runs:
        timed = apply_settings(machine, settings)
        result = execute(prepared, machine=timed, values=False)
        s = stats.collect([result])
        busy = {
            name: getattr(s.bus, f"{name}_busy_cycles") / max(s.cycles, 1)
            for name in ("ar", "r", "aw", "w", "b")
        }
        fullest = max(busy, key=lambda name: busy[name])
        points.append(
            Point(
                label=task.label,
                scheme=task.scheme,
                crossbar=machine.core.crossbar,
                bus_bytes=timed.bus.width_bytes,
                settings=settings,
                p_v=mapped.p_v,
                p_h=mapped.p_h,
                cores=s.cores,
                cycles=s.cycles,
                lower_bound=s.lower_bound.cycles,
                binding=s.lower_bound.binding,
                load_values=s.values.load,
                store_values=s.values.store,
                calls=s.instructions.call,
                data_bytes=s.synchronization.data_bytes,
                call_bytes=s.synchronization.call_bytes,
                fetch_bytes=s.bytes.fetch,
                fullest_channel=fullest,
                fullest_share=busy[fullest],
                mapping=task.mapping,
                window=f"{mapped.window.down}x{mapped.window.right}",
                mvms=s.instructions.mvm,
                ifm_values=mapped.ifm_values,
                partial_sum_bytes=sums,
                cells_used=mapped.used(task.layer, machine.core.outputs * machine.core.inputs),
            )
        )
    return points


def run_all(
    tasks: Sequence[Task], progress: Callable[[int], None] | None = None
) -> list[list[Point]]:
    """The points of each task, in the order of the tasks; on all cores of this computer.

    `progress` is told how many tasks are done.
    """
    found: dict[int, list[Point]] = {}
    # The largest first, so that none is left over for one process at the end.
    order = sorted(range(len(tasks)), key=lambda at: -_size(tasks[at]))
    # TensorFlow may have started threads, with which no process can be forked safely.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), context) as pool:
        futures = {pool.submit(run_task, tasks[at]): at for at in order}
        for done, future in enumerate(as_completed(futures), 1):
            found[futures[future]] = future.result()
            if progress is not None:
                progress(done)
    return [found[at] for at in range(len(tasks))]


def _size(task: Task) -> int:
    """About how long a task takes: cells to write as text, and outputs to emulate."""
    rows, columns = task.layer.matrix_shape
    return rows * columns * max(task.layer.outputs, 64)


def bus_runs(widths: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """One run for each bus width in bytes."""
    return tuple((f"bus.width_bytes={width}",) for width in widths)


def pick(points: Sequence[Point], **wanted: object) -> Iterator[Point]:
    """The points whose fields have these values."""
    for point in points:
        if all(getattr(point, name) == value for name, value in wanted.items()):
            yield point


def speedups(points: Sequence[Point]) -> dict[Point, float]:
    """Cycles of the sequential scheme by those of each point, all else equal; where both have been run."""
    base = {
        (p.label, p.crossbar, p.bus_bytes, p.settings): p.cycles
        for p in points
        if p.scheme == "sequential"
    }
    found = {}
    for p in points:
        key = (p.label, p.crossbar, p.bus_bytes, p.settings)
        if key in base:
            found[p] = base[key] / p.cycles
    return found


def side(crossbar: str) -> int:
    """The outputs M of a crossbar `MxN`."""
    return int(crossbar.partition("x")[0])
