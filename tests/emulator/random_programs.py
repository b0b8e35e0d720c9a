"""Random programs with timing, for Hypothesis: the systems that several tests run."""

from __future__ import annotations

import msgspec
from emulator_cycle_model import Step
from emulator_images import call, gpeu, load, mvm, store, wait
from hypothesis import strategies as st

from cim.isa.machine import load_machine

DATA = 16384
N = 1024  # crossbar side of the random machines: long accesses
DEFAULT = load_machine("default", [f"core.crossbar={N}x{N}"])


@st.composite
def machines(draw):
    small = st.integers(0, 12)
    values = {
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
    if draw(st.booleans()):
        values["core.instruction_memory_bytes"] = draw(st.sampled_from([16, 17, 32, 40, 64, 96]))
    if draw(st.booleans()):
        values["memory.banks"] = draw(st.integers(1, 4))
        values["memory.bank_interleave_bytes"] = draw(st.sampled_from([1, 4, 7, 64, 2048, 8192]))
        values["memory.bank_cycles"] = draw(st.integers(1, 5))
        values["memory.bank_ports"] = draw(st.sampled_from(["shared", "separate"]))
    for key in ("memory.read_outstanding", "memory.write_outstanding"):
        if draw(st.booleans()):
            values[key] = draw(st.integers(1, 4))
    return with_settings(DEFAULT, values)


def with_settings(machine, values):
    """A machine with other values by key; quicker than to read and check the whole description again."""
    sections = {}
    for key, value in values.items():
        section, name = key.split(".")
        sections.setdefault(section, {})[name] = value
    return msgspec.structs.replace(
        machine,
        **{
            section: msgspec.structs.replace(getattr(machine, section), **changed)
            for section, changed in sections.items()
        },
    )


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
