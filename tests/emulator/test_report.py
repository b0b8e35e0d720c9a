"""The page: what it says is what the run counted, and it can be read."""

from __future__ import annotations

import html.parser
import itertools
import re

import numpy as np
import pytest
from emulator_images import Core, call, gpeu, load, make_image, mvm, store, wait
from hypothesis import given, settings
from random_programs import DATA, systems, words_of

from cim.emulator import layout, stats
from cim.emulator.prepare import prepare
from cim.emulator.report import COLOURS, html_report, verdict
from cim.emulator.report_data import BUS, CAUSES, FETCH, GPEU, MVM, SEQ_NR, gather
from cim.emulator.run import DeadlockError, execute


def gathered(image):
    prepared = prepare(image)
    result = execute(prepared)
    data = gather(prepared, image.config.machine, image.memory(), result.cycles, None)
    return data, result, stats.collect([result])


@settings(max_examples=60, deadline=None)
@given(systems())
def test_the_charts_add_up_to_the_statistics(system):
    programs, machine = system
    cores = [
        Core([load("ib", 0, 1, 0), *words_of(program, "rb")[0]], np.ones((1, 1), "<i2"))
        for program in programs
    ]
    image = make_image(cores, DATA, machine=machine)
    try:
        data, result, collected = gathered(image)
    except DeadlockError:
        return
    time = data.time.sum(axis=(1, 2)).round(6)
    per_core = collected.per_core
    for cause, names in (
        (MVM, ["mvm"]), (GPEU, ["gpeu"]), (BUS, ["bus"]), (SEQ_NR, ["seq_nr"]), (FETCH, ["fetch"]),
        (CAUSES.index("access"), ["load", "store", "call"]),
    ):  # fmt: skip
        assert time[cause] == sum(getattr(core, name) for core in per_core for name in names)
    assert np.allclose(data.busy.sum(axis=1), result.busy)
    assert data.time.sum() <= data.available.sum() + 1e-6
    assert data.lines[:, 0].sum() == len(data.prepared.program)
    html_report(data, machine, collected)


class Reader(html.parser.HTMLParser):
    """Checks that tags nest, and collects text."""

    VOID = ("meta", "link")

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page.decode())
    assert not reader.open
    assert not reader.links
    assert "<script" not in page.decode()
    assert not re.search(r"https?://", page.decode())
    return " ".join(reader.text)


def saturated(cores=40, width=1):
    """Many cores that load over a narrow bus."""
    program = [load("rb", 0, 64, 0)] * 20
    return make_image([Core(program) for _ in range(cores)], settings=[f"bus.width_bytes={width}"])


def test_a_saturated_bus_is_named():
    data, _, collected = gathered(saturated())
    assert "The bus is the limit" in verdict(data, collected)
    assert "channel R is occupied" in verdict(data, collected)
    text = read(html_report(data, data.prepared.config.machine, collected))
    assert f"{collected.cycles:,} cycles" in text
    assert data.prepared.config.bin_sha256 in text


def test_computing_cores_are_named():
    words = [load("ib", 0, 4, 0), *[mvm()] * 20]
    data, _, collected = gathered(make_image([Core(words, np.eye(4, dtype="<i2"))]))
    assert "The crossbars are the limit" in verdict(data, collected)


def test_waiting_is_named():
    late = [gpeu("clr", "rb", 128)] * 200
    cores = [Core([*late, call(k)]) if k == 0 else Core([wait(1)]) for k in range(1)]
    cores += [Core([wait(1), store(0, "rb", 0, 1)]) for _ in range(9)]
    cores[0] = Core([*late, *[call(k) for k in range(1, 10)]])
    data, _, collected = gathered(make_image(cores))
    assert "waiting for SEQ_NR" in verdict(data, collected)


def test_a_failed_run_is_reported_up_to_its_end():
    image = make_image([Core([gpeu("clr", "rb", 4), wait(1)])])
    prepared = prepare(image)
    with pytest.raises(DeadlockError) as raised:
        execute(prepared)
    data = gather(prepared, image.config.machine, image.memory(), raised.value.cycle, None)
    page = html_report(data, image.config.machine, failure=raised.value.diagnostics[0].message)
    assert "The run failed. deadlock: nothing moves" in re.sub(" +", " ", read(page))


def test_names_are_escaped():
    image = make_image([Core([gpeu("clr", "rb", 4)], name="<b>", file="<i>&.s")])
    data, _, collected = gathered(image)
    assert "<i>&.s:1" in read(html_report(data, image.config.machine, collected))


def lightness(colour):
    """L* of CIE 1976 of an sRGB colour."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    y = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


def test_colours_stay_apart_in_black_and_white():
    steps = [lightness(colour) for colour in COLOURS.values()]
    assert all(two - one >= 9 for one, two in itertools.pairwise(steps)), steps


def test_every_channel_has_its_strip():
    data, result, collected = gathered(saturated(4, 32))
    text = read(html_report(data, data.prepared.config.machine, collected))
    for name in ("AR address", "R data", "AW address", "W data", "B response"):
        assert name in text
    assert f"{result.busy[layout.R] / result.cycles:.1%}" in text
