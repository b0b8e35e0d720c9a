"""The command line of `cim-emu`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cim import console
from cim.diagnostics import Source, error, usage_error
from cim.emulator import observe
from cim.files import check_outputs, read_bytes, read_text, write_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cim.emulator.prepare import Prepared
    from cim.isa.machine import Machine

DESCRIPTION = "Runs an image on the emulated chip: values, cycles and statistics."


def main(argv: Sequence[str] | None = None) -> int:
    """Run `cim-emu` and return its exit code."""
    args = make_parser().parse_args(argv)
    return console.run("cim-emu", lambda: run(args))


def make_parser() -> argparse.ArgumentParser:
    """The options of `cim-emu`."""
    parser = console.parser("cim-emu", DESCRIPTION)
    parser.add_argument(
        "file", metavar="FILE", help="a .cfg of cim-ld or cim-cc, or a network.json"
    )
    parser.add_argument(
        "--input", metavar="X.npy", action="append",
        help="the input, as the model has it; NAME=X.npy for one of several, or an .npz with all by name",
    )  # fmt: skip
    parser.add_argument(
        "--output", metavar="Y.npy", action="append",
        help="write the output, as the model has it; NAME=Y.npy for one of several",
    )  # fmt: skip
    parser.add_argument("--stats", metavar="S.json", help="write cycles and counts")
    parser.add_argument(
        "--set", metavar="KEY=V", action="append", default=[], dest="settings",
        help="change a timing key of the machine, as in bus.width_bytes=32",
    )  # fmt: skip
    parser.add_argument(
        "--load", metavar="REGION=FILE.npy", action="append", default=[],
        help="fill a region of shared memory before the run",
    )  # fmt: skip
    parser.add_argument(
        "--dump", metavar="REGION=FILE.npy", action="append", default=[],
        help="write a region after the run (of a batch: after its last image)",
    )  # fmt: skip
    parser.add_argument(
        "--max-cycles",
        metavar="N",
        type=_natural,
        help="stop an inference that takes more bus cycles; of a network, a layer or a turn of one",
    )
    parser.add_argument(
        "--check", action="store_true", help="compare the output with the NumPy reference"
    )
    parser.add_argument(
        "--timing-only", action="store_true",
        help="compute no values: the same cycles and counts, sooner",
    )  # fmt: skip
    observe.add_options(parser)
    parser.add_argument("--debug", action="store_true", help="debug the run, from the terminal")
    parser.add_argument(
        "-x", metavar="SCRIPT", dest="script", help="debug it with commands from a file"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no summary")
    return parser


def _natural(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' must be a number of cycles from 1 upwards")
    return number


def run(args: argparse.Namespace) -> int:
    """The body of the command. Raises `CimError` for everything that goes wrong."""
    for option in ("load", "dump"):
        _pairs(getattr(args, option), f"--{option}")
    _refuse_what_is_no_image(args.file)
    if _is_network(args.file):
        from cim.emulator.network_cli import run_network_command

        return run_network_command(args)
    return run_image_command(args)


def _refuse_what_is_no_image(name: str) -> None:
    """A folder and a model are what people give instead; says what to do about it."""
    path = Path(name)
    if name and path.is_dir():
        network = path / "network.json"
        notes = [f"give {network}" if network.exists() else "give a layer's cfg, or a network.json"]
        raise error("is a folder, must be a cfg or a network.json", where=name, notes=notes)
    if path.suffix in (".onnx", ".keras", ".h5"):
        raise error(
            "is a model, must be a cfg or a network.json",
            where=name,
            notes=[f"compile it first: cim-cc {name} -o build"],
        )


def _is_network(name: str) -> bool:
    """Whether the file says that it is a network; what is no JSON is left to the reader of images."""
    try:
        content = json.loads(read_bytes(name))
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("format") == "cim-network"


def run_image_command(args: argparse.Namespace) -> int:
    """Run one image: read everything, run, then write everything."""
    # Imported here so that `--help` needs neither NumPy nor the engine.
    from cim.asm.read_image import read_image
    from cim.emulator import host, stats
    from cim.emulator.arrays import npy_bytes, read_npy
    from cim.emulator.prepare import prepare
    from cim.emulator.run import RunError, execute
    from cim.emulator.settings import timing_machine

    _check_outputs(args)
    if args.timing_only:
        for option, given in (
            ("--input", args.input), ("--output", args.output), ("--dump", args.dump), ("--check", args.check),
        ):  # fmt: skip
            if given:
                raise usage_error("needs values, --timing-only computes none", option)
    image = read_image(args.file)
    machine = timing_machine(image.config.machine, args.settings)
    if args.input or args.output or args.check:
        layer = host.layer_of(image)
        if layer.turn_ends and (args.output or args.check):
            raise error(
                f"is layer '{layer.title}': its output is complete after the last turn",
                where=args.file,
                notes=["give the network.json beside it, which names all turns in order"],
            )
    source, target = _only(args.input, "--input"), _only(args.output, "--output")
    if args.check and not source:
        raise error("--check needs --input", where="cim-emu")
    memory = image.memory()
    for name, path in _pairs(args.load, "--load"):
        host.write_region(image, memory, image.config.region(name), read_npy(path))
    dumps = [(image.config.region(name), path) for name, path in _pairs(args.dump, "--dump")]
    x = read_npy(source) if source else None
    if x is not None:
        host.batch_size(image, x)
    prepared = prepare(image)
    if args.debug or args.script:
        if x is not None:
            host.write_region(image, memory, image.config.region("ifm"), host.to_ifm(image, x))
        return _debug(args, prepared, machine, memory)
    recording = observe.recording_for(args, prepared, machine)
    files: dict[Path, bytes] = {}
    output: NDArray[Any] | None = None
    count = 1 if x is None else host.batch_size(image, x)
    try:
        with console.progress("emulating", count * len(prepared.program)) as show:
            if x is not None:
                done = host.run_layer(
                    prepared, x, memory, machine, args.max_cycles, sink=recording, progress=show
                )
                results, output = done.results, done.output
            else:
                values = not args.timing_only
                results = [
                    execute(
                        prepared, memory, machine, args.max_cycles, values=values, sink=recording,
                        progress=show,
                    )
                ]  # fmt: skip
                output = host.from_ofm(image, results[0].memory) if target else None
    except RunError as failure:
        # What led there is what the views were asked for.
        if recording is not None:
            files |= observe.files_of(args, recording)
        files |= observe.report_of(args, prepared, machine, memory, failure)
        write_all(files)
        raise
    if recording is not None:
        files |= observe.files_of(args, recording)
    if args.check and x is not None and output is not None:
        from cim.emulator.check import check_layer

        check_layer(image, x, output)
    if target and output is not None:
        files[Path(target)] = npy_bytes(output)
    for region, path in dumps:
        files[Path(path)] = npy_bytes(host.read_region(image, results[-1].memory, region))
    collected = stats.collect(results)
    files |= observe.report_of(args, prepared, machine, memory, collected)
    if args.stats:
        files[Path(args.stats)] = stats.encode_stats(collected)
    write_all(files)
    if not args.quiet:
        from cim.emulator.summary import print_summary

        bound = collected.lower_bound
        print_summary(collected, bound.cycles, bound.binding)
        if args.check:
            print("checked: the layer agrees with the NumPy reference")
    return 0


def _debug(
    args: argparse.Namespace, prepared: Prepared, machine: Machine, memory: NDArray[Any]
) -> int:
    """Debug instead of running. The debugger's exit code says whether its script was understood."""
    from cim.emulator.debug_shell import run_interactive, run_script
    from cim.emulator.replay import Replay

    for option, given in (
        ("--output", args.output), ("--dump", args.dump), ("--check", args.check), ("--stats", args.stats),
        ("--timing-only", args.timing_only), ("--trace", args.trace), ("--vcd", args.vcd), ("--report", args.report),
    ):  # fmt: skip
        if given:
            raise usage_error("cannot be used with --debug", option)
    # Read before the run, which may take long.
    script = Source(args.script, read_text(args.script)) if args.script else None
    replay = Replay(prepared, machine, memory, args.max_cycles)
    if script is None:
        run_interactive(replay)
    else:
        run_script(replay, script)
    return 0


def _check_outputs(args: argparse.Namespace) -> None:
    """No output may be an input or another output. Raises `CimError`."""

    def paths(texts: Sequence[str] | None) -> list[str]:
        return [text.rpartition("=")[2] for text in texts or ()]

    check_outputs(
        [
            *paths(args.output),
            *paths(args.dump),
            *([args.stats] if args.stats else []),
            *observe.outputs(args),
        ],
        [args.file, *paths(args.input), *paths(args.load)],
    )


def _only(texts: Sequence[str] | None, option: str) -> str | None:
    if texts and len(texts) > 1:
        raise error("a layer has one input and one output", where=f"{option} {texts[1]}")
    return texts[0] if texts else None


def _pairs(texts: Sequence[str], option: str) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise usage_error("must be REGION=FILE.npy", f"{option} {text}")
        pairs.append((name, path))
    return pairs


if __name__ == "__main__":
    sys.exit(main())
