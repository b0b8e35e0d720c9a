"""cim-emu against the SystemC model: cycles, counters and memory."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_images import Core, call, gpeu, load, make_image, mvm, region, store, wait, word
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from random_programs import DATA, systems, words_of
from systemc_model import differences
from table1_images import table1_image
from test_values import DATA as VALUE_DATA
from test_values import MACHINE, M, N, programs, random_core

PROGRAMS = 500
VALUES = 100  # of each kind


def check(model, images, folder, limits=()):
    """All images agree; the message says of each that does not how."""
    outcomes = model.run(images, folder, limits)
    wrong = []
    for number, (image, outcome) in enumerate(zip(images, outcomes, strict=True)):
        found = differences(image, outcome, limits[number] if limits else None)
        if found:
            wrong.append(f"image {number}, {image.config.machine}: {'; '.join(found)}")
    assert not wrong, "\n".join(wrong[:5])
    return outcomes


def random_image(programs, machine, buffer, seed):
    """A system of `random_programs` whose memory is full of random bytes."""
    cores = [
        # A core with a crossbar of one row, loaded first, so that MVM raises nothing.
        Core([load("ib", 0, 1, 0), *words_of(program, buffer)[0]], np.full((1, 3), 5, "<i2"))
        for program in programs
    ]
    data = np.random.default_rng(seed).integers(0, 256, DATA, dtype=np.uint8).tobytes()
    regions = [region("data", 0, "u8", [DATA])]
    return make_image(cores, DATA, machine=machine, regions=regions, contents={"data": data})


def drawn(strategy, count):
    """Examples of a strategy, to be run all at once."""
    examples = []

    @settings(max_examples=count, phases=[Phase.generate], database=None)
    @given(strategy)
    def draw(example):
        examples.append(example)

    draw()
    return examples


def test_random_programs_on_random_machines(model, tmp_path):
    cases = drawn(st.tuples(systems(), st.sampled_from(["rb", "ob"])), PROGRAMS)
    images = [random_image(*system, buffer, seed) for seed, (system, buffer) in enumerate(cases)]
    assert len(images) >= PROGRAMS
    outcomes = check(model, images, tmp_path)
    ends = {outcome.told["end"] for outcome in outcomes}
    assert ends == {"done", "deadlock"}
    # A limit is reached if the latency, or the cycle of a deadlock, is more than it.
    chosen = range(0, len(images), 10)
    last = [outcomes[k].told.get("cycles", outcomes[k].told.get("cycle")) for k in chosen]
    twice = [images[k] for k in chosen for _ in range(3)]
    limits = [max(limit, 0) for cycles in last for limit in (cycles, cycles - 1, cycles // 2)]
    check(model, twice, tmp_path, limits)


def test_random_values(model, tmp_path):
    """All instructions in all numeric modes; programs that may be wrong, too."""
    images = []
    for wrong in (False, True):
        for mode, ifm, ofm, rows, columns, words, seed, extreme in drawn(programs(wrong), VALUES):
            rng = np.random.default_rng(seed)
            core = random_core(mode, rows, columns, words, rng, extreme)
            data = rng.integers(0, 256, VALUE_DATA, dtype=np.uint8)
            if mode == "f32":
                data = rng.normal(size=VALUE_DATA // 4).astype("<f4").view(np.uint8)
            if mode == "f32" and wrong:
                continue  # any immediate, also NaN and those that cancel to anything
            regions = [region("data", 0, "u8", [VALUE_DATA])]
            contents = {"data": data.tobytes()}
            images.append(
                make_image([core], VALUE_DATA, mode, ifm, ofm, MACHINE, regions=regions, contents=contents)
            )  # fmt: skip
    outcomes = check(model, images, tmp_path)
    assert {outcome.told["end"] for outcome in outcomes} >= {"done", "fault"}


def test_words_of_an_extension_are_illegal_without_it(model, tmp_path):
    words = [word("take", "pb", 0, 1, 0), word("put", 0, "pb", 0, 1, 1)]
    for outcome in check(model, [make_image([Core([one])]) for one in words], tmp_path):
        assert outcome.told["exception"] == "illegal_instruction"


ZEROS = [0.0, -0.0, np.nan, 1.0, np.inf, -np.inf]


def test_zeros_and_nan(model, tmp_path):
    """Of a maximum and a minimum, and of everything that rounds."""
    pairs = np.array([(a, b) for a in ZEROS for b in ZEROS], "<f4")
    count = len(pairs)
    words = [load("ob", 0, count, 0), load("pb", 0, count, 4 * count)]
    for number, op in enumerate(["max", "min", "add", "mul"]):
        words += [
            gpeu(op, "rb", "ob", "pb", count),
            store(4 * (2 + number) * count, "rb", 0, count),
        ]
    words += [gpeu("relu", "rb", "ob", count), store(4 * 6 * count, "rb", 0, count)]
    words += [gpeu("lrelu", "rb", "ob", count), store(4 * 7 * count, "rb", 0, count)]
    data = np.zeros(8 * count, "<f4")
    data[: 2 * count] = pairs.T.ravel()
    regions = [region("data", 0, "f32", [data.size])]
    image = make_image([Core(words)], data.nbytes, "f32", "f32", "f32", regions=regions, contents={"data": data.tobytes()})  # fmt: skip
    check(model, [image], tmp_path)


def test_exceptions(model, tmp_path):
    """The first in time, then the core with the lowest number; cores are those with a program."""
    wide = [f"core.crossbar={M}x{N}", "core.count=16"]
    cases = [
        [[0]],
        [[gpeu("lrelu", "rb", "rb", 1)]],
        [[load("rb", 0, M + 1, 0)]],
        [[load("rb", 0, M, 2**32 - 1)]],
        [[load("rb", 0, M, 4096 + 8 - M + 1)]],
        [[mvm()]],
        [[call(3)]],
        [[wait(0), 0], [wait(0), 0], [0]],
        [[wait(0), 0], [mvm()], [0]],
        [[wait(5)], [gpeu("clr", "rb", 1)] * 3 + [0]],
    ]
    images = [make_image([Core(words) for words in case], settings=wide) for case in cases]
    images += [
        # A gap among the numbers: 1 and 3 are no cores, 4 is one.
        make_image([Core([call(number)]), Core([wait(1)], number=4)], settings=wide)
        for number in (1, 3, 4)
    ]
    outcomes = check(model, images, tmp_path)
    assert [one.told.get("core") for one in outcomes] == [0] * 7 + [2, 1, 1, 0, 0, None]


@pytest.mark.parametrize(
    ("layer", "side", "width", "keys"),
    [
        (1, 32, 4, []),
        (2, 64, 32, []),
        (3, 128, 8, ["bus.arbitration=round_robin", "bus.topology=per_target"]),
        (5, 128, 64, ["core.instruction_memory_bytes=1024", "memory.banks=4"]),
        (7, 128, 32, ["memory.read_outstanding=8", "memory.write_outstanding=2"]),
    ],
)
def test_table_1(model, tmp_path, layer, side, width, keys):
    check(model, [table1_image(layer, side, width, tmp_path, *keys)], tmp_path)
