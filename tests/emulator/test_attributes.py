"""Extension attribute_buffer: TAKE and PUT, in time and in values."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_cycle_model import Step, simulate
from emulator_images import Core, gpeu, load, make_image, mvm, region, store, wait, word
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_programs import machines
from test_debugger import session
from test_timing import check_conservation, check_other_ways_to_run

from cim.emulator.run import DeadlockError, run_image
from cim.isa.interpreter import CoreProgram, Deadlock, Interpreter
from cim.isa.load import load_isa
from cim.isa.numerics import NumericMode

DATA = 16384
EXTENSIONS = ["attribute_buffer"]


def take(buffer: str, lo: int, hi: int, address: int) -> int:
    return word("take", buffer, lo, hi, address)


def put(address: int, buffer: str, lo: int, hi: int, readers: int) -> int:
    return word("put", address, buffer, lo, hi, readers)


@st.composite
def accesses(draw: st.DrawFn) -> Step:
    """Few places, so that they meet; some of several bursts, over a page, or that share an entry."""
    kind = draw(st.sampled_from(["take", "put", "put", "load", "store", "gpeu"]))
    address, size = draw(st.sampled_from(PLACES))
    if kind == "gpeu":
        return Step(kind, draw(st.integers(1, 40)))
    return Step(kind, address, size, draw(st.integers(1, 3)) if kind == "put" else 0)


def encoded(step: Step) -> int:
    if step.kind == "gpeu":
        return word("gpeu.clr", "pb", step.value)
    if step.kind == "take":
        return take("rb", 0, step.size, step.value)
    if step.kind == "put":
        return put(step.value, "rb", 0, step.size, step.readers)
    if step.kind == "load":
        return load("rb", 0, step.size, step.value)
    return store(step.value, "rb", 0, step.size)


PLACES = [(0, 8), (0, 4), (4, 8), (8, 600), (4090, 12), (1, 3), (2048, 1024)]


@st.composite
def systems(draw: st.DrawFn) -> list[list[Step]]:
    """Random programs; with half of them one more core that gives enough for most TAKEs."""
    programs = draw(st.lists(st.lists(accesses(), max_size=8), min_size=1, max_size=6))
    if draw(st.booleans()):
        programs.append([Step("put", *place, 7) for place in PLACES] * 2)
    return programs


@settings(max_examples=400, deadline=None)
@given(systems(), machines())
def test_the_engine_agrees_with_the_cycle_model(programs: list[list[Step]], machine) -> None:
    cores = [Core([encoded(step) for step in program]) for program in programs]
    image = make_image(cores, DATA, machine=machine, extensions=EXTENSIONS)
    expected = simulate(programs, machine, [core.address for core in image.config.cores])
    if expected is None:
        with pytest.raises(DeadlockError):
            run_image(image)
        return
    result = run_image(image)
    assert result.finish.tolist() == expected[1]
    check_conservation(result)
    check_other_ways_to_run(result)


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[list[int]], bool]:
    """Each core but the first takes what the one before has put, vector by vector; one may be missing."""
    cores, vectors = draw(st.integers(2, 5)), draw(st.integers(1, 6))
    readers = draw(st.integers(1, 2))
    missing = draw(st.booleans())
    lost = (draw(st.integers(0, cores - 2)), draw(st.integers(0, vectors - 1))) if missing else None
    programs = []
    for core in range(cores):
        words = []
        for vector in range(vectors):
            words += [load("ib", 0, 4, 4 * vector), mvm()]
            if core > 0:
                area = 64 + 256 * core + 16 * vector
                words += [take("pb", 0, 4, area)] * readers
                words.append(word("gpeu.add", "ob", "ob", "pb", 4))
            if core < cores - 1:
                if (core, vector) != lost:
                    words.append(put(64 + 256 * (core + 1) + 16 * vector, "ob", 0, 4, readers))
            else:
                words.append(store(2048 + 16 * vector, "ob", 0, 4))
        programs.append(words)
    return programs, missing


@settings(max_examples=100, deadline=None)
@given(chains(), st.integers(0, 2**32 - 1))
@example(([[put(0, "ob", 0, 4, 2)], [take("pb", 0, 4, 0)], [take("pb", 0, 4, 0)]], False), 0)
def test_values_as_the_interpreter(case: tuple[list[list[int]], bool], seed: int) -> None:
    programs, missing = case
    rng = np.random.default_rng(seed)
    weights = rng.integers(-9, 9, (4, 4)).astype("<i2")
    data = rng.integers(0, 256, 64, dtype=np.uint8)
    image = make_image(
        [Core(words, weights) for words in programs], 4096, extensions=EXTENSIONS,
        settings=["core.crossbar=4x4"], regions=[region("data", 0, "u8", [64])],
        contents={"data": data.tobytes()},
    )  # fmt: skip
    memory = image.memory()
    interpreter = Interpreter(
        load_isa(), NumericMode("i8", "i8", "i8"), (4, 4), memory,
        [CoreProgram(np.array(words, dtype=np.uint64), weights) for words in programs], EXTENSIONS,
    )  # fmt: skip
    if missing:
        with pytest.raises(Deadlock) as expected:
            interpreter.run()
        with pytest.raises(DeadlockError) as got:
            run_image(image)
        assert got.value.blocked == expected.value.blocked
    else:
        interpreter.run()
        assert np.array_equal(run_image(image).memory, memory)


def test_a_deadlock_names_who_has_the_put() -> None:
    cores = [
        Core([take("pb", 0, 4, 0), put(64, "pb", 0, 4, 1)], name="first"),
        Core([take("pb", 0, 2, 68), put(0, "pb", 0, 4, 1)], name="second"),
        Core([take("pb", 0, 1, 512)]),
    ]
    with pytest.raises(DeadlockError) as raised:
        run_image(make_image(cores, extensions=EXTENSIONS))
    text = "\n".join(note.message for note in raised.value.diagnostics[0].notes)
    assert "3 of 3 cores wait for valid entries" in raised.value.diagnostics[0].message
    assert "core 0 'first' is blocked" in text
    assert "core 0 'first' has executed 0 of its 1 PUTs there, the next is instruction 1" in text
    assert "not all entries of bytes 0x200 to 0x203 are valid" in text
    assert "no program has a PUT there: one is missing" in text


def test_the_debugger_names_who_has_the_put() -> None:
    cores = [
        Core([take("pb", 0, 4, 0)], name="first"),
        Core([wait(0), put(0, "pb", 0, 4, 1)], name="second"),
    ]
    said = "\n".join(session(make_image(cores, extensions=EXTENSIONS), "until 2", "why first"))
    assert "its entries, bytes 0x0 to 0xf, must be valid:" in said
    assert "core 1 'second' has executed 0 of its 1 PUTs there" in said


def test_a_memory_full_of_takes_is_a_deadlock_of_its_own() -> None:
    """The core that has the PUT cannot read what it needs for it."""
    cores = [
        Core([take("pb", 0, 4, 0)], name="first"),
        Core([gpeu("clr", "pb", 4), load("ib", 0, 4, 64), put(0, "ob", 0, 4, 1)], name="second"),
    ]
    settings_ = ["memory.read_outstanding=1"]
    with pytest.raises(DeadlockError) as raised:
        run_image(make_image(cores, extensions=EXTENSIONS, settings=settings_))
    text = "\n".join(note.message for note in raised.value.diagnostics[0].notes)
    assert "core 0 'first' is blocked at instruction 0 (test.s:1)" in text
    assert "core 1 'second' is blocked at instruction 1 (test.s:2)" in text
    assert "the memory takes no more reads while those of TAKEs wait in it" in text
    run_image(make_image(cores, extensions=EXTENSIONS, settings=["memory.read_outstanding=2"]))
