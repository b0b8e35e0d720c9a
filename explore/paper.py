"""`cim-explore paper`: every table, figure and claim of the paper, from this toolchain's own runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cim.codegen.compile_layer import compile_layer
from cim.codegen.layer import Layer
from cim.codegen.mapping import map_layer
from cim.codegen.onnx_import import import_graph
from cim.codegen.onnx_load import build_graph
from cim.codegen.schedule import SCHEMES
from cim.console import progress
from cim.emulator import layout
from cim.emulator.prepare import prepare
from cim.emulator.recording import Recording
from cim.emulator.run import execute
from cim.explore.central import Central, compare_central
from cim.explore.claims import Claim, Compared, check_claims, compare_counts
from cim.explore.figures import Timeline
from cim.explore.mappings import mapping_tasks
from cim.explore.measure import BY_CALLS, Point, Task, bus_runs, run_all, speedups
from cim.explore.networks import convolutions
from cim.explore.past import Fit, HeldBack, fits, held_back
from cim.explore.table1 import make_layer, read_counts, read_table
from cim.isa.machine import load_machine

ARCH = "pelke23"
TABLE1_BUSES = (4, 8, 16, 32)
NETWORK_BUSES = (4, 8, 16, 32, 64)
TABLE1_CROSSBARS = (32, 64)
NETWORK_CROSSBARS = (32, 64, 128, 256)
TABLE2_CROSSBARS = (32, 64, 128)
SENSITIVE_LAYERS = ("1", "4", "5", "7")

# What the paper does not state; each list is one panel, the last setting of each run is written at its place.
SENSITIVITY: dict[str, list[tuple[str, ...]]] = {
    "MVM cycles": [(f"core.mvm_cycles={n}",) for n in (200, 500, 1000, 2000, 5000)],
    "memory latency (cycles)": [
        (f"memory.write_latency_cycles={n}", f"memory.read_latency_cycles={n}")
        for n in (0, 10, 30, 100)
    ],
    "bus topology": [("bus.topology=shared",), ("bus.topology=per_target",)],
    "arbitration": [("bus.arbitration=oldest_first",), ("bus.arbitration=round_robin",)],
    "instruction memory (bytes)": [
        (f"core.instruction_memory_bytes={size}",) for size in ("unlimited", 65536, 4096, 1024)
    ],
}


@dataclass(frozen=True)
class Results:
    """Everything that the figures and the page are made of. `networks` and `mappings` may be empty."""

    table1: list[Point]
    table2: list[Compared]
    networks: list[Point]
    sensitivity: list[Point]
    mappings: list[Point]
    timelines: list[Timeline]
    claims: list[Claim]
    fits: list[Fit]


def layer_of(model: onnx.ModelProto, name: str) -> Layer:
    """The only layer of a model of one operator."""
    (layer,) = import_graph(build_graph(model, name, {}, {})).layers
    return layer


def run_paper(with_networks: bool = True) -> Results:
    """Compile and run everything. Raises `CimError` where TensorFlow is missing and networks are wanted."""
    layers = {
        str(row.layer): layer_of(make_layer(row), f"layer {row.layer}") for row in read_table()
    }
    networks = convolutions() if with_networks else {}
    parts = [
        _table1_tasks(layers),
        _network_tasks(networks),
        _sensitivity_tasks(layers),
        mapping_tasks(networks, ARCH),
    ]
    tasks = [task for part in parts for task in part]
    with progress("running the paper", len(tasks)) as show:
        results = iter(run_all(tasks, show))
    table1, of_networks, sensitivity, mappings = (
        [point for task in part for point in next(results)] for part in parts
    )
    table2 = compare_counts(table1, read_counts())
    return Results(
        table1=table1,
        table2=table2,
        networks=of_networks,
        sensitivity=sensitivity,
        mappings=mappings,
        timelines=[timeline(scheme) for scheme in BY_CALLS],
        claims=check_claims(table1, of_networks, table2),
        fits=fits(sensitivity, SENSITIVITY),
    )


def _task(
    label: str,
    layer: Layer,
    crossbar: int,
    scheme: str,
    widest: int,
    runs: tuple[tuple[str, ...], ...],
) -> Task:
    compiled = (f"core.crossbar={crossbar}x{crossbar}", f"bus.width_bytes={widest}")
    return Task(label, layer, ARCH, scheme, compiled, runs)


def _table1_tasks(layers: dict[str, Layer]) -> list[Task]:
    """Fig. 5 and 7 and Table II; the largest crossbar only for the counts of the linear scheme."""
    tasks = []
    for label, layer in layers.items():
        for crossbar in TABLE2_CROSSBARS:
            schemes = SCHEMES if crossbar in TABLE1_CROSSBARS else ("linear",)
            widths = TABLE1_BUSES if crossbar in TABLE1_CROSSBARS else TABLE1_BUSES[-1:]
            for scheme in schemes:
                tasks.append(
                    _task(label, layer, crossbar, scheme, TABLE1_BUSES[-1], bus_runs(widths))
                )
    return tasks


def _network_tasks(layers: dict[str, Layer]) -> list[Task]:
    """Fig. 6. Where one core holds all rows of the kernel matrix there is nothing to synchronize, and no run."""
    runs = bus_runs(NETWORK_BUSES)
    return [
        _task(label, layer, crossbar, scheme, NETWORK_BUSES[-1], runs)
        for label, layer in layers.items()
        for crossbar in NETWORK_CROSSBARS
        if map_layer(layer, crossbar, crossbar).p_v > 1
        for scheme in BY_CALLS
    ]


def _sensitivity_tasks(layers: dict[str, Layer]) -> list[Task]:
    runs = tuple(run for group in SENSITIVITY.values() for run in group)
    return [
        _task(label, layers[label], 32, scheme, 32, runs)
        for label in SENSITIVE_LAYERS
        for scheme in BY_CALLS
    ]


# --- Fig. 4 ------------------------------------------------------------------------------------------------


def _example_layer() -> Layer:
    """Three conflicting cores of 32x32 and twelve output vectors, as in the paper's example."""
    rng = np.random.default_rng(0)
    values: dict[str, Any] = {
        "x_scale": np.float32(0.02),
        "x_zp": np.uint8(0),
        "w": rng.integers(-127, 128, (32, 96, 1, 1), dtype=np.int8),
        "w_scale": np.float32(0.01),
        "w_zp": np.int8(0),
        "y_scale": np.float32(0.5),
        "y_zp": np.uint8(128),
    }
    node = helper.make_node("QLinearConv", ["x", *values], ["y"], "example")
    graph = helper.make_graph(
        [node],
        "example",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 96, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 32, 3, 4])],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return layer_of(model, "example")


def timeline(scheme: str) -> Timeline:
    """The example of Fig. 4, recorded. Its MVM is short, so that one sees the accesses."""
    machine = load_machine(
        ARCH, ["core.crossbar=32x32", "core.mvm_cycles=100", "bus.width_bytes=4"]
    )
    compiled = compile_layer(_example_layer(), machine, scheme, "example")
    prepared = prepare(compiled.image())
    recording = Recording(prepared, machine)
    execute(prepared, values=False, sink=recording)
    outputs: dict[int, int] = {}
    for core, plan in enumerate(compiled.schedule.plans):
        begin, end = prepared.span(core)
        at = begin + np.flatnonzero(prepared.program["op"][begin:end] == layout.MVM)
        outputs.update(zip(at.tolist(), plan.expand().output.tolist(), strict=True))
    return Timeline(scheme, recording, outputs)


# --- files -------------------------------------------------------------------------------------------------


def paper_files(results: Results, folder: Path) -> dict[Path, bytes]:
    """Tables as CSV, figures as SVG, PDF and PNG, and the page."""
    from cim.explore import figures
    from cim.explore.page import paper_page

    labels = sorted({p.label for p in results.table1}, key=int)
    small = [p for p in results.table1 if p.crossbar != "128x128"]
    drawn = {
        "fig4": figures.figure4(results.timelines),
        "fig5": figures.figure5(small, labels),
        "fig7": figures.figure7([p for p in results.table1 if p.bus_bytes == 32], labels),
        "sensitivity": figures.sensitivity(results.sensitivity, SENSITIVE_LAYERS, SENSITIVITY),
    }
    if results.networks:
        drawn["fig6"] = figures.figure6(results.networks)
        drawn["fig6_ring"] = figures.figure6(results.networks, "ring")
    if results.mappings:
        drawn["mappings"] = figures.mapping_figure(results.mappings)
    files: dict[Path, bytes] = {}
    vectors: dict[str, str] = {}
    for name, figure in sorted(drawn.items()):
        for kind in ("svg", "pdf", "png"):
            content = io.BytesIO()
            metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
            figure.savefig(content, format=kind, dpi=200, metadata=metadata)
            files[folder / f"{name}.{kind}"] = content.getvalue()
        vectors[name] = files[folder / f"{name}.svg"].decode()
    files[folder / "table2.csv"] = _table2_csv(results.table2)
    files[folder / "fig5.csv"] = points_csv(small)
    files[folder / "fig6.csv"] = points_csv(results.networks)
    files[folder / "fig7.csv"] = points_csv([p for p in results.table1 if p.scheme == "linear"])
    files[folder / "central.csv"] = _central_csv(compare_central(results.table1))
    files[folder / "mappings.csv"] = points_csv(results.mappings)
    files[folder / "sensitivity.csv"] = points_csv(results.sensitivity)
    files[folder / "held_back.csv"] = _held_back_csv(
        [
            *held_back(results.table1),
            *held_back(results.networks),
        ]
    )
    files[folder / "claims.csv"] = _csv([asdict(claim) for claim in results.claims])
    files[folder / "paper.html"] = paper_page(results, vectors)
    return files


def points_csv(points: Sequence[Point]) -> bytes:
    """Points with their speedup and its share of the limit; cycles of the bus clock, sizes in bytes."""
    found = speedups(points) if any(p.scheme == "sequential" for p in points) else {}
    rows = []
    for p in points:
        row = {f.name: getattr(p, f.name) for f in fields(p)} | {"settings": " ".join(p.settings)}
        if p in found:
            row |= {"speedup": round(found[p], 4), "of_limit": round(found[p] / p.p_v, 4)}
        rows.append(row)
    return _csv(rows)


def _table2_csv(rows: Sequence[Compared]) -> bytes:
    names = ("cores", "load_values", "store_values", "calls")
    return _csv([
        asdict(row) | {f"{name}_diff": d for name, d in zip(names, row.differences, strict=True)}
        for row in rows
    ])  # fmt: skip


def _held_back_csv(rows: Sequence[HeldBack]) -> bytes:
    return _csv([
        {
            "label": row.best.label, "crossbar": row.best.crossbar, "bus_bytes": row.best.bus_bytes,
            "cores": row.best.cores, **{f"{s}_of_limit": round(v, 4) for s, v in row.shares.items()},
            "best": row.best.scheme, "cycles": row.best.cycles, "lower_bound": row.best.lower_bound,
            "binding": row.best.binding, "fullest_channel": row.best.fullest_channel,
            "fullest_share": row.best.fullest_share,
        }
        for row in rows
    ])  # fmt: skip


def _central_csv(rows: Sequence[Central]) -> bytes:
    return _csv([
        {
            "label": row.run.label, "crossbar": row.run.crossbar, "bus_bytes": row.run.bus_bytes, "cores": row.run.cores,
            "cycles": row.run.cycles, "lower_bound": row.run.lower_bound,
            **{f"{name}_cycles": p.cycles for name, p in row.beside.items()},
            **{f"{name}_lower_bound": p.lower_bound for name, p in row.beside.items()},
            "data_bytes": row.run.data_bytes, "call_bytes_linear": row.beside["linear"].call_bytes,
            "extra_data_bytes": row.extra_data_bytes, "attribute_bytes": row.attribute_bytes,
            "register_bytes": row.register_bytes,
        }
        for row in rows
    ])  # fmt: skip


def _csv(rows: Sequence[dict[str, object]]) -> bytes:
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue().encode()
