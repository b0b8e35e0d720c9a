"""The debugger's commands: a replay, stops, and what can be asked in between.

Every command is a method `do_NAME`. Nothing here reads from a terminal or prints:
`debug_shell` does.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

import numpy as np

from cim.diagnostics import CimError, did_you_mean, error
from cim.emulator import breakpoints, why
from cim.emulator.explain import Sources, core_text, instruction_text, place
from cim.emulator.replay import BEGAN, ENDED, Event, Replay
from cim.isa.numerics import DTYPES

ALIASES = {
    "b": "break", "c": "continue", "s": "step", "p": "print", "l": "list", "i": "info", "q": "quit",
    "d": "delete", "h": "help", "?": "help", "r": "restart", "w": "watch", "exit": "quit", "run": "continue",
    "stepi": "step", "si": "step", "tbreak": "break",
}  # fmt: skip
HELP = {
    "continue": ("continue", "go on to the next stop or to the end"),
    "until": ("until CYCLE", "go on to the end of a bus cycle"),
    "cycle": ("cycle [N]", "go on for N bus cycles of the machine (1)"),
    "step": ("step [N]", "go on until the current core has completed N instructions (1)"),
    "finish": ("finish", "go on until the current core has finished its program"),
    "restart": ("restart", "go back to cycle 0; stops stay"),
    "break": ("break FILE:LINE | CORE:PC | CORE | LABEL", "stop before an instruction begins"),
    "watch": (
        "watch seq CORE | REGION[LO:HI] | ADDRESS[:BYTES]",
        "stop when a CALL or a store arrives there",
    ),
    "delete": ("delete [N]", "remove a stop, or all of them"),
    "core": ("core [CORE]", "make a core, by number or name, the current one"),
    "info": ("info cores | core | stops | regions", "what there is and where it stands"),
    "why": ("why [CORE]", "what a core waits for, and who must act"),
    "print": (
        "print WHAT",
        "a buffer or parameter of the current core, a region, seq, pc; with [LO:HI] a part",
    ),
    "x": ("x ADDRESS [TYPE] [COUNT]", "elements of shared memory; TYPE is i8 u8 i32 f32 (u8)"),
    "list": ("list", "the source around the current core's place; again: further on"),
    "help": ("help [COMMAND]", "what the commands do"),
    "quit": ("quit", "leave"),
}
LISTED_LINES = 10
ELEMENTS_A_LINE = 16
CORES_SHOWN = 64


class Debugger:
    """A session. `say` takes each line of output."""

    def __init__(self, replay: Replay, say: Callable[[str], None]) -> None:
        self.replay = replay
        self.prepared = replay.prepared
        self.say = say
        self.sources = Sources(replay.prepared.image)
        self.stops: dict[int, breakpoints.Stop] = {}
        self.numbers = 0
        self.core = 0
        self.listed: tuple[str, int] | None = None

    def run_command(self, line: str) -> bool:
        """Execute a line; False if the session is over. Raises `CimError` for what cannot be done."""
        text = line.split("#", maxsplit=1)[0].strip()
        if not text:
            return True
        try:
            name, *words = shlex.split(text)
        except ValueError as problem:
            raise error(f"{problem}") from None
        name = ALIASES.get(name, name)
        if name == "quit":
            return False
        method = getattr(self, f"do_{name}", None)
        if method is None:
            raise error(f"unknown command '{name}'{did_you_mean(name, HELP)}: try 'help'")
        method(words)
        return True

    # --- going on ------------------------------------------------------------------------------------------

    def do_continue(self, words: list[str]) -> None:
        """Go on to the next stop or to the end."""
        self._none(words)
        self._go(lambda _event: False)

    def do_until(self, words: list[str]) -> None:
        """Go on to the end of a bus cycle."""
        goal = self._count(words, None)
        if goal <= self.replay.now:
            raise error(f"it is cycle {self.replay.now}; 'restart' goes back to the beginning")
        self._cycles(goal)

    def do_cycle(self, words: list[str]) -> None:
        """Go on for N bus cycles of the machine (1)."""
        self._cycles(self.replay.now + self._count(words, 1))

    def do_step(self, words: list[str]) -> None:
        """Go on until the current core has completed N instructions (1)."""
        left = self._count(words, 1)
        if self.replay.finished(self.core):
            raise error(f"{core_text(self.prepared, self.core)} has finished")

        def done(event: Event) -> bool:
            nonlocal left
            left -= event.kind == ENDED and event.core == self.core
            return left == 0

        self._go(done)

    def do_finish(self, words: list[str]) -> None:
        """Go on until the current core has finished its program."""
        self._none(words)
        self._go(lambda _event: self.replay.finished(self.core))

    def do_restart(self, words: list[str]) -> None:
        """Go back to cycle 0; stops stay."""
        self._none(words)
        self.replay.restart()
        self.say("cycle 0")

    def _cycles(self, goal: int) -> None:
        replay = self.replay
        while (event := replay.peek()) is not None and event.time <= goal:
            if self._stopped_before(event):
                return
            replay.step()
            if self._stopped_after(event):
                return
        if replay.peek() is None:
            self._ended()
            return
        replay.now = goal
        self._where()

    def _go(self, done: Callable[[Event], bool]) -> None:
        """Apply events up to a stop, the end, or one after which `done`."""
        replay = self.replay
        first = True
        while (event := replay.peek()) is not None:
            # The instruction at which it stands does not stop it again.
            if not (first and self._stands_at(event)) and self._stopped_before(event):
                return
            first = False
            replay.step()
            if self._stopped_after(event):
                return
            if done(event):
                self._where()
                return
        replay.step()
        self._ended()

    def _stands_at(self, event: Event) -> bool:
        return self._last_stop == self.replay.position and event.kind == BEGAN

    _last_stop = -1

    def _stopped_before(self, event: Event) -> bool:
        if self._last_stop == self.replay.position:
            return False
        for number, stop in self.stops.items():
            if isinstance(stop, breakpoints.Breakpoint) and stop.hit(event):
                self._last_stop = self.replay.position
                self.replay.now = event.time
                self.core = event.core
                self.say(f"breakpoint {number}: {stop.text}")
                self._where()
                return True
        return False

    def _stopped_after(self, event: Event) -> bool:
        for number, stop in self.stops.items():
            if isinstance(stop, breakpoints.Breakpoint) or not stop.hit(event):
                continue
            by = core_text(self.prepared, event.core)
            if isinstance(stop, breakpoints.SeqWatch):
                value = self.replay.state(stop.core).seq_nr
                self.say(f"watch {number}: {stop.text} is {value}, by a CALL of {by}")
            else:
                self.say(
                    f"watch {number}: {stop.text}: bytes {event.extra:#x} to {event.stop - 1:#x} "
                    f"written by {by}"
                )
            self.core = event.core
            self._where()
            return True
        return False

    def _ended(self) -> None:
        failure = self.replay.failure
        self.say(f"cycle {self.replay.now}")
        if failure is None:
            self.say(f"all cores have finished, in {self.replay.cycles} cycles")
        else:
            self.say(str(failure))

    def _where(self) -> None:
        core, view = self.core, self.replay.cores[self.core]
        self.say(f"cycle {self.replay.now}, {core_text(self.prepared, core)}")
        if self.replay.finished(core):
            self.say("  finished")
            return
        state = "" if view.since is None else f", in progress since cycle {view.since}"
        text = instruction_text(self.prepared, core, view.pc)
        self.say(f"  {place(self.prepared, core, view.pc)}: {text}{state}")
        self.listed = None

    # --- stops -----------------------------------------------------------------------------------------------

    def do_break(self, words: list[str]) -> None:
        """Stop before an instruction begins."""
        if len(words) != 1:
            raise error("must be: break FILE:LINE, CORE:PC, CORE or LABEL")
        self._add(breakpoints.parse_breakpoint(self.prepared, self.sources, words[0]))

    def do_watch(self, words: list[str]) -> None:
        """Stop when a CALL or a store arrives there."""
        self._add(breakpoints.parse_watch(self.prepared, words))

    def _add(self, stop: breakpoints.Stop) -> None:
        self.numbers += 1
        self.stops[self.numbers] = stop
        self.say(_described(self.numbers, stop))

    def do_delete(self, words: list[str]) -> None:
        """Remove a stop, or all of them."""
        if not words:
            self.stops.clear()
            return
        number = self._count(words, None)
        if number not in self.stops:
            raise error(f"there is no stop {number}")
        del self.stops[number]

    # --- looking ---------------------------------------------------------------------------------------------

    def do_core(self, words: list[str]) -> None:
        """Make a core, by number or name, the current one."""
        if words:
            self.core = breakpoints.parse_core(self.prepared, words[0])
        self._where()

    def do_info(self, words: list[str]) -> None:
        """What there is and where it stands."""
        topics = {
            "cores": self._info_cores, "core": lambda: self._info_core(self.core),
            "stops": self._info_stops, "breakpoints": self._info_stops, "regions": self._info_regions,
        }  # fmt: skip
        if len(words) != 1 or words[0] not in topics:
            raise error("must be: info cores, info core, info stops or info regions")
        topics[words[0]]()

    def _info_cores(self) -> None:
        cores = range(len(self.prepared.configs))
        self.say(f"cycle {self.replay.now}")
        for core in cores[:CORES_SHOWN]:
            view = self.replay.cores[core]
            seq_nr = self.replay.state(core).seq_nr
            mark = "*" if core == self.core else " "
            name = core_text(self.prepared, core)
            if self.replay.finished(core):
                self.say(f"{mark} {name}: SEQ_NR {seq_nr}, finished")
                continue
            doing = "next" if view.since is None else f"since {view.since}"
            where = place(self.prepared, core, view.pc)
            text = instruction_text(self.prepared, core, view.pc)
            self.say(f"{mark} {name}: SEQ_NR {seq_nr}, {where}, {doing}: {text}")
        if len(cores) > CORES_SHOWN:
            self.say(f"  and {len(cores) - CORES_SHOWN} more")

    def _info_core(self, core: int) -> None:
        config = self.prepared.configs[core]
        state = self.replay.state(core)
        self.say(f"{core_text(self.prepared, core)}: hg {config.hg}, vg {config.vg}")
        self.say(
            f"  SEQ_NR {state.seq_nr}, pc {self.replay.cores[core].pc} of {len(state.decoded.index)}"
        )
        self.say(f"  crossbar: {config.rows} rows, {config.columns} columns used")
        for line in why.explain_core(self.replay, core):
            self.say(f"  {line}")

    def _info_stops(self) -> None:
        for number, stop in self.stops.items():
            self.say(_described(number, stop))
        if not self.stops:
            self.say("no stops; 'break' and 'watch' make them")

    def _info_regions(self) -> None:
        for region in self.prepared.config.regions:
            shape = "x".join(map(str, region.shape)) or "1"
            last = region.address + region.size_bytes - 1
            self.say(f"{region.name}: {region.address:#x} to {last:#x}, {shape} {region.type}")

    def do_why(self, words: list[str]) -> None:
        """What a core waits for, and who must act."""
        core = breakpoints.parse_core(self.prepared, words[0]) if words else self.core
        for line in why.explain_core(self.replay, core):
            self.say(line)

    def do_print(self, words: list[str]) -> None:
        """A buffer or parameter of the current core, a region, seq, pc; with [LO:HI] a part."""
        if len(words) != 1:
            raise error("must be: print WHAT, as in print ob[0:8] or print ofm")
        name, lo, hi = breakpoints.parse_slice(words[0])
        state = self.replay.state(self.core)
        if name == "seq":
            self.say(f"SEQ_NR {state.seq_nr}")
            return
        if name == "pc":
            self.say(f"pc {self.replay.cores[self.core].pc}")
            return
        own = {key: buffer.data for key, buffer in state.buffers.items()} | state.parameters
        if name in own:
            values = own[name]
        else:
            regions = {region.name: region for region in self.prepared.config.regions}
            if name not in regions:
                hint = did_you_mean(name, [*own, *regions, "seq", "pc"])
                raise error(f"'{name}' is no buffer, parameter or region{hint}")
            begin, stop = breakpoints.parse_memory(self.prepared, name)
            values = self.replay.interpreter.memory[begin:stop].view(DTYPES[regions[name].type])
        first, last = lo or 0, len(values) if hi is None else hi
        if not 0 <= first < last <= len(values):
            raise error(f"{name} has elements 0 to {len(values) - 1}")
        self._elements(values[first:last], first)

    def do_x(self, words: list[str]) -> None:
        """Elements of shared memory; TYPE is i8 u8 i32 f32 (u8)."""
        if not words or len(words) > 3:
            raise error("must be: x ADDRESS [TYPE] [COUNT]")
        type_name = words[1] if len(words) > 1 else "u8"
        if type_name not in DTYPES:
            raise error(f"unknown type '{type_name}': must be one of {', '.join(DTYPES)}")
        count = self._count(words[2:], 16)
        size = DTYPES[type_name].itemsize
        begin, _ = breakpoints.parse_memory(self.prepared, words[0])
        memory = self.replay.interpreter.memory[begin : begin + count * size]
        if memory.size < count * size:
            raise error(f"shared memory has {self.prepared.config.memory_bytes} bytes")
        self._elements(np.frombuffer(memory.tobytes(), DTYPES[type_name]), begin, size)

    def _elements(self, values: np.ndarray, first: int, step: int = 1) -> None:
        texts = [
            f"{value:.6g}" if values.dtype.kind == "f" else str(value) for value in values.tolist()
        ]
        width = max(map(len, texts), default=1)
        for at in range(0, len(texts), ELEMENTS_A_LINE):
            row = " ".join(text.rjust(width) for text in texts[at : at + ELEMENTS_A_LINE])
            place_ = first + at * step
            self.say(f"  [{place_}] {row}" if step == 1 else f"  {place_:#x} {row}")

    def do_list(self, words: list[str]) -> None:
        """The source around the current core's place; again: further on."""
        self._none(words)
        view = self.replay.cores[self.core]
        if self.replay.finished(self.core) and self.listed is None:
            raise error(f"{core_text(self.prepared, self.core)} has finished")
        current = None
        if not self.replay.finished(self.core):
            current = self.prepared.image.location(self.prepared.configs[self.core], view.pc)
        if self.listed is None:
            assert current is not None
            self.listed = (current.file, max(1, current.line - LISTED_LINES // 2))
        file, line = self.listed
        source = self.sources.source(file)
        if source is None:
            self._list_instructions()
            return
        stop = min(line + LISTED_LINES, len(source.lines) + 1)
        if line >= stop:
            raise error(f"{file} has {len(source.lines)} lines")
        for number in range(line, stop):
            mark = "->" if current and (current.file, current.line) == (file, number) else "  "
            self.say(f"{mark} {number:>5} {source.line(number)}".rstrip())
        self.listed = (file, stop)

    def _list_instructions(self) -> None:
        """What stands there when its source cannot be found."""
        view = self.replay.cores[self.core]
        begin, end = self.prepared.span(self.core)
        first = max(0, view.pc - LISTED_LINES // 2)
        for pc in range(first, min(first + LISTED_LINES, end - begin)):
            mark = "->" if pc == view.pc else "  "
            self.say(
                f"{mark} {pc:>5} {instruction_text(self.prepared, self.core, pc).strip(chr(39))}"
            )

    def do_help(self, words: list[str]) -> None:
        """What the commands do."""
        names = [ALIASES.get(word, word) for word in words] or list(HELP)
        for name in names:
            if name not in HELP:
                raise error(f"unknown command '{name}'{did_you_mean(name, HELP)}")
            usage, text = HELP[name]
            short = [alias for alias, full in ALIASES.items() if full == name and len(alias) == 1]
            self.say(f"{usage}{f' ({chr(44).join(short)})' if short else ''}: {text}")

    # --- arguments -------------------------------------------------------------------------------------------

    def _none(self, words: list[str]) -> None:
        if words:
            raise error(f"takes no argument, not '{words[0]}'")

    def _count(self, words: list[str], default: int | None) -> int:
        if not words and default is not None:
            return default
        if len(words) != 1 or not words[0].isdecimal() or int(words[0]) < 1:
            raise error(f"must be one number from 1 upwards, not '{' '.join(words)}'")
        return int(words[0])


def _described(number: int, stop: breakpoints.Stop) -> str:
    if isinstance(stop, breakpoints.Breakpoint):
        count = len(stop.instructions)
        return f"breakpoint {number}: {stop.text} ({count} instruction{'s' * (count != 1)})"
    return f"watch {number}: {stop.text}"


def command_error(problem: CimError) -> str:
    """What to say when a command fails."""
    return "error: " + "; ".join(diagnostic.message for diagnostic in problem.diagnostics)
