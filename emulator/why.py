"""Why a core does not go on, and who must act, in the middle of a replay."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from cim.emulator import layout
from cim.emulator.channel_names import channel_name
from cim.emulator.explain import (
    bytes_of,
    callers_of,
    core_text,
    instruction_text,
    place,
    who_puts,
)
from cim.emulator.replay import Replay


def explain_core(replay: Replay, core: int) -> list[str]:
    """What a core (a position) is doing in this cycle; lines of text."""
    prepared = replay.prepared
    name = core_text(prepared, core)
    view = replay.cores[core]
    if replay.finished(core):
        return [f"{name} has finished"]
    where = f"{place(prepared, core, view.pc)}: {instruction_text(prepared, core, view.pc)}"
    if view.since is None:
        return [f"{name} is not blocked: its next is {where}"]
    at = int(prepared.starts[core]) + view.pc
    op = int(prepared.program["op"][at])
    if op == layout.WAIT:
        return [f"{name} is blocked at {where}", *_waiting(replay, core, at)]
    if op in (layout.LOAD, layout.STORE, layout.CALL):
        return [
            f"{name} is in {where}, since cycle {view.since}",
            *_access(replay, core, at),
            *_entries(replay, at),
        ]
    return [f"{name} computes {where}, since cycle {view.since}; it waits for no one"]


def _places(replay: Replay) -> NDArray[Any]:
    """The cores where the replay has them."""
    cores = replay.prepared.cores.copy()
    cores["pc"] = replay.prepared.starts + [view.pc for view in replay.cores]
    return cores


def _entries(replay: Replay, at: int) -> list[str]:
    """Who makes valid what a TAKE reads."""
    access = replay.prepared.program[at]
    if access["op"] != layout.LOAD or not access["a"]:
        return []
    begin, stop = bytes_of(replay.prepared, access)
    return [
        f"  its entries, bytes {begin:#x} to {stop - 1:#x}, must be valid:",
        *who_puts(replay.prepared, _places(replay), begin, stop),
    ]


def _waiting(replay: Replay, core: int, at: int) -> list[str]:
    prepared = replay.prepared
    goal, now = int(prepared.program["arg"][at]), replay.state(core).seq_nr
    lines = [f"  SEQ_NR is {now}, the wait needs {goal}: {goal - now} more CALLs"]
    cores = _places(replay)
    callers = callers_of(prepared, cores, core)
    total = sum(caller.total for caller in callers)
    for caller in callers:
        if caller.next_pc is None:
            continue
        view = replay.cores[caller.core]
        who = core_text(prepared, caller.core)
        lines.append(
            f"  {who} owes it: its next CALL is {place(prepared, caller.core, caller.next_pc)}"
        )
        if view.pc == caller.next_pc:
            lines.append("    and it is at this CALL")
        else:
            doing = "is executing" if view.since is not None else "comes to"
            lines.append(f"    it {doing} {place(prepared, caller.core, view.pc)} first")
    if total < goal:
        lines.append(
            f"  all programs have {total} CALLs to it, the wait needs {goal}: it never ends"
        )
    elif all(caller.next_pc is None for caller in callers):
        lines.append("  no core has a CALL to it left: it never ends")
    return lines


def _access(replay: Replay, core: int, at: int) -> list[str]:
    """Which channel the access waits for or holds, from the bursts still to come."""
    bursts = replay.bursts
    now = replay.now
    mine = bursts[(bursts["core"] == core) & (bursts["at"] == at) & (bursts["end"] > now)]
    if not mine.size:
        return ["  its last response has come"]
    asking = mine[(mine["since"] <= now) & (mine["begin"] > now)]
    holding = mine[(mine["begin"] <= now)]
    lines = []
    for burst in holding:
        held = channel_name(int(burst["channel"]), replay.prepared)
        lines.append(f"  it holds {held} until cycle {burst['end']}")
    for burst in asking[:4]:
        channel = int(burst["channel"])
        others = bursts[
            (bursts["channel"] == channel) & (bursts["begin"] <= now) & (bursts["end"] > now)
        ]
        ahead = bursts[
            (bursts["channel"] == channel) & (bursts["begin"] > now) & (bursts["begin"] < burst["begin"])
        ]  # fmt: skip
        who = f", which {_who(replay, int(others[0]['core']))} has" if others.size else ""
        lines.append(
            f"  it has asked for {channel_name(channel, replay.prepared)} since cycle {burst['since']}{who}; "
            f"{ahead.size} bursts come before it, its turn is cycle {burst['begin']}"
        )
    return lines or [
        f"  memory has its request; its data or response is ready in cycle {mine['since'].min()}"
    ]


def _who(replay: Replay, initiator: int) -> str:
    count = len(replay.prepared.configs)
    fetch = "the fetch of " if initiator >= count else ""
    return fetch + core_text(replay.prepared, initiator % count)
