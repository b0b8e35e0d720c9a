"""A recording as a Value Change Dump for GTKWave and other wave viewers. One time unit is one bus cycle."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from vcd import VCDWriter

from cim.emulator import layout
from cim.emulator.channel_names import channel_name
from cim.emulator.recording import Recording
from cim.isa.model import CLASSES

IDLE = ""  # a string signal between instructions


def vcd_dump(recording: Recording) -> bytes:
    """Signals: of each core what it does, its pc and SEQ_NR; of each channel who has it (-1: no one).

    Wave viewers know no unit "cycle": the time scale says 1 ns.
    """
    text = io.StringIO()
    comment = f"1 ns is 1 bus clock cycle ({recording.machine.clock.frequency_hz} Hz)"
    first = recording.window.first
    with VCDWriter(
        text, timescale="1 ns", date="", comment=comment, init_timestamp=first
    ) as writer:
        changes = [*_core_changes(recording, writer), *_channel_changes(recording, writer)]
        # Several changes of a signal in one cycle: the last one counts, as it was recorded.
        changes.sort(key=lambda change: change[0])
        for time, signal, value in changes:
            writer.change(signal, max(time, first), value)
        writer.close(max(recording.cycles, first))
    return text.getvalue().encode()


def _core_changes(recording: Recording, writer: VCDWriter) -> list[tuple[int, Any, Any]]:
    prepared = recording.prepared
    executed = recording.records(layout.EXECUTED)
    calls = recording.records(layout.ARRIVED)
    shown = np.unique(executed["core"]).tolist()
    changes: list[tuple[int, Any, Any]] = []
    for core in shown:
        scope = f"core{prepared.configs[core].number}"
        state = writer.register_var(scope, "state", "string", init=IDLE)
        pc = writer.register_var(scope, "pc", "integer", size=32, init=0)
        seq_nr = writer.register_var(scope, "seq_nr", "integer", size=32, init=0)
        mine = executed[executed["core"] == core]
        start = int(prepared.starts[core])
        for at, begin, end in zip(
            mine["at"].tolist(), mine["begin"].tolist(), mine["end"].tolist(), strict=True
        ):
            changes.append((begin, state, CLASSES[prepared.classes[at]]))
            changes.append((begin, pc, at - start))
            changes.append((end, state, IDLE))
        arrivals = calls["begin"][calls["channel"] == core].tolist()
        changes += [(time, seq_nr, count) for count, time in enumerate(arrivals, 1)]
    return changes


def _channel_changes(recording: Recording, writer: VCDWriter) -> list[tuple[int, Any, Any]]:
    names = recording.prepared.names
    bursts = recording.records(layout.ON_CHANNEL)
    changes: list[tuple[int, Any, Any]] = []
    for channel in np.unique(bursts["channel"]).tolist():
        name = channel_name(channel, recording.prepared).replace(" ", "_")
        owner = writer.register_var("bus", f"{name}_core", "integer", size=32, init=-1)
        mine = bursts[bursts["channel"] == channel]
        for who, begin, end in zip(
            mine["core"].tolist(), mine["begin"].tolist(), mine["end"].tolist(), strict=True
        ):
            changes.append((end, owner, -1))
            changes.append((begin, owner, names[who % len(names)]))
    return changes
