"""The engine's values and faults against the reference interpreter, which executes the spec itself."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_images import Core, call, gpeu, load, make_image, mvm, store, wait
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.emulator import layout
from cim.emulator.run import DeadlockError, RunFault, run_image
from cim.isa.interpreter import CoreProgram, Deadlock, Fault, Interpreter
from cim.isa.load import load_isa
from cim.isa.machine import load_machine
from cim.isa.numerics import NumericMode
from cim.isa.strategies import straight_line

TYPES = [
    ("f32", "f32", "f32"), ("i8", "i8", "i8"), ("i8", "u8", "u8"), ("i8", "u8", "i8"), ("i8", "i8", "i32"),
    ("i8n", "i8", "i8"), ("i8n", "u8", "u8"), ("i8n", "i8", "u8"),
]  # fmt: skip
BUFFERS = ["ib", "ob", "pb", "rb"]
M, N = 7, 10
DATA = 256
MACHINE = load_machine(
    "default", [f"core.crossbar={M}x{N}", "core.partial_sum=wide", "bus.width_bytes=4"]
)
INT32 = st.integers(-(2**31), 2**31 - 1)


def test_every_instruction_has_a_code():
    assert set(load_isa().instructions) == set(layout.FORMS)
    assert set(load_isa().exceptions) == set(layout.EXCEPTIONS) - {""}


@st.composite
def programs(draw, wrong):
    mode, ifm, ofm = draw(st.sampled_from(TYPES))
    rows, columns = draw(st.integers(0 if wrong else 1, N)), draw(st.integers(1, M))
    words = draw(straight_line(NumericMode(mode, ifm, ofm), (M, N), DATA, faulty=wrong))
    # What a buffer holds in the end must show in memory.
    words = words + [store(DATA - 200 + 40 * k, name, 0, M) for k, name in enumerate(BUFFERS)]
    seed = draw(st.integers(0, 2**32 - 1))
    extreme = draw(st.booleans())
    return mode, ifm, ofm, rows, columns, words, seed, extreme


def random_core(mode, rows, columns, words, rng, extreme):
    if mode == "f32":
        weights = rng.normal(size=(rows, columns)).astype("<f4")
    else:
        weights = rng.integers(-255, 256, (rows, columns)).astype("<i2")
        if extreme:
            weights = rng.choice([-32768, 32767], (rows, columns)).astype("<i2")
    parameters = {
        "offset": rng.integers(-(2**31) if extreme else -9999, 2**31 if extreme else 9999, columns).astype("<i4"),
        "adc_mul": rng.choice([0.5, 0.001, 1e-5, np.inf, np.nan] if extreme else [0.5, 0.01], columns).astype("<f4"),
        "mul_pos": rng.choice([0.5, 1.5, 1e30] if extreme else [0.5, 1.25], columns).astype("<f4"),
        "mul_neg": rng.choice([0.5, 0.25, 0], columns).astype("<f4"),
        "y_zp": rng.choice([-128, 3, 127, 2**31 - 1], columns).astype("<i4"),
    }  # fmt: skip
    return Core(words, weights if rows else None, parameters)


def both(mode, ifm, ofm, cores, memory_seed):
    """(what the interpreter did, what the engine did): a fault, a deadlock or the memory."""
    image = make_image(cores, DATA, mode, ifm, ofm, MACHINE)
    memory = image.memory()
    rng = np.random.default_rng(memory_seed)
    if mode == "f32":
        memory[:DATA] = rng.normal(size=DATA // 4).astype("<f4").view(np.uint8)
    else:
        memory[:DATA] = rng.integers(0, 256, DATA)
    reference = memory.copy()
    given_ = [
        CoreProgram(np.array(c.words, dtype=np.uint64), c.weights, c.parameters) for c in cores
    ]
    interpreter = Interpreter(load_isa(), NumericMode(mode, ifm, ofm), (M, N), reference, given_)
    try:
        with np.errstate(all="ignore"):
            interpreter.run()
        expected = reference
    except Fault as fault:
        expected = ("fault", fault.exception, fault.core, fault.pc)
    except Deadlock as deadlock:
        expected = ("deadlock", deadlock.blocked)
    try:
        got = run_image(image, memory).memory
    except RunFault as problem:
        got = ("fault", problem.exception, problem.core, problem.pc)
    except DeadlockError as problem:
        got = ("deadlock", problem.blocked)
    return expected, got


def assert_same(mode, expected, got):
    if isinstance(expected, tuple) or isinstance(got, tuple):
        assert expected == got
    elif mode != "f32":
        assert np.array_equal(expected, got)
    else:
        ours, theirs = got[:DATA].view("<f4"), expected[:DATA].view("<f4")
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def same_as_interpreter(case, wrong):
    """Run one random program both ways; memory must agree, or the fault with its core and instruction.

    A program that may be wrong can hold any immediate; its floats, which can cancel to anything, are not
    compared.
    """
    mode, ifm, ofm, rows, columns, words, seed, extreme = case
    if mode == "f32":
        # Floats at unaligned addresses are bytes of two floats: any value at all, on which two orders of
        # addition differ. Integers cover unaligned addresses.
        words = [w & ~(3 << 32) if w & 63 in (1, 2) else w for w in words]
    core = random_core(mode, rows, columns, words, np.random.default_rng(seed), extreme)
    expected, got = both(mode, ifm, ofm, [core], seed)
    if isinstance(expected, tuple) or not (wrong and mode == "f32"):
        assert_same(mode, expected, got)


@settings(max_examples=400, deadline=None)
@given(programs(wrong=False))
def test_memory_as_the_interpreter(case):
    same_as_interpreter(case, wrong=False)


@settings(max_examples=400, deadline=None)
@given(programs(wrong=True))
def test_faults_as_the_interpreter(case):
    same_as_interpreter(case, wrong=True)


@pytest.mark.parametrize("values", [(np.nan, 1), (1, np.nan), (np.nan, np.nan), (-np.inf, np.inf)])
def test_nan_in_max_min_and_relu(values):
    words = [
        load("ob", 0, 1, 0), load("pb", 0, 1, 4), gpeu("max", "rb", "ob", "pb", 1), store(8, "rb", 0, 1),
        gpeu("min", "rb", "ob", "pb", 1), store(12, "rb", 0, 1), gpeu("relu", "rb", "ob", 1), store(16, "rb", 0, 1),
    ]  # fmt: skip
    image = make_image([Core(words)], DATA, "f32", "f32", "f32", MACHINE)
    memory = image.memory()
    memory[:8] = np.array(values, "<f4").view(np.uint8)
    out = run_image(image, memory).memory[8:20].view("<f4")
    a, b = np.array(values, np.float32)
    assert np.array_equal(
        out, [np.maximum(a, b), np.minimum(a, b), np.maximum(a, 0)], equal_nan=True
    )


def test_narrow_mvm_is_exact_beyond_int32():
    machine = load_machine("default", ["core.crossbar=2x1024", "core.partial_sum=narrow"])
    weights = np.full((1024, 2), 32767, "<i2")
    core = Core(
        [load("ib", 0, 1024, 0), mvm(), store(2048, "ob", 0, 2)], weights,
        {"adc_mul": np.array([2.0**-27, 2.0**-28], "<f4")},
    )  # fmt: skip
    image = make_image([core], 4096, "i8n", "u8", "i8", machine)
    memory = image.memory()
    memory[:1024] = 255
    total = 1024 * 255 * 32767
    expected = np.rint(np.float32(total) * np.array([2.0**-27, 2.0**-28], np.float32))
    assert run_image(image, memory).memory[2048:2050].view(np.int8).tolist() == expected.tolist()


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(1, 6), st.sampled_from(TYPES), st.integers(0, 2**32 - 1))
def test_chains_of_call_and_wait(length, outputs, types, seed):
    """Every core adds its MVM to what the core before has stored: race-free, so time changes no value."""
    mode, ifm, ofm = types
    rng = np.random.default_rng(seed)
    size = {"f32": 4, "i8": 4, "i8n": 1}[mode]
    slot = lambda output: 128 + 16 * output  # noqa: E731
    cores = []
    for v in range(length):
        words = []
        for output in range(outputs):
            words += [load("ib", 0, 4, 16 * output), mvm()]
            if v:
                words += [
                    wait(output + 1),
                    load("pb", 0, 3, slot(output)),
                    gpeu("add", "ob", "ob", "pb", 3),
                ]
            words.append(store(slot(output), "ob", 0, 3))
            if v < length - 1:
                words.append(call(v + 1))
        cores.append(random_core(mode, 4, 3, words, rng, False))
    assert size * 3 <= 16
    assert_same(mode, *both(mode, ifm, ofm, cores, seed))


def test_the_same_run_twice_gives_the_same(monkeypatch):
    words = [load("ob", 0, 7, 3), call(1), call(0), store(41, "ob", 0, 7)]
    image = make_image([Core(words), Core([wait(1), *words]), Core(words)], DATA, machine=MACHINE)
    one, two = run_image(image), run_image(image)
    assert one.cycles == two.cycles
    assert np.array_equal(one.memory, two.memory)
    assert np.array_equal(one.counters, two.counters)
    assert np.array_equal(one.busy, two.busy)
