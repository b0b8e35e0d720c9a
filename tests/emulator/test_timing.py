"""The engine's cycles: against a second implementation of the document, and its worked examples."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from emulator_cycle_model import Step, simulate
from emulator_images import Core, call, gpeu, immediate, load, make_image, mvm, region, store, wait
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import DATA, systems, words_of

from cim.emulator import layout, stats
from cim.emulator.prepare import prepare
from cim.emulator.run import CycleLimit, DeadlockError, execute, run_image
from cim.emulator.state import block_words, fetched_cores
from cim.isa.machine import load_machine


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
    expected = simulate(timed, machine, [core.address for core in image.config.cores])
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
    check_other_ways_to_run(result)


def check_conservation(result):
    """What must hold for every run."""
    collected = stats.collect([result])
    times = collected.core_cycles
    assert sum(msgspec.structs.astuple(times)) == collected.cores * collected.cycles
    assert times.wait == collected.stalls.seq_nr
    transactions = collected.bus.transactions
    for one in msgspec.structs.astuple(transactions):
        assert one.issued == one.completed
    assert transactions.call.issued == collected.instructions.call
    reads = transactions.read.issued + transactions.fetch.issued
    assert collected.bus.ar_busy_cycles == reads
    writes = transactions.write.issued + transactions.call.issued
    assert collected.bus.aw_busy_cycles == collected.bus.b_busy_cycles == writes
    # Bytes counted at the bus are those that the instructions move.
    moved = collected.bytes
    assert result.counters[:, layout.BYTES_READ].sum() == moved.load
    assert result.counters[:, layout.BYTES_WRITTEN].sum() == moved.store
    block = 8 * block_words(result.prepared, result.machine)
    fetched = fetched_cores(result.prepared, result.machine)
    programs = [core.program.size for core in result.prepared.configs]
    assert moved.fetch == sum(
        size - 2 * block for size, parts in zip(programs, fetched, strict=True) if parts
    )
    width = result.machine.bus.width_bytes
    assert collected.bus.r_busy_cycles * width >= moved.load + moved.fetch
    assert collected.bus.w_busy_cycles * width >= moved.store
    assert min(msgspec.structs.astuple(collected.stalls)) >= 0
    for core in collected.per_core:
        parts = msgspec.structs.astuple(core)[1:]
        assert sum(parts) == collected.cycles
        assert min(parts) >= 0
    bound = collected.lower_bound
    assert bound.cycles <= collected.cycles
    one_set = result.machine.bus.topology == "shared"
    for name in ("ar", "r", "aw", "w", "b"):
        busy = getattr(collected.bus, f"{name}_busy_cycles")
        least = getattr(bound, f"{name}_cycles")
        assert least == busy if one_set else least <= busy


def check_other_ways_to_run(result):
    """Without values, in steps, and traced, a run takes the same cycles and counts the same."""
    records = []

    def sink(part, cycle):
        records.append(part.copy())
        assert cycle >= 0

    steps = []
    for options in ({"values": False}, {"sink": sink}, {"progress": steps.append}):
        other = execute(result.prepared, machine=result.machine, **options)
        assert other.cycles == result.cycles
        assert other.finish.tolist() == result.finish.tolist()
        assert np.array_equal(other.counters, result.counters)
        assert np.array_equal(other.fetches, result.fetches)
        assert options.get("values") is False or np.array_equal(other.memory, result.memory)
    check_trace(result, np.concatenate(records))


def check_trace(result, records):
    """The trace says the same as the counters."""
    done = records[records["kind"] == layout.EXECUTED]
    assert len(done) == len(result.prepared.program)
    assert sorted(done["at"].tolist()) == list(range(len(done)))
    if done.size:
        assert done["end"].max() == result.cycles
    on_channel = records[records["kind"] == layout.ON_CHANNEL]
    roles = on_channel["channel"].astype(int)
    targets = roles >= layout.FIRST_OF_TARGETS
    roles[targets] = layout.AW + (roles[targets] - layout.FIRST_OF_TARGETS) % 3
    lengths = on_channel["end"] - on_channel["begin"]
    busy = np.bincount(roles, weights=lengths, minlength=5).astype(int)
    assert busy.tolist() == result.busy.tolist()
    stalls = np.bincount(roles, weights=on_channel["begin"] - on_channel["since"], minlength=5)
    counted = result.counters.sum(axis=0) + (
        result.fetches.sum(axis=0) if result.fetches.size else 0
    )
    names = (layout.STALL_AR, layout.STALL_R, layout.STALL_AW, layout.STALL_B, layout.STALL_W)
    assert stalls.astype(int).tolist() == [int(counted[name]) for name in names]
    calls = records[records["kind"] == layout.ARRIVED]
    assert len(calls) == int((result.prepared.program["op"] == layout.CALL).sum())
    for channel in np.unique(on_channel["channel"]):  # no two bursts at once
        mine = on_channel[on_channel["channel"] == channel]
        mine = mine[np.argsort(mine["begin"], kind="stable")]
        assert (mine["end"][:-1] <= mine["begin"][1:]).all()
    waiting = records[records["kind"] == layout.FETCHING]
    assert (waiting["end"] - waiting["begin"]).sum() == result.counters[
        :, layout.FETCH_CYCLES
    ].sum()


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
        issue=3, load=15, store=28, mvm=1000, gpeu=0, call=0, wait=0, fetch=0, idle=0
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


BANKS = (
    "bus.width_bytes=4", "memory.banks=2", "memory.bank_interleave_bytes=4", "memory.bank_cycles=3",
)  # fmt: skip


def test_example_9_banks():
    programs = [([load("rb", 0, 8, 0)], None), ([load("rb", 0, 4, 8)], None)]
    assert run(programs, *BANKS)[0] == [14, 16]


def test_example_10_ports():
    programs = [([store(0, "rb", 0, 4)], None), ([wait(0), load("rb", 0, 4, 8)], None)]
    assert run(programs, *BANKS)[0] == [14, 17]
    assert run(programs, *BANKS, "memory.bank_ports=separate")[0] == [14, 14]


def test_example_11_a_full_memory():
    programs = [([load("rb", 0, 32, 0)], None)] * 2
    finish, stalls, _ = run(programs, "memory.read_outstanding=1")
    assert (finish, stalls.ar) == ([13, 25], 12)


def test_example_12_fetch():
    program = [([gpeu("clr", "rb", 1)] * 7, None)]
    finish, _, result = run(program, "core.instruction_memory_bytes=32")
    collected = stats.collect([result])
    assert finish == [33]
    assert (collected.core_cycles.fetch, collected.bytes.fetch) == (12, 24)
    assert collected.bus.transactions.fetch == stats.Transaction(2, 2)


def test_example_13_a_derived_mvm():
    keys = ["core.mvm_cycles=derived", "core.crossbar=128x128", "converters.adc_count=8",
            "converters.adc_rate_hz=1_000_000_000", "converters.dac_bits=1", "converters.input_bits=8",
            "converters.cell_bits=2"]  # fmt: skip
    assert load_machine("default", keys).mvm_cycles == 640
    words = [load("ib", 0, 1, 0), mvm()]
    assert run([(words, np.ones((1, 1), "<i2"))], *keys)[0] == [1 + 12 + 1 + 640]


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


def test_setup_loads_two_blocks_of_a_program_that_is_fetched():
    cores = [Core([wait(0)] * 100), Core([wait(0)])]
    image = make_image(cores, settings=["core.instruction_memory_bytes=72", "bus.width_bytes=8"])
    prepared = prepare(image)
    machine = image.config.machine
    one = stats.setup_cycles(prepared, machine)
    assert one == 8 + 1 + 2 * machine.setup.register_write_cycles
    assert stats.setup_cycles(prepared, machine, 3) == one + 2 * 8


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


def test_a_program_of_the_size_of_the_memory_is_not_fetched():
    """Also where it is more than two blocks, and others are fetched."""
    settings_ = ["core.instruction_memory_bytes=40"]
    cores = [Core([gpeu("clr", "rb", 1)] * 5), Core([gpeu("clr", "rb", 1)] * 6)]
    result = run_image(make_image(cores, settings=settings_))
    collected = stats.collect([result])
    assert result.finish[0] == 5 * 3
    assert collected.bytes.fetch == 6 * 8 - 32
    assert next(iter(collected.per_core)).fetch == 0
    # 40 bytes of the first and two blocks of the second program, 32 bytes a beat.
    register = result.machine.setup.register_write_cycles
    assert collected.setup_cycles == 2 + 1 + 2 * register


def test_the_cycle_of_a_deadlock():
    """It is the one from which nothing changes, whatever the blocked cores did before the others."""
    blocked = [Core([wait(1)])]
    for others, cycle in (
        ([], 1),
        ([Core([gpeu("clr", "rb", 1)] * 5)], 15),
        ([Core([load("rb", 0, 1, 0)])], 13),
        ([Core([*[wait(0)] * 9, wait(2)])], 10),
    ):
        with pytest.raises(DeadlockError) as caught:
            run_image(make_image([*blocked, *others]))
        assert caught.value.cycle == cycle
        with pytest.raises(DeadlockError):
            execute(prepare(make_image([*blocked, *others])), max_cycles=cycle)
        with pytest.raises(CycleLimit):
            execute(prepare(make_image([*blocked, *others])), max_cycles=cycle - 1)


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


DETERMINISM = """
import sys
sys.path.insert(0, {folder!r})
from emulator_images import Core, call, load, make_image, store, wait
from cim.emulator import stats
from cim.emulator.run import run_image
words = [load("rb", 0, 100, 0), store(2000, "rb", 0, 100), call(1)]
cores = [Core(words), Core([wait(5), *words]), *[Core(words) for _ in range(5)]]
print(stats.encode_stats(stats.collect([run_image(make_image(cores, settings=["bus.width_bytes=4"]))])))
"""


def test_the_same_whatever_the_hash_seed():
    script = DETERMINISM.format(folder=str(Path(__file__).parent))
    seen = {
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
            check=True, text=True,
        ).stdout
        for seed in ("1", "77", "random")
    }  # fmt: skip
    assert len(seen) == 1
