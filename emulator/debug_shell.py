"""The debugger at a terminal, or driven by a script."""

from __future__ import annotations

import contextlib
import sys

from cim.diagnostics import CimError, Diagnostic, Source, Span
from cim.emulator.debugger import Debugger, command_error
from cim.emulator.replay import Replay

PROMPT = "(cim) "


def run_script(replay: Replay, source: Source) -> None:
    """Execute commands, each shown before its output. Raises `CimError` with the line that fails."""
    debugger = Debugger(replay, print)
    for number, line in enumerate(source.lines, 1):
        if line.strip():
            print(PROMPT + line.strip())
        try:
            if not debugger.run_command(line):
                return
        except CimError as problem:
            span = Span(source, number, len(line) - len(line.lstrip()) + 1, len(line.rstrip()) + 1)
            raise CimError([Diagnostic(d.message, span) for d in problem.diagnostics]) from None


def run_interactive(replay: Replay) -> None:
    """Read commands from stdin to its end. An empty line repeats the last command, as in gdb."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (line editing, where the system has it)
    debugger = Debugger(replay, print)
    terminal = sys.stdin.isatty()
    last = ""
    while True:
        try:
            line = input(PROMPT if terminal else "")
        except EOFError:
            return
        except KeyboardInterrupt:
            print()
            continue
        line = line.strip() or (last if terminal else "")
        last = line
        try:
            if not debugger.run_command(line):
                return
        except CimError as problem:
            print(command_error(problem))
        except KeyboardInterrupt:
            print(f"interrupted in cycle {replay.now}")
