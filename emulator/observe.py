"""The views of a run that the command line offers: each a file made from one recording."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cim.diagnostics import usage_error

if TYPE_CHECKING:  # --help needs none of it, nor NumPy
    import numpy as np
    from numpy.typing import NDArray

    from cim.emulator.errors import RunError
    from cim.emulator.prepare import Prepared
    from cim.emulator.recording import Recording
    from cim.emulator.stats import Stats
    from cim.isa.machine import Machine


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that ask for views."""
    group = parser.add_argument_group("what happened when")
    group.add_argument("--trace", metavar="T.json", help="write a trace for Perfetto")
    group.add_argument(
        "--report", metavar="R.html", help="write a page that shows where the time went"
    )
    group.add_argument("--vcd", metavar="T.vcd", help="write waves for GTKWave")
    group.add_argument(
        "--trace-from", metavar="CYCLE", type=_cycle, default=0, help="where trace and waves begin"
    )
    group.add_argument("--trace-to", metavar="CYCLE", type=_cycle, help="where they end")
    group.add_argument(
        "--trace-cores", metavar="LIST", type=_cores, help="the cores they show, as in 0,3-7"
    )


def _cycle(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' must be a bus cycle, a number from 0 upwards")
    return int(text)


def _cores(text: str) -> frozenset[int]:
    from cim.emulator.recording import parse_cores

    try:
        return parse_cores(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def outputs(args: argparse.Namespace) -> list[str]:
    """The files that are asked for."""
    return [path for path in (args.trace, args.vcd, args.report) if path]


def recording_for(
    args: argparse.Namespace, prepared: Prepared, machine: Machine
) -> Recording | None:
    """What a run must be recorded into, None if no view is asked for. Raises `CimError`."""
    if not (args.trace or args.vcd):
        if args.trace_from or args.trace_to is not None or args.trace_cores is not None:
            raise usage_error(
                "say what --trace or --vcd shows: give one of them", "--trace-from/-to/-cores"
            )
        return None
    from cim.emulator import layout
    from cim.emulator.recording import Recording, Window

    stop = layout.LAST_TIME if args.trace_to is None else args.trace_to
    if stop <= args.trace_from:
        raise usage_error(f"must be more than --trace-from {args.trace_from}", f"--trace-to {stop}")
    unknown = sorted((args.trace_cores or frozenset()) - set(prepared.names))
    if unknown:
        numbers = prepared.names
        raise usage_error(
            f"core {unknown[0]} has no program; the image has {len(numbers)} cores, numbers {numbers[0]} "
            f"to {numbers[-1]}",
            "--trace-cores",
        )
    return Recording(prepared, machine, Window(args.trace_from, stop, args.trace_cores))


def files_of(args: argparse.Namespace, recording: Recording) -> dict[Path, bytes]:
    """The views of a recording."""
    files = {}
    if args.trace:
        from cim.emulator.perfetto import perfetto_trace

        files[Path(args.trace)] = perfetto_trace(recording)
    if args.vcd:
        from cim.emulator.vcd import vcd_dump

        files[Path(args.vcd)] = vcd_dump(recording)
    return files


def report_of(
    args: argparse.Namespace, prepared: Prepared, machine: Machine, memory: NDArray[np.uint8],
    outcome: Stats | RunError,
) -> dict[Path, bytes]:  # fmt: skip
    """The page of a run that finished with these statistics, or failed."""
    if not args.report:
        return {}
    from cim.emulator.errors import RunError
    from cim.emulator.report import html_report
    from cim.emulator.report_data import gather

    if isinstance(outcome, RunError):
        data = gather(prepared, machine, memory, outcome.cycle, args.max_cycles)
        page = html_report(data, machine, failure=outcome.diagnostics[0].message)
    else:
        data = gather(prepared, machine, memory, outcome.cycles_per_image[0], args.max_cycles)
        page = html_report(data, machine, outcome)
    return {Path(args.report): page}
