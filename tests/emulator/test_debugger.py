"""Replay and debugger: the interpreter's values at the emulator's times."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from emulator_images import Core, call, gpeu, load, make_image, mvm, region, store, wait
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import DATA, systems, words_of

from cim.asm import cli_as, cli_ld
from cim.diagnostics import CimError
from cim.emulator import cli
from cim.emulator.debugger import HELP, Debugger
from cim.emulator.prepare import prepare
from cim.emulator.replay import Replay
from cim.emulator.run import DeadlockError, execute

ROOT = Path(__file__).parents[2]


def replay_of(image, memory=None):
    return Replay(
        prepare(image), image.config.machine, image.memory() if memory is None else memory, None
    )


@settings(max_examples=100, deadline=None)
@given(systems(), st.sampled_from(["rb", "ob"]), st.integers(0, 2**32))
def test_the_replay_ends_in_the_engine_s_state(system, buffer, seed):
    """Races included: bursts take and leave their bytes in the same cycles in both."""
    programs, machine = system
    cores = [
        Core([load("ib", 0, 1, 0), load(buffer, 0, 900, 7), *words_of(program, buffer)[0]],
             np.ones((1, 1), "<i2"))
        for program in programs
    ]  # fmt: skip
    image = make_image(cores, DATA, machine=machine)
    memory = np.random.default_rng(seed).integers(0, 256, image.config.memory_bytes, np.uint8)
    replay = replay_of(image, memory)
    while replay.step() is not None:
        pass
    try:
        result = execute(replay.prepared, memory)
    except DeadlockError:
        assert replay.failure is not None
        return
    assert replay.failure is None
    assert np.array_equal(replay.interpreter.memory, result.memory)
    assert all(replay.finished(core) for core in range(len(cores)))
    assert replay.now == result.cycles == replay.cycles


def session(image, *lines, memory=None):
    said: list[str] = []
    debugger = Debugger(replay_of(image, memory), said.append)
    for line in lines:
        debugger.run_command(line)
    return said


def pair():
    first = Core([load("ib", 0, 4, 0), mvm(), store(64, "ob", 0, 4), call(1)],
                 2 * np.eye(4, dtype="<i2"), name="head")  # fmt: skip
    second = Core([wait(1), load("pb", 0, 4, 64), gpeu("mov", "rb", "pb", 4), store(0, "rb", 0, 4)],
                  name="tail")  # fmt: skip
    regions = [region("x", 0, "i8", [4]), region("ps", 64, "i32", [4])]
    return make_image([first, second], 4096, regions=regions, contents={"x": bytes([1, 2, 3, 250])})


def elements(said):
    """The values of every print, in order."""
    return [line.split()[1:] for line in said if re.match(r"  (\[|0x)", line)]


def test_stops_and_values():
    said = session(
        pair(), "break tail:1", "watch ps[1]", "watch seq tail", "continue", "print ps", "c", "c",
        "print pb[0:4]", "step", "print pb[0:4]", "finish", "x 0 i8 4", "continue",
    )  # fmt: skip
    stops = [line for line in said if re.match(r"(breakpoint|watch) \d", line)]
    assert stops == [
        "breakpoint 1: tail:1 (1 instruction)",
        "watch 2: ps[1]",
        "watch 3: seq tail",
        "watch 2: ps[1]: bytes 0x40 to 0x4f written by core 0 'head'",
        "watch 3: seq tail is 1, by a CALL of core 0 'head'",
        "breakpoint 1: tail:1",
    ]
    product = ["2", "4", "6", "-12"]
    ps, pb_before, pb_after, stored = elements(said)
    assert (ps, pb_before, pb_after, stored) == (product, ["0"] * 4, product, product)
    assert said[-1].startswith("all cores have finished, in ")


def test_a_breakpoint_stops_before_and_continue_goes_past_it():
    said = session(
        pair(),
        "break head:1",
        "continue",
        "print ib[0:4]",
        "print ob[0:4]",
        "cycle",
        "info core",
        "c",
    )
    # ib has been loaded, the MVM has not begun.
    assert elements(said) == [["1", "2", "3", "-6"], ["0"] * 4]
    assert any("computes instruction 1" in line for line in said)
    assert sum(line == "breakpoint 1: head:1" for line in said) == 1
    assert said[-1].startswith("all cores have finished")


def test_why_names_who_must_act():
    said = session(pair(), "until 20", "why tail", "core head", "why")
    text = "\n".join(said)
    assert "core 1 'tail' is blocked at instruction 0 (test.s:1): 'wait 1'" in text
    assert "SEQ_NR is 0, the wait needs 1: 1 more CALLs" in text
    assert "core 0 'head' owes it: its next CALL is instruction 3 (test.s:4)" in text
    assert "core 0 'head' computes instruction 1 (test.s:2): 'mvm'" in text


def test_why_shows_the_channel_and_who_has_it():
    cores = [Core([load("rb", 0, 128, 0)]) for _ in range(3)]
    said = session(make_image(cores, settings=["bus.width_bytes=1"]), "until 20", "why 0", "why 2")
    assert said[-3].strip().startswith("it holds R until cycle")
    assert re.search(
        r"has asked for R since cycle \d+, which core 0 has; 1 bursts come before", said[-1]
    )


def test_a_deadlock_is_debugged_up_to_its_end():
    image = make_image([Core([gpeu("clr", "rb", 4), wait(2)]), Core([call(0)])])
    said = session(image, "continue", "why 0", "info cores")
    text = "\n".join(said)
    assert "deadlock: nothing moves after cycle" in text
    assert "all programs have 1 CALLs to it, the wait needs 2: it never ends" in text
    assert "core 1: SEQ_NR 0, finished" in text


def test_restart_begins_anew():
    said = session(pair(), "watch ps", "c", "restart", "print ps", "c", "print ps")
    assert elements(said) == [["0"] * 4, ["2", "4", "6", "-12"]]
    assert said.count("watch 1: ps: bytes 0x40 to 0x4f written by core 0 'head'") == 2


MISTAKES = {
    "brek tail": "unknown command 'brek'; did you mean 'break'?",
    "break": "must be: break FILE:LINE, CORE:PC, CORE or LABEL",
    "break tial": "'tial' must be FILE:LINE, CORE:PC, a core or a label",
    "break tail:4": "core tail has 4 instructions, 0 to 3",
    "break test.s:99": "no instruction at this line or after it",
    "break tset.s:1": "'tset.s' is neither a source file of the image nor a core; did you mean 'test.s'?",
    "watch pss": "no region is called 'pss'; did you mean 'ps'?",
    "watch ps[3:9]": "region ps has elements 0 to 3",
    "watch 99999": "shared memory has",
    "watch seq": "must be: watch seq CORE",
    "print ib[0:999]": "ib has elements 0 to 127",
    "print zb": "'zb' is no buffer, parameter or region",
    "print ib[": "must be NAME, NAME[INDEX] or NAME[LO:HI]",
    "x 0 i9": "unknown type 'i9': must be one of",
    "x": "must be: x ADDRESS [TYPE] [COUNT]",
    "core 7": "no core is called '7'",
    "info": "must be: info cores",
    "step 0": "must be one number from 1 upwards, not '0'",
    "step x": "must be one number from 1 upwards, not 'x'",
    "continue 3": "takes no argument, not '3'",
    "delete 9": "there is no stop 9",
    "until 0": "must be one number from 1 upwards",
    "help brek": "unknown command 'brek'",
    "print 'ib": "No closing quotation",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_are_explained(line):
    with pytest.raises(CimError) as raised:
        session(pair(), line)
    assert MISTAKES[line] in raised.value.diagnostics[0].message


def test_every_command_has_help_and_every_help_a_command():
    commands = {name[3:] for name in dir(Debugger) if name.startswith("do_")}
    assert commands | {"quit"} == set(HELP)
    assert len(session(pair(), "help")) == len(HELP)


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("debugging")
    shutil.copy(ROOT / "examples" / "debugging" / "chain.s", folder)
    assert cli_as.main([str(folder / "chain.s"), "-o", str(folder / "chain.o")]) == 0
    assert cli_ld.main([str(folder / "chain.o"), "-o", str(folder / "chain")]) == 0
    np.save(folder / "x.npy", np.ones((8, 16, 4), np.int8))
    return folder


def test_the_documented_session_is_what_the_debugger_says(chain, monkeypatch, capsys):
    page = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
    session_text = page.split("```console\n")[1].split("```")[0]
    commands = [line[6:] for line in session_text.splitlines() if line.startswith("(cim) ")]
    monkeypatch.chdir(chain)
    # The page assembles the file where it stands, so that its name has no folder.
    assert cli_as.main(["chain.s", "-o", "chain.o"]) == 0
    assert cli_ld.main(["chain.o", "-o", "chain"]) == 0
    Path("find.dbg").write_text("\n".join(commands) + "\n")
    assert cli.main(["chain.cfg", "--load", "x=x.npy", "-x", "find.dbg"]) == 0
    assert capsys.readouterr().out == session_text


def test_the_fixed_program_adds_sixteen_ones(chain, monkeypatch, capsys):
    monkeypatch.chdir(chain)
    for name, text, total in (
        ("broken", Path("chain.s").read_text(), 8),
        ("fixed", Path("chain.s").read_text().replace(".if \\v != 9", ".if 1"), 16),
    ):
        Path(f"{name}.s").write_text(text)
        assert cli_as.main([f"{name}.s", "-o", f"{name}.o"]) == 0
        assert cli_ld.main([f"{name}.o", "-o", name]) == 0
        arguments = [f"{name}.cfg", "--load", "x=x.npy", "--dump", "y=y.npy", "--quiet"]
        assert cli.main(arguments) == 0
        assert (np.load("y.npy") == total).all()


def test_a_script_that_fails_names_its_line(chain, monkeypatch, capsys):
    monkeypatch.chdir(chain)
    Path("bad.dbg").write_text("info stops\n\n  brake c1\n")
    assert cli.main(["chain.cfg", "-x", "bad.dbg"]) == 1
    assert (
        "bad.dbg:3:3: error: unknown command 'brake'; did you mean 'break'?"
        in capsys.readouterr().err
    )
    assert cli.main(["chain.cfg", "-x", "bad.dbg", "--stats", "s.json"]) == 2
    assert "--stats: error: cannot be used with --debug" in capsys.readouterr().err


def test_commands_from_a_pipe(chain, monkeypatch, capsys):
    monkeypatch.chdir(chain)
    monkeypatch.setattr(
        "sys.stdin", __import__("io").StringIO("info stops\nnonsense\nquit\ncontinue\n")
    )
    assert cli.main(["chain.cfg", "--debug"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines() == [
        "no stops; 'break' and 'watch' make them",
        "error: unknown command 'nonsense': try 'help'",
    ]
