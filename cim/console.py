"""The frame of every command line: exit codes, diagnostics on stderr, no traceback."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from cim import __version__
from cim.diagnostics import CimError, ExitCode, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

ERROR_LIMIT = 20
PIPE_WIDTH = 160
PROGRESS_AFTER_SECONDS = 1.0


class Parser(argparse.ArgumentParser):
    """Says what is wrong and what was probably meant, instead of all options."""

    def error(self, message: str) -> NoReturn:
        """Ends the program with exit code 2."""
        known = [option for action in self._actions for option in action.option_strings]
        if found := re.match(r"unrecognized arguments: (\S+)", message):
            message += did_you_mean(found[1], known)
        elif found := re.match(r"argument .*invalid choice: '(.*)' \(choose from (.*)\)$", message):
            message += did_you_mean(found[1], [word.strip("'") for word in found[2].split(", ")])
        note = f"note: {self.prog} --help lists the options"
        self.exit(ExitCode.USAGE, f"{self.prog}: error: {message}\n{note}\n")


def parser(
    prog: str, description: str, fromfile_prefix_chars: str | None = None
) -> argparse.ArgumentParser:
    """An argument parser with the options that all tools have."""
    made = Parser(
        prog=prog,
        description=description,
        allow_abbrev=False,
        add_help=False,
        fromfile_prefix_chars=fromfile_prefix_chars,
    )
    made.add_argument("--help", action="help", help="show this and exit")
    made.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    return made


def table_console() -> Console:
    """A console for tables; into a file or pipe it does not fold lines at 80 columns.

    Names of a model may have brackets, which are no markup.
    """
    from rich.console import Console

    class Table(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # `run` knows what to do; rich would exit with 1

    return Table(highlight=False, markup=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


@contextlib.contextmanager
def status(what: str) -> Iterator[None]:
    """Shows, on a terminal, that something goes on of which nobody knows how long it takes."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    # A copy of stderr, which may be shut meanwhile so that a library keeps its news to itself.
    with os.fdopen(os.dup(sys.stderr.fileno()), "w") as terminal, Console(file=terminal).status(what):  # fmt: skip
        yield


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """A function that shows how much of `total` is done, on a terminal, once it has taken a second.

    None where stderr is no terminal: then nothing need be counted.
    """
    if not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()
    bars: list[Any] = []

    def show(done: int) -> None:
        if not bars and time.monotonic() - began > PROGRESS_AFTER_SECONDS:
            from rich.console import Console
            from rich.progress import Progress

            bars.append(Progress(console=Console(stderr=True), transient=True))
            bars[0].start()
            bars[0].add_task(what, total=total)
        if bars:
            bars[0].update(bars[0].task_ids[0], completed=done)

    try:
        yield show
    finally:
        if bars:
            bars[0].stop()


def report(problem: CimError) -> None:
    """Print a failure's diagnostics to stderr, up to its limit."""
    limit = ERROR_LIMIT if problem.limit is None else problem.limit
    for diagnostic in problem.diagnostics[:limit]:
        print(diagnostic.render(), file=sys.stderr)
    rest = len(problem.diagnostics) - limit
    if rest > 0:
        print(f"note: {rest} more errors not shown", file=sys.stderr)


def _use_utf8(tool: str) -> None:
    """Start the tool again in UTF-8 mode where names of files would be of another encoding.

    Names stand in sources, objects and images, which are UTF-8 wherever they are made. Python chooses UTF-8 by
    itself, even in the locale C, unless PYTHONUTF8=0 forbids it.
    """
    is_tool = Path(sys.argv[0]).stem == tool or Path(sys.argv[0]).stem.startswith("cli")
    if sys.getfilesystemencoding() != "utf-8" and is_tool and os.name == "posix":
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606


def run(tool: str, main: Callable[[], int]) -> int:
    """Run a tool's body and turn what it raises into a message and the documented exit code."""
    _use_utf8(tool)
    # A terminal or pipe of another encoding must not turn a message into an exception.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = main()
        sys.stdout.flush()
        return status
    except CimError as problem:
        if os.environ.get("CIM_DEBUG") == "1":
            raise
        report(problem)
        return int(problem.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing to say, and nowhere to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.OK)
    except OSError as problem:
        if os.environ.get("CIM_DEBUG") == "1":
            raise
        where = f" ({problem.filename})" if problem.filename else ", as writing to standard output"
        print(f"{tool}: error: {problem.strerror or problem}{where}", file=sys.stderr)
        # What is still in the buffer would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.INPUT)
    except KeyboardInterrupt:
        print(f"{tool}: interrupted", file=sys.stderr)
        return 130
    except Exception as problem:  # the one place where anything unforeseen ends
        if os.environ.get("CIM_DEBUG") == "1":
            raise
        kind = type(problem).__name__
        print(f"{tool}: internal error: {kind}: {problem}", file=sys.stderr)
        print("note: set CIM_DEBUG=1 for the traceback, and please report it", file=sys.stderr)
        return int(ExitCode.INTERNAL)
