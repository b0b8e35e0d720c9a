"""`cim-ld -e`: cores that start at a label."""

import json
from pathlib import Path

import pytest

from cim.asm import cli_ar, cli_as, cli_ld, cli_objdump
from cim.asm.assembler import assemble
from cim.asm.image import Image, encode_config
from cim.asm.linker import LinkOptions, link
from cim.asm.read_image import read_image
from cim.asm.synchronization import check_synchronization
from cim.diagnostics import CimError, Source
from cim.files import write_all

PROGRAM = """.mode i8
.core a, 0
wait 5
call b
begin: .globl begin
call b
end:
.core b, 1
wait 7
mine: wait 1
.region r, i8, [4]
data:
"""


def linked(*entries: str, text: str = PROGRAM) -> Image:
    made = assemble([Source("p.s", text)], "p.o")
    return link([made], "out", LinkOptions(entries=entries))


def test_each_core_may_have_its_entry() -> None:
    image = linked("mine", "begin")
    assert [core.entry for core in image.config.cores] == [16, 8]
    assert [core.entry for core in linked("a").config.cores] == [0, 0]
    assert b"entry" not in encode_config(linked().config)


def test_what_stands_before_it_does_not_count() -> None:
    assert len(check_synchronization(linked())) == 2
    assert check_synchronization(linked("begin", "mine")) == []
    (late,) = check_synchronization(
        linked("begin", "mine", text=PROGRAM.replace("wait 1", "wait 2"))
    )
    assert late.where == "p.s:10"
    assert "1 calls" in late.message


MISTAKES = {
    ("start",): "--entry start: error: there is no label 'start'",
    ("begim",): "--entry begim: error: there is no label 'begim'; did you mean 'begin'?",
    ("end",): "--entry end: error: 'end' stands behind the last instruction of core 'a'",
    ("data",): "--entry data: error: 'data' must be a label in the program of a core",
    ("r",): "--entry r: error: 'r' must be a label in the program of a core",
    ("begin", "a"): "--entry a: error: core 'a' already starts at 'begin'",
}


@pytest.mark.parametrize("entries", MISTAKES)
def test_mistakes(entries: tuple[str, ...]) -> None:
    with pytest.raises(CimError) as raised:
        linked(*entries)
    assert [d.render() for d in raised.value.diagnostics] == [MISTAKES[entries]]


def test_a_local_label_of_two_objects_is_not_enough() -> None:
    texts = [f".mode i8\n.core c{i}, {i}\nmvm\nl: mvm\n" for i in range(2)]
    objects = [assemble([Source("s", text)], f"{i}.o") for i, text in enumerate(texts)]
    with pytest.raises(CimError, match=r"'l' is a local label more than once, in 0\.o and 1\.o"):
        link(objects, "out", LinkOptions(entries=("l",)))


def test_the_command_pulls_in_a_member_and_the_disassembly_shows_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.s").write_text(".mode i8\n.core a, 0\nwait 0\n")
    Path("b.s").write_text(".mode i8\n.core b, 1\nwait 3\n.globl go\ngo: wait 0\n")
    for name in "ab":
        assert cli_as.main([f"{name}.s", "-o", f"{name}.o"]) == 0
    assert cli_ar.main(["rcs", "l.a", "b.o"]) == 0
    assert cli_ld.main(["a.o", "l.a", "-o", "i", "--entry", "go", "-e", "go", "-Map", "m"]) == 0
    assert "b, starts at 0x48" in Path("m").read_text()
    assert cli_objdump.main(["-d", "i.cfg"]) == 0
    shown = capsys.readouterr().out
    assert ".Lentry:\n  wait 0" in shown
    again = assemble([Source("d.s", shown)], "d.o")
    assert [s.data.tobytes() for s in again.sections] == [
        read_image("i.cfg").words(core).tobytes() for core in read_image("i.cfg").config.cores
    ]


@pytest.mark.parametrize("entry", [-8, 4, 24, 2**40, "begin", 8.5])
def test_an_entry_that_is_no_instruction_is_refused(tmp_path: Path, entry: object) -> None:
    image = linked("begin")
    raw = json.loads(encode_config(image.config))
    raw["cores"][0]["entry"] = entry
    write_all({tmp_path / "out.bin": image.content, tmp_path / "out.cfg": json.dumps(raw).encode()})
    with pytest.raises(CimError, match="is not a valid cfg"):
        read_image(tmp_path / "out.cfg")
