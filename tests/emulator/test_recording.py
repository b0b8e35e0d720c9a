"""What is recorded of a run, and the files made from it."""

from __future__ import annotations

import io
import itertools
import json

import numpy as np
import pytest
from emulator_images import Core, call, gpeu, load, make_image, mvm, store, wait
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import DATA, systems, words_of

from cim.emulator import layout
from cim.emulator.perfetto import in_flight, perfetto_trace, utilization
from cim.emulator.prepare import prepare
from cim.emulator.recording import Recording, Window, parse_cores, releases
from cim.emulator.run import RunError, execute
from cim.emulator.vcd import vcd_dump


def record(image, window=Window()):  # noqa: B008  (frozen)
    prepared = prepare(image)
    recording = Recording(prepared, image.config.machine, window)
    try:
        return execute(prepared, sink=recording), recording
    except RunError:
        return None, recording


def pair(*settings_):
    """Core 0 stores and calls core 1, which waits and loads."""
    first = Core(
        [load("ib", 0, 4, 0), mvm(), store(64, "ob", 0, 4), call(1)], np.eye(4, dtype="<i2")
    )
    second = Core([wait(1), load("pb", 0, 4, 64), gpeu("mov", "rb", "pb", 4), store(0, "rb", 0, 4)])
    return make_image([first, second], 4096, settings=settings_)


def random_image(system, buffer="rb"):
    programs, machine = system
    cores = [
        Core([load("ib", 0, 1, 0), *words_of(program, buffer)[0]], np.ones((1, 1), "<i2"))
        for program in programs
    ]
    return make_image(cores, DATA, machine=machine)


@settings(max_examples=80, deadline=None)
@given(systems())
def test_a_trace_shows_every_instruction_and_burst_once(system):
    image = random_image(system)
    result, recording = record(image)
    events = json.loads(perfetto_trace(recording))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    on_cores = [event for event in slices if event["pid"] == 1 and event["name"] != "fetch"]
    if result is not None:
        assert len(on_cores) == len(result.prepared.program)
    assert {event["tid"] for event in events if event["ph"] == "X"}.isdisjoint({0})
    for track in {(event["pid"], event["tid"]) for event in slices}:
        mine = [e["args"] for e in slices if (e["pid"], e["tid"]) == track]
        mine.sort(key=lambda args: (args["begin_cycle"], args["end_cycle"]))
        for one, two in itertools.pairwise(mine):
            assert one["end_cycle"] <= two["begin_cycle"]
    flows = [event for event in events if event["ph"] in "sf"]
    assert len({event["id"] for event in flows}) * 2 == len(flows)
    text = vcd_dump(recording).decode()
    assert text.count("$var") == 3 * len(
        np.unique(recording.records(layout.EXECUTED)["core"])
    ) + len(np.unique(recording.records(layout.ON_CHANNEL)["channel"]))


@settings(max_examples=40, deadline=None)
@given(systems(), st.integers(0, 200), st.integers(1, 200), st.data())
def test_a_window_keeps_what_overlaps_it(system, first, length, data):
    image = random_image(system)
    cores = data.draw(st.none() | st.sets(st.integers(0, len(image.config.cores) - 1), min_size=1))
    window = Window(first, first + length, None if cores is None else frozenset(cores))
    _, whole = record(image)
    _, part = record(image, window)
    for kind in (layout.EXECUTED, layout.ON_CHANNEL, layout.FETCHING):
        every = whole.records(kind)
        overlaps = (every["begin"] < window.stop) & (
            (every["end"] > window.first) | (every["begin"] >= window.first)
        )
        if cores is not None:
            overlaps &= np.isin(every["core"] % len(image.config.cores), sorted(cores))
        assert np.array_equal(part.records(kind), every[overlaps])


def test_an_arrow_leads_from_the_call_to_the_wait_that_it_releases():
    _, recording = record(pair())
    ((wait_, call_),) = releases(recording)
    assert (wait_["core"], call_["core"], call_["channel"]) == (1, 0, 1)
    assert wait_["end"] == call_["begin"]
    events = json.loads(perfetto_trace(recording))["traceEvents"]
    start = next(event for event in events if event["ph"] == "s")
    finish = next(event for event in events if event["ph"] == "f")
    slices = [event for event in events if event["ph"] == "X" and event["pid"] == 1]
    for flow, name in ((start, "call"), (finish, "wait")):
        holders = [
            event["name"]
            for event in slices
            if event["tid"] == flow["tid"]
            and event["ts"] <= flow["ts"] < event["ts"] + event["dur"]
        ]
        assert holders == [name]


def test_the_arrow_comes_from_the_last_call_that_was_needed():
    cores = [
        Core([wait(3)]),
        Core([call(0)]),
        Core([gpeu("clr", "rb", 4), call(0)]),
        Core([call(0)]),
    ]
    result, recording = record(make_image(cores))
    ((wait_, call_),) = releases(recording)
    assert call_["core"] == 2
    assert result.finish[0] == call_["begin"] == wait_["end"]


def test_waves_read_back():
    """The dump as a viewer reads it: who has R in each cycle, and what core 0 does."""
    result, recording = record(pair())
    lines = vcd_dump(recording).decode().splitlines()
    names = {}
    scope = ""
    for line in lines:
        words = line.split()
        if words[:1] == ["$scope"]:
            scope = words[2]
        elif words[:1] == ["$var"]:
            names[words[3]] = f"{scope}.{words[4]}"
    values: dict[str, dict[int, str]] = {name: {} for name in names.values()}
    time = 0
    for line in lines[next(i for i, text in enumerate(lines) if "$enddefinitions" in text) + 1 :]:
        if line.startswith("#"):
            time = int(line[1:])
        elif line.split()[-1:] and line.split()[-1] in names:
            values[names[line.split()[-1]]][time] = line.split()[0]
    for record_ in recording.records(layout.ON_CHANNEL):
        if record_["channel"] == layout.R:
            assert values["bus.R_core"][int(record_["begin"])] == f"b{int(record_['core']):b}"
    done = recording.records(layout.EXECUTED)
    for record_ in done[done["core"] == 0]:
        assert int(record_["begin"]) in values["core0.state"]
    assert values["core1.seq_nr"][int(recording.records(layout.ARRIVED)["begin"][0])] == "b1"
    assert f"#{result.cycles}" in lines


@settings(max_examples=30, deadline=None)
@given(systems())
def test_utilization_and_bursts_in_flight_add_up(system):
    result, recording = record(random_image(system))
    if result is None or result.cycles == 0:
        return
    edges, shares = utilization(recording, 7)
    assert (edges[0], edges[-1]) == (0, recording.cycles)
    for role, row in shares.items():
        occupied = (row * np.diff(edges)).sum()
        # What is still occupied after the last event lies behind the last edge.
        assert occupied <= result.busy[role] + 1e-6
    for first, last in ((layout.AR, layout.R), (layout.AW, layout.B)):
        _, values = in_flight(recording, first, last)
        assert values.size == 0 or (values.min() >= 0 and values[-1] == 0)


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "1,,2", "70000", "1-70000"])
def test_lists_of_cores_that_make_no_sense(text):
    with pytest.raises(ValueError, match="must be core numbers"):
        parse_cores(text)


def test_lists_of_cores():
    assert parse_cores("0,3-5,9") == {0, 3, 4, 5, 9}


def test_a_failed_run_is_recorded_up_to_its_end():
    image = make_image([Core([gpeu("clr", "rb", 4), wait(1)])])
    result, recording = record(image)
    assert result is None
    events = json.loads(perfetto_trace(recording))["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == ["gpeu"]
    assert io.BytesIO(vcd_dump(recording)).read(8) == b"$comment"
