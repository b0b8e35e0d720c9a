"""The engine's cycles: against a second implementation of the document, and its worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_cycle_model import Step, simulate
from emulator_images import Core, call, gpeu, immediate, load, make_image, mvm, region, store, wait
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.emulator import stats
from cim.emulator.prepare import prepare
from cim.emulator.run import CycleLimit, DeadlockError, run_image
from cim.isa.machine import load_machine

DATA = 16384
N = 1024  # crossbar side of the random machines: long accesses


@st.composite
def machines(draw):
    small = st.integers(0, 12)
    values = {
        "core.crossbar": f"{N}x{N}",
        "core.issue_cycles": draw(st.integers(1, 3)),
        "core.mvm_cycles": draw(st.integers(1, 40)),
        "core.gpeu_lanes": draw(st.integers(1, 64)),
        "core.gpeu_latency_cycles": draw(small),
        "bus.width_bytes": draw(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128])),
        "bus.arbitration": draw(st.sampled_from(["round_robin", "oldest_first"])),
        "bus.topology": draw(st.sampled_from(["shared", "per_target"])),
        "bus.read_outstanding": draw(st.integers(1, 5)),
        "bus.write_outstanding": draw(st.integers(1, 5)),
        "bus.register_latency_cycles": draw(small),
        "memory.read_latency_cycles": draw(small),
        "memory.write_latency_cycles": draw(small),
    }
    return load_machine("default", [f"{key}={value}" for key, value in values.items()])


@st.composite
def steps(draw, count):
    kinds = ["load", "store", "call"] * 4 + ["mvm", "gpeu", "wait"]
    kind = draw(st.sampled_from(kinds))
    if kind in ("load", "store"):
        length = draw(st.one_of(st.integers(1, 40), st.integers(1, N)))
        address = draw(st.one_of(st.integers(0, DATA - 4 * N), st.integers(4060, 4100)))
        return Step(kind, address, length)
    return Step(kind, draw(st.integers(*{
        "mvm": (0, 0), "gpeu": (1, N), "call": (0, count - 1), "wait": (0, 3),
    }[kind])))  # fmt: skip


@st.composite
def systems(draw):
    count = draw(st.integers(1, 6))
    programs = [draw(st.lists(steps(count), max_size=12)) for _ in range(count)]
    if draw(st.booleans()):  # all at once: much to arbitrate
        programs = [programs[0]] * count
    return programs, draw(machines())


def words_of(program, buffer):
    """The words for a program of steps, and the steps with sizes in bytes."""
    words = []
    timed = []
    width = 1 if buffer in ("ib", "rb") else 4
    for step in program:
        if step.kind == "load":
            words.append(load(buffer, 0, step.size, step.value))
        elif step.kind == "store":
            words.append(store(step.value, buffer, 0, step.size))
        elif step.kind == "mvm":
            words.append(mvm())
        elif step.kind == "gpeu":
            words.append(gpeu("clr", "pb", step.value))
        else:
            words.append({"call": call, "wait": wait}[step.kind](step.value))
        timed.append(Step(step.kind, step.value, step.size * width))
    return words, timed


@settings(max_examples=300, deadline=None)
@given(systems(), st.sampled_from(["rb", "ob"]))
def test_the_engine_agrees_with_the_cycle_model(system, buffer):
    programs, machine = system
    cores = []
    timed = []
    for program in programs:
        words, steps_ = words_of(program, buffer)
        # A core with a crossbar of one row, loaded first, so that MVM raises nothing.
        cores.append(Core([load("ib", 0, 1, 0), *words], np.ones((1, 1), "<i2")))
        timed.append([Step("load", 0, 1), *steps_])
    image = make_image(cores, DATA, machine=machine)
    expected = simulate(timed, machine)
    if expected is None:
        try:
            run_image(image)
        except DeadlockError:
            return
        raise AssertionError("the engine sees no deadlock")
    result = run_image(image)
    assert result.finish.tolist() == expected[1]
    assert result.cycles == expected[0]
    check_conservation(result)


def check_conservation(result):
    """What must hold for every run."""
    collected = stats.collect([result])
    times = collected.core_cycles
    assert (
        times.issue
        + times.load
        + times.store
        + times.mvm
        + times.gpeu
        + times.call
        + times.wait
        + times.idle
        == collected.cores * collected.cycles
    )
    assert times.wait == collected.stalls.seq_nr
    transactions = collected.bus.transactions
    for one in (transactions.read, transactions.write, transactions.call):
        assert one.issued == one.completed
    assert transactions.call.issued == collected.instructions.call
    assert collected.bus.ar_busy_cycles == transactions.read.issued
    writes = transactions.write.issued + transactions.call.issued
    assert collected.bus.aw_busy_cycles == collected.bus.b_busy_cycles == writes
    width = result.machine.bus.width_bytes
    assert collected.bus.r_busy_cycles * width >= collected.bytes.load
    assert collected.bus.w_busy_cycles * width >= collected.bytes.store
    assert min(collected.stalls.__struct_fields__ and [
        collected.stalls.seq_nr, collected.stalls.ar, collected.stalls.r, collected.stalls.aw,
        collected.stalls.w, collected.stalls.b,
    ]) >= 0  # fmt: skip


def run(programs, *keys, memory=None):
    """Finishes, stalls and memory of programs on the default machine with some keys set."""
    image = make_image([Core(words, weights) for words, weights in programs], 8192, settings=keys)
    result = run_image(image, memory)
    check_conservation(result)
    return result.finish.tolist(), stats.collect([result]).stalls, result


def test_example_1_one_core():
    words = [load("ib", 0, 128, 0), mvm(), store(0x1000, "ob", 0, 128)]
    finish, _, result = run([(words, np.ones((128, 128), "<i2"))])
    assert finish == [1046]
    assert stats.collect([result]).core_cycles == stats.CoreTime(
        issue=3, load=15, store=28, mvm=1000, gpeu=0, call=0, wait=0, idle=0
    )


def test_example_2_unaligned():
    program = [([load("rb", 0, 16, 4090)], None)]
    finish, stalls, result = run(program, "bus.width_bytes=4")
    assert (finish, stalls.r) == ([17], 1)
    assert stats.collect([result]).bus.r_busy_cycles == 5
    assert run(program, "bus.width_bytes=4", "bus.read_outstanding=1")[0] == [28]


def test_example_3_three_cores():
    finish, stalls, _ = run([([load("rb", 0, 64, 0)], None)] * 3)
    assert finish == [14, 16, 18]
    assert (stalls.ar, stalls.r) == (3, 3)


def test_example_4_call_and_wait():
    finish, stalls, _ = run([([call(1)], None), ([wait(1)], None)])
    assert (finish, stalls.seq_nr) == ([5, 4], 3)


def test_example_5_store():
    program = [([store(4092, "rb", 0, 8)], None)]
    assert run(program, "bus.width_bytes=4")[0] == [15]
    assert run(program, "bus.width_bytes=4", "bus.write_outstanding=1")[0] == [27]


def test_example_6_visibility():
    writer = [immediate("add", "rb", "rb", 5, 1), store(0, "rb", 0, 1)]
    reader = [*[wait(0)] * 4, load("rb", 0, 1, 0), store(1, "rb", 0, 1)]
    for latency, seen in ((10, 5), (11, 0)):
        result = run([(writer, None), (reader, None)], f"memory.write_latency_cycles={latency}")[2]
        assert result.memory[:2].tolist() == [5, seen]


def test_example_7_topology():
    programs = [([call(2)], None), ([call(3)], None), ([wait(1)], None), ([wait(1)], None)]
    assert run(programs)[0] == [5, 6, 4, 5]
    assert run(programs, "bus.topology=per_target")[0] == [5, 5, 4, 4]


def test_example_8_responses():
    programs = [([wait(0), store(0, "rb", 0, 4)], None), ([call(0)], None)]
    finish, stalls, _ = run(programs, "bus.width_bytes=4", "memory.write_latency_cycles=0")
    assert (finish, stalls.b) == ([5, 6], 1)


def test_setup_formula():
    core = Core([mvm()] * 3, np.ones((10, 7), "<i2"), {"offset": np.zeros(7, "<i4")})
    regions = [region("ifm", 0, "i8", [3, 3, 5]), region("bias", 64, "i32", [9])]
    image = make_image(
        [core, Core([wait(0)])], regions=regions, contents={"bias": bytes(36)},
        settings=["core.issue_cycles=1"],
    )  # fmt: skip
    prepared = prepare(image)
    programs, contents, inputs, cells = 1 + 1, 2, 2, 5
    rows, registers = 10 * 10_000, (2 + 7) * 4
    machine = image.config.machine
    expected = programs + contents + inputs + cells + rows + registers
    assert stats.setup_cycles(prepared, machine) == expected
    assert stats.setup_cycles(prepared, machine, 3) == expected + 2 * inputs


def test_numbers_with_gaps_and_many_cores():
    """Cores are taken in turn by number, over more than one word of the arbiter's bitmap."""
    count = 150
    cores = [Core([load("rb", 0, 1, 0)], number=3 * k) for k in range(count)]
    finish = run_image(make_image(cores)).finish.tolist()
    assert finish == [13 + k for k in range(count)]
    everyone = [Core([call(0)] if k else [wait(count - 1)]) for k in range(count)]
    for topology in ("shared", "per_target"):
        image = make_image(everyone, settings=[f"bus.topology={topology}"])
        assert run_image(image).finish.tolist() == [4 + count - 2, *range(5, 4 + count)]


def test_a_limit_is_the_latency():
    image = make_image([Core([load("rb", 0, 1, 0), gpeu("clr", "rb", 1)])])
    cycles = run_image(image).cycles
    assert run_image(image, max_cycles=cycles).cycles == cycles
    for limit in range(1, cycles):
        with pytest.raises(CycleLimit) as raised:
            run_image(image, max_cycles=limit)
        assert raised.value.exit_code == 5


def test_the_longest_latencies_do_not_overflow():
    image = make_image(
        [Core([load("ib", 0, 1, 0), *[mvm()] * 5], np.ones((1, 1), "<i2"))],
        settings=[f"core.mvm_cycles={2**40}", f"memory.read_latency_cycles={2**40}"],
    )
    with pytest.raises(CycleLimit):
        run_image(image)
