"""Deadlocks and faults, as a user reads them."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_images import Core, call, gpeu, load, make_image, mvm, store, wait

from cim.diagnostics import ExitCode
from cim.emulator.run import DeadlockError, RunFault, run_image


def deadlock(image):
    with pytest.raises(DeadlockError) as raised:
        run_image(image)
    assert raised.value.exit_code == ExitCode.DEADLOCK
    return str(raised.value), raised.value


def fault(image):
    with pytest.raises(RunFault) as raised:
        run_image(image)
    assert raised.value.exit_code == ExitCode.FAULT
    return str(raised.value)


def test_deadlock_names_every_core_and_its_callers(tmp_path):
    (tmp_path / "a.s").write_text("    wait 1   # never\n    call 1\n    call 1\n")
    cores = [
        Core([wait(1), call(1), call(1)], name="first", file="a.s"),
        Core([wait(1), wait(4)], file="b.s"),
        Core([call(1)]),
    ]
    text, problem = deadlock(make_image(cores, path=tmp_path / "x.cfg"))
    lines = text.splitlines()
    assert lines[0].endswith(
        "x.cfg: error: deadlock: nothing moves after cycle 5, and 2 of 3 cores wait for CALLs"
    )
    assert lines[1:] == [
        "a.s:1:5: note: core 0 'first' is blocked at instruction 0 (a.s:1): 'wait 1': SEQ_NR is 0, the wait needs 1",
        "      wait 1   # never",
        "      ^^^^^^",
        "note:   0 CALLs in all programs, the wait needs 1: a CALL is missing",
        "note: core 1 is blocked at instruction 1 (b.s:2): 'wait 4': SEQ_NR is 1, the wait needs 4",
        "note:   core 0 'first' has executed 0 of its 2 CALLs to core 1, the next is instruction 1 (a.s:2); it is blocked itself",
        "note:   core 2 has executed 1 of its 1 CALL to core 1; it has finished",
        "note:   3 CALLs in all programs, the wait needs 4: a CALL is missing",
    ]  # fmt: skip
    assert problem.blocked == {0: 0, 1: 1}
    assert problem.cycle == 5


def test_a_cycle_of_waits_misses_no_call():
    text, _ = deadlock(make_image([Core([wait(1), call(1)]), Core([wait(1), call(0)])]))
    assert "missing" not in text
    assert text.count("it is blocked itself") == 2


def test_at_most_twenty_cores_are_shown():
    text, problem = deadlock(make_image([Core([wait(2**32 - 1)]) for _ in range(23)]))
    assert text.count("is blocked at") == 20
    assert text.endswith("note: and 3 more")
    assert len(problem.blocked) == 23


def test_a_wait_is_at_least(tmp_path):
    """Two CALLs before the WAIT of one must not hang it."""
    cores = [Core([call(1), call(1)]), Core([*[gpeu("clr", "rb", 1)] * 20, wait(1)])]
    assert run_image(make_image(cores)).cycles == 60 + 1


W = np.ones((3, 2), "<i2")
FAULTS = [
    (Core([wait(0), call(9)]), "instruction 1 (test.s:2)", "cycle 2", "'call 9'", "CALL to a core that this",
     "the image has one core, number 0"),
    (Core([load("ob", 0, 32, 4000)]), "'load ob[0:32], 0xfa0'", "past the end of shared memory",
     "bytes 0xfa0 to 0x101f, shared memory ends at 0x1007 (4104 bytes)"),
    (Core([store(8, "rb", 3, 129)]), "'store 0x8, rb[3:129]'", "elements 3 to 128 of rb, which has 128: 0 to 127"),
    (Core([mvm()]), "MVM on a core without crossbar content"),
    (Core([load("ib", 0, 1, 0), mvm()], W), "2 of 3 rows have not been loaded, the first is row 1"),
    (Core([gpeu("add", "ob", "ib", "ob", 200)]), "elements 0 to 199 of ob, which has 128"),
    (Core([0]), "the word 0x0000000000000000", "the word is no instruction"),
    (Core([gpeu("lrelu", "ob", "ob", 3)]), "the word is no instruction", "the numeric mode is i8"),
]  # fmt: skip


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case[-1][:30])
def test_faults(case):
    text = fault(make_image([case[0]]))
    assert text.startswith("test.cfg: error: core 0")
    for part in case[1:]:
        assert part in text


def test_too_many_elements_for_the_parameters():
    text = fault(
        make_image([Core([gpeu("requant", "ib", "ib", 9)])], settings=["core.crossbar=8x10"])
    )
    assert "it needs 9 parameters, a core has one a column: 8" in text


def test_the_first_fault_in_time_counts():
    """Cores run ahead of each other inside the engine; that must not show."""
    late = Core([*[gpeu("clr", "ob", 1)] * 9, 0])
    early = Core([load("ib", 0, 1, 0), 0])
    both = Core([wait(0), 0])
    assert fault(make_image([late, early])).startswith("test.cfg: error: core 1,")
    assert fault(make_image([late, both, both])).startswith("test.cfg: error: core 1,")
