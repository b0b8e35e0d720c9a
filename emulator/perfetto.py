"""A recording as a trace for Perfetto and chrome://tracing (the JSON of the Trace Event Format).

One nanosecond of the trace is one bus clock cycle, whatever the clock's frequency: the format counts in
microseconds and the viewers in nanoseconds, so that other units would be rounded.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from cim.emulator import layout
from cim.emulator.binned import Binned, equal_parts
from cim.emulator.channel_names import ROLES, channel_name, roles_of
from cim.emulator.instruction_texts import InstructionTexts
from cim.emulator.recording import Recording, releases
from cim.isa.model import CLASSES

CORES, BUS = 1, 2  # the processes of the trace
CYCLE = 0.001  # microseconds of the trace
UTILIZATION_POINTS = 500


def perfetto_trace(recording: Recording) -> bytes:
    """The trace as JSON: core tracks, channel tracks, counters, and arrows from CALL to WAIT."""
    texts = InstructionTexts(recording.prepared)
    events = [
        *_names(recording),
        *_instructions(recording, texts),
        *_bursts(recording, texts),
        *_counters(recording),
        *_arrows(recording),
    ]
    config = recording.prepared.config
    about = {
        "unit": "1 ns of the trace is 1 bus clock cycle",
        "clock_hz": recording.machine.clock.frequency_hz,
        "machine": recording.machine.name,
        "image": str(recording.prepared.image.path),
        "bin_sha256": config.bin_sha256,
    }
    content = {"displayTimeUnit": "ns", "otherData": about, "traceEvents": events}
    return msgspec.json.encode(content) + b"\n"


def _names(recording: Recording) -> list[dict[str, Any]]:
    """What the tracks are called. Thread numbers begin at 1: viewers drop a thread 0."""
    found = [
        _meta("process_name", CORES, 0, "cores (1 ns = 1 bus cycle)"),
        _meta("process_name", BUS, 0, "bus"),
    ]
    for position, core in enumerate(recording.prepared.configs):
        name = f"core {core.number}"
        if core.name and core.name != str(core.number):
            name += f" '{core.name}'"
        found.append(_meta("thread_name", CORES, position + 1, name))
    for number in np.unique(recording.records(layout.ON_CHANNEL)["channel"]).tolist():
        found.append(
            _meta("thread_name", BUS, number + 1, channel_name(number, recording.prepared))
        )
    return found


def _meta(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _slice(
    name: str, process: int, thread: int, begin: int, end: int, **details: Any
) -> dict[str, Any]:
    return {
        "ph": "X", "name": name, "pid": process, "tid": thread, "ts": begin * CYCLE,
        "dur": (end - begin) * CYCLE, "args": {"begin_cycle": begin, "end_cycle": end, **details},
    }  # fmt: skip


def _rows(records: NDArray[Any], *fields: str) -> list[tuple[int, ...]]:
    """Fields as Python numbers, which is a hundred times faster than record by record."""
    return list(zip(*(records[name].tolist() for name in fields), strict=True))


def _instructions(recording: Recording, texts: InstructionTexts) -> list[dict[str, Any]]:
    classes = recording.prepared.classes
    executed = recording.records(layout.EXECUTED)
    found = [
        _slice(
            CLASSES[classes[at]], CORES, core + 1, begin, end,
            instruction=texts.text(at), source=texts.source(at), pc=texts.core_of(at)[1],
        )
        for core, at, begin, end in _rows(executed, "core", "at", "begin", "end")
    ]  # fmt: skip
    fetches = recording.records(layout.FETCHING)
    found += [
        _slice("fetch", CORES, core + 1, begin, end)
        for core, begin, end in _rows(fetches, "core", "begin", "end")
    ]
    return found


def _bursts(recording: Recording, texts: InstructionTexts) -> list[dict[str, Any]]:
    names = recording.prepared.names
    count = len(names)
    found = []
    bursts = recording.records(layout.ON_CHANNEL)
    for channel, who, at, since, begin, end in _rows(
        bursts, "channel", "core", "at", "since", "begin", "end"
    ):
        if who >= count:
            name, details = f"core {names[who - count]} fetch", {}
        else:
            name, details = f"core {names[who]}", {"instruction": texts.text(at)}
        found.append(
            _slice(name, BUS, channel + 1, begin, end, waited_cycles=begin - since, **details)
        )
    return found


def _counters(recording: Recording) -> list[dict[str, Any]]:
    found = []
    for name, first, last in (
        ("reads in flight", layout.AR, layout.R),
        ("writes in flight", layout.AW, layout.B),
    ):
        times, values = in_flight(recording, first, last)
        found += [
            _counter(name, time, value)
            for time, value in zip(times.tolist(), values.tolist(), strict=True)
        ]
    edges, shares = utilization(recording, UTILIZATION_POINTS)
    for role, row in shares.items():
        found += [
            _counter(f"{ROLES[role]} busy %", time, round(100 * value, 2))
            for time, value in zip(edges[:-1].tolist(), row.tolist(), strict=True)
        ]
    return found


def _counter(name: str, time: int, value: float) -> dict[str, Any]:
    return {"ph": "C", "name": name, "pid": BUS, "tid": 0, "ts": time * CYCLE, "args": {"": value}}


def in_flight(
    recording: Recording, first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bursts in flight between the grants of two channels, of all sets: the cycles of change, the number from then on."""
    bursts = recording.records(layout.ON_CHANNEL)
    roles = roles_of(bursts["channel"])
    begins, ends = bursts["begin"][roles == first], bursts["end"][roles == last]
    times = np.concatenate([begins, ends])
    steps = np.concatenate([np.ones(begins.size, np.int64), -np.ones(ends.size, np.int64)])
    # Bursts that a window cuts have only one of their ends.
    steps[: begins.size][begins < recording.window.first] = 0
    moments, where = np.unique(times, return_inverse=True)
    changes = np.zeros(moments.size, dtype=np.int64)
    np.add.at(changes, where, steps)
    values = np.cumsum(changes)
    return moments, values - min(0, int(values.min(initial=0)))


def utilization(
    recording: Recording, points: int
) -> tuple[NDArray[np.int64], dict[int, NDArray[np.float64]]]:
    """The share of cycles in which each channel is occupied, all sets together, in equal parts of the window.

    Returns the edges of the parts in bus cycles, and by channel one share a part.
    """
    window = recording.window
    edges = equal_parts(window.first, min(window.stop, recording.cycles), points)
    bursts = recording.records(layout.ON_CHANNEL)
    busy = Binned(len(ROLES), edges)
    busy.add(roles_of(bursts["channel"]), bursts["begin"], bursts["end"])
    return edges, dict(enumerate(busy.cycles() / np.diff(edges)))


def _arrows(recording: Recording) -> list[dict[str, Any]]:
    """From each CALL to the WAIT that it released."""
    executed = recording.records(layout.EXECUTED)
    started = dict(zip(executed["at"].tolist(), executed["begin"].tolist(), strict=True))
    found: list[dict[str, Any]] = []
    for wait, call in releases(recording):
        # A CALL outside the window has no slice that the arrow could start from.
        begin = started.get(int(call["at"]))
        if begin is None:
            continue
        flow = {"cat": "call", "name": "call", "id": len(found) // 2 + 1, "pid": CORES}
        found.append({**flow, "ph": "s", "tid": int(call["core"]) + 1, "ts": begin * CYCLE})
        end = (int(wait["end"]) - 1) * CYCLE
        found.append({**flow, "ph": "f", "bp": "e", "tid": int(wait["core"]) + 1, "ts": end})
    return found
