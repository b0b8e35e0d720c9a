"""`cim-emu network.json`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cim import console
from cim.diagnostics import error, usage_error
from cim.emulator.arrays import npy_bytes, read_npy, read_npz
from cim.emulator.network import LoadedNetwork
from cim.emulator.network_stats import print_network_summary
from cim.emulator.stats import encode_stats
from cim.files import check_outputs, write_all


def run_network_command(args: argparse.Namespace) -> int:
    """`cim-emu network.json`: read everything, run, then write everything."""
    for option, given in (
        ("--load", args.load), ("--dump", args.dump), ("--trace", args.trace), ("--vcd", args.vcd),
        ("--report", args.report), ("--debug", args.debug), ("-x", args.script),
        ("--timing-only", args.timing_only),
    ):  # fmt: skip
        if given:
            raise usage_error("is for a single layer: give the layer's cfg", option)
    check_outputs(
        [
            *(text.rpartition("=")[2] for text in args.output or ()),
            *([args.stats] if args.stats else []),
        ],
        [args.file, *(text.rpartition("=")[2] for text in args.input or ())],
    )
    loaded = LoadedNetwork(args.file, args.settings)
    names = [tensor.name for tensor in loaded.network.inputs]
    inputs = dict(one for text in args.input or () for one in _inputs(text, names))
    outputs = [tensor.name for tensor in loaded.network.outputs]
    wanted = [_output(text, outputs) for text in args.output or ()]
    with console.progress("emulating", loaded.instructions(inputs)) as show:
        done = loaded.run(inputs, args.check, args.max_cycles, show)
    stats = loaded.stats(done)
    files: dict[Path, bytes] = {}
    for name, path in wanted:
        files[path] = npy_bytes(done.outputs[name])
    if args.stats:
        files[Path(args.stats)] = encode_stats(stats)
    write_all(files)
    if not args.quiet:
        print_network_summary(stats)
        if args.check:
            print(f"checked: {loaded.checked()}")
    return 0


def _inputs(text: str, names: Sequence[str]) -> Iterator[tuple[str, NDArray[Any]]]:
    """`X.npy` is the only input, `NAME=X.npy` one of several, `X.npz` has them by name."""
    if text.endswith(".npz") and text.rpartition("=")[0] not in names:
        arrays = read_npz(text)
        for name in arrays:
            _known(name, names, "input", f"--input {text}")
        yield from arrays.items()
        return
    name, path = _named(text, names, "input", "NAME=X.npy")
    yield name, read_npy(path)


def _output(text: str, names: Sequence[str]) -> tuple[str, Path]:
    """`Y.npy` is the only output, `NAME=Y.npy` one of several."""
    name, path = _named(text, names, "output", "NAME=Y.npy")
    return name, Path(path)


def _named(text: str, names: Sequence[str], what: str, form: str) -> tuple[str, str]:
    """The name of an input or output, and the path given for it."""
    name, equals, path = text.rpartition("=")
    if not equals:
        if len(names) != 1:
            raise error(
                f"must be {form}, the {what}s are {', '.join(names)}", where=f"--{what} {text}"
            )
        name = names[0]
    _known(name, names, what, f"--{what} {text}")
    return name, path


def _known(name: str, names: Sequence[str], what: str, where: str) -> None:
    if name not in names:
        raise error(f"unknown {what} '{name}'; there are {', '.join(names)}", where=where)
