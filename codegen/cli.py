"""`cim-cc`: compiles a model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cim import console
from cim.diagnostics import usage_error
from cim.files import check_outputs, write_all
from cim.isa.machine import load_machine, presets

if TYPE_CHECKING:
    from cim.codegen.driver import CompiledModel

SCHEMES = ("sequential", "linear", "cyclic", "ring", "central")
MAPPINGS = ("im2col", "sdk", "vw-sdk")


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return console.run("cim-cc", lambda: _main(argv))


def _main(argv: list[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    path = Path(arguments.model)
    if arguments.output == "":
        raise usage_error("the name of the folder must not be empty", "-o")
    if arguments.report is not None:
        check_outputs([arguments.report], [arguments.model])
    dims, shapes = _dims(arguments.dim), _shapes(arguments.input_shape)
    machine = load_machine(arguments.arch, arguments.settings)
    # Imported late: --help must not wait for onnx.
    from cim.codegen.driver import compile_model
    from cim.codegen.quantize import read_calibration

    calibration = None if arguments.quantize is None else read_calibration(arguments.quantize)
    with console.status(f"reading {path.name}"):
        model = compile_model(
            path,
            machine,
            arguments.sync,
            arguments.layer,
            dims,
            shapes,
            arguments.host,
            arguments.mapping,
            calibration,
            arguments.fold,
        )
    stage = "assembly" if arguments.assembly else "object" if arguments.objects else "image"
    with _progress(len(model.layers)) as advance:
        files = model.files(stage, advance)
    folder = Path(path.stem if arguments.output is None else arguments.output)
    written = {folder / name: content for name, content in files.items()}
    if arguments.report is not None:
        from cim.codegen.mapping_report import report

        written[Path(arguments.report)] = report(model).encode()
    write_all(written)
    if not arguments.quiet:
        _report(model, folder)
        _report_older(folder, written)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = console.parser("cim-cc", "Compile a model for a multi-core CIM machine.")
    parser.add_argument(
        "model", metavar="MODEL", help="an ONNX file, a Keras file, or a SavedModel folder"
    )
    stage = parser.add_mutually_exclusive_group()
    stage.add_argument(
        "-S", dest="assembly", action="store_true", help="stop at assembly text (.s)"
    )
    stage.add_argument("-c", dest="objects", action="store_true", help="stop at objects (.o)")
    parser.add_argument(
        "-o",
        dest="output",
        metavar="DIR",
        help="where to write (default: a folder named after the model)",
    )
    parser.add_argument(
        "--arch", default="default", metavar="NAME|FILE",
        help=f"the machine: {', '.join(presets())}, or an arch.toml (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="KEY=VALUE",
        help="change a key of the machine, as in core.crossbar=64x64",
    )  # fmt: skip
    parser.add_argument(
        "--sync",
        choices=SCHEMES,
        default="linear",
        help="synchronization scheme (default: %(default)s)",
    )
    parser.add_argument(
        "--mapping",
        choices=MAPPINGS,
        default="im2col",
        help="outputs of an MVM: one, a square (sdk) or any rectangle (vw-sdk) of them where that pays "
        "(default: %(default)s)",
    )
    parser.add_argument("--layer", metavar="NAME", help="compile this layer only")
    parser.add_argument(
        "--dim", action="append", default=[], metavar="NAME=VALUE", help="fix a symbolic dimension"
    )
    parser.add_argument(
        "--input-shape",
        action="append",
        default=[],
        metavar="NAME=1x3x48x192",
        help="fix an input's shape",
    )
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NODE",
        help="leave this matrix operator (Conv, Gemm, MatMul, ...) to the host",
    )
    parser.add_argument(
        "--quantize", metavar="CALIB.npy",
        help="quantize a float model to int8, calibrated with these inputs (.npz for several, by name)",
    )  # fmt: skip
    parser.add_argument(
        "--fold", action="store_true",
        help="where a layer needs more cores than the machine has, let them work in several turns",
    )  # fmt: skip
    parser.add_argument(
        "--report",
        metavar="R.html",
        help="write a page: layers, host nodes, and a picture of the mapping",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no report")
    return parser


def _dims(texts: list[str]) -> dict[str, int]:
    made = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not (equals and name and value.isdecimal() and int(value) > 0):
            raise usage_error("must be NAME=VALUE with a value from 1 upwards", f"--dim {text}")
        made[name] = int(value)
    return made


def _shapes(texts: list[str]) -> dict[str, tuple[int, ...]]:
    made = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        sides = value.split("x")
        if not (equals and name and all(side.isdecimal() and int(side) > 0 for side in sides)):
            raise usage_error("must be like NAME=1x3x48x192", f"--input-shape {text}")
        made[name] = tuple(int(side) for side in sides)
    return made


def _silent(name: str) -> None:
    del name


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar on a terminal, silence elsewhere."""
    if not sys.stderr.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compiling", total=total)

        def advance(name: str) -> None:
            bar.update(task, description=name, advance=1)

        yield advance


def _report(model: CompiledModel, folder: Path) -> None:
    """The layers with their mapping, and every host node with its reason."""
    from rich.table import Table

    out = console.table_console()
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("layer", overflow="fold")
    for title in (
        "mode",
        "matrix",
        "outputs",
        "P_V x P_H",
        "cores",
        "cells used",
        "mapping",
        "scheme",
    ):
        table.add_column(title, justify="right")
    for one in model.layers:
        rows, columns = one.layer.matrix_shape
        table.add_row(
            one.title, one.mode.mode, f"{rows}x{columns}", str(one.layer.outputs),
            f"{one.mapping.p_v} x {one.mapping.p_h}", str(one.turn.cores), f"{one.used(model.machine):.0%}",
            one.mapping.title, one.schedule.scheme,
        )  # fmt: skip
    out.print(table if model.layers else "no layer runs on the cores")
    if len(model.layers) > 1:
        cores = sum(one.turn.cores for one in model.layers)
        used = sum(one.used(model.machine) * one.turn.cores for one in model.layers)
        out.print(f"{used / cores:.0%} of the cells of all layers' cores are used")
    for one in model.layers:
        if one.mapping.reason and one.turn.number == 0:
            out.print(f"{one.layer.name}: im2col, since {one.mapping.reason}")
    if model.partition is not None and model.partition.report:
        on_host = sum(entry.macs for entry in model.partition.report)
        share = on_host / model.partition.macs if model.partition.macs else 0.0
        out.print(
            f"\non the host: {_nodes(len(model.partition.report))}, {share:.1%} of the model's "
            "multiply-accumulates"
        )
        for reason, count in _grouped(model):
            out.print(f"  {reason}" + (f" ({count} such nodes)" if count > 1 else ""))
    out.print(f"\nwritten to {folder}/")


def _report_older(folder: Path, written: Collection[Path]) -> None:
    """Images in the folder that this run has not made, which are easily taken for those that it has."""
    older = sorted(path.name for path in folder.glob("*.cfg") if path not in written)
    if older:
        are = f"and {len(older) - 1} more there are" if len(older) > 1 else "there is"
        print(f"note: {older[0]} {are} of an earlier run")


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"


def _grouped(model: CompiledModel) -> list[tuple[str, int]]:
    """Host nodes by reason; glue operators are listed by kind, refused layers each by name."""
    assert model.partition is not None
    lines: dict[str, int] = {}
    for entry in model.partition.report:
        glue = entry.reason.endswith("no matrix with constant weights")
        text = f"{entry.operator}: no matrix with constant weights" if glue else entry.reason
        lines[text] = lines.get(text, 0) + 1
    return sorted(lines.items(), key=lambda item: ("no matrix" in item[0], item[0]))


if __name__ == "__main__":
    sys.exit(main())
