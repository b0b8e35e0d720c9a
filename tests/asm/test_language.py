"""Includes, macros, repetition, conditions, messages: the language around the instructions."""

from pathlib import Path

import pytest

from cim.asm import cli_as
from cim.asm.assembler import assemble
from cim.diagnostics import CimError, Source
from cim.isa.encoding import decode
from cim.isa.load import load_isa
from cim.isa.printer import format_instruction

HEAD = ".mode i8\n.core a, 0\n.crossbar rows=4, columns=4\n.fill 16, 2, 1\n.text\n"


def build(text: str, files: dict[str, str] | None = None, **options):
    contents = files or {}

    def read_file(path: Path) -> bytes:
        if path.name not in contents:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return contents[path.name].encode()

    return assemble([Source("t.s", text)], "t.o", read_file, **options)


def program(text: str, files: dict[str, str] | None = None) -> list[str]:
    obj = build(HEAD + text, files)
    words = next(s for s in obj.sections if s.kind == "text").data.view("<u8")
    decoded = decode(load_isa(), words)
    return [format_instruction(load_isa(), decoded, i, "i8") for i in range(len(words))]


def errors(text: str, files: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(CimError) as raised:
        build(HEAD + text, files)
    return [diagnostic.render() for diagnostic in raised.value.diagnostics]


# --- macros ------------------------------------------------------------------------------------------------


def test_macros_take_arguments_defaults_and_keywords() -> None:
    text = """
    .macro hand n, to=3, rest:vararg
      wait \\n
      call \\to
      .irp v, \\rest
      wait 100 + \\v
      .endr
    .endm
    hand 1
    HAND 2, 4
    hand to=5, n=(1, 2)[0:0]
    """
    # The last is nonsense for the parser, but the commas inside brackets belong to one argument.
    found = errors(text)
    assert "in the expansion of macro 'hand'" in found[0]
    good = text.replace("hand to=5, n=(1, 2)[0:0]", "hand to=5, n=max(6, 7)\nhand 8, 9, 1, 2")
    assert program(good) == [
        "wait 1", "call 3", "wait 2", "call 4", "wait 7", "call 5", "wait 8", "call 9", "wait 101", "wait 102",
    ]  # fmt: skip


def test_a_counter_makes_names_of_each_expansion() -> None:
    obj = build(HEAD + ".macro m\nl\\@: mvm\nx\\()y\\@: mvm\n.endm\nm\nm\n")
    assert [s.name for s in obj.symbols if s.kind == "label"] == ["l1", "l2", "xy1", "xy2"]


def test_macros_in_macros_and_loops() -> None:
    text = """
    .macro one n
      wait \\n
    .endm
    .macro two n
      one \\n
      one \\n + 1
    .endm
    .for k, 0, 2
      two k*10
    .endfor
    """
    assert program(text) == ["wait 0", "wait 1", "wait 10", "wait 11"]


def test_an_error_in_a_macro_shows_the_line_and_the_chain() -> None:
    text = ".macro inner n\n  load ib[0:\\n], 0\n.endm\n.macro outer m\n  inner \\m\n.endm\nmvm\nouter 2000\n"
    (found,) = errors(text)
    assert found.split("\n") == [
        "t.s:7:13: error: hi is 2000, must be 1 to 1024",
        "    load ib[0:2000], 0",
        "              ^^^^",
        "t.s:10:3: note: in the expansion of macro 'inner'",
        "    inner 2000",
        "    ^^^^^",
        "t.s:13:1: note: in the expansion of macro 'outer'",
        "  outer 2000",
        "  ^^^^^",
    ]


@pytest.mark.parametrize(
    "text",
    [
        ".macro m\nm\n.endm\nm\n",
        ".macro a\nb\n.endm\n.macro b\na\n.endm\na\n",
        ".macro m\nmvm\nm\n.endm\nm\n",
    ],
)
def test_a_macro_that_names_itself_is_an_error_in_bounded_time(text: str) -> None:
    (found,) = errors(text)
    assert "is nested deeper than 200 levels: it contains itself" in found
    assert "more levels)" in found


MISTAKES = {
    ".macro m n:req\nwait \\n\n.endm\nm\n": "9:1: error: macro 'm' needs 'n'",
    ".macro m n\nwait \\n\n.endm\nm 1, 2\n": "9:1: error: macro 'm' takes 1 argument, not 2",
    ".macro m n\nwait \\n\n.endm\nm 1, n=2\n": "9:1: error: 'n' is given twice",
    ".macro m\nmvm\n": "6:1: error: .macro has no .endm",
    ".macro m\n.endm\n.macro M\n.endm\n": "8:1: error: macro 'm' is already defined",
    ".macro\n.endm\n": "6:1: error: must be: .macro NAME",
    ".macro m 1x\n.endm\n": "6:1: error: '1x' is no parameter",
    ".macro m a:vararg, b\n.endm\n": "6:1: error: only the last parameter may be :vararg",
    ".endm\n": "6:1: error: .endm without .macro",
    ".endr\n": "6:1: error: .endr without .rept",
    ".irp 1\n.endr\n": "6:1: error: must be: .irp NAME, VALUE",
    ".rept\n.endr\n": "6:1: error: .rept must be: .rept COUNT",
    ".rept 2\nmvm\n": "6:1: error: .rept has no .endr",
    ".ifdef 3\n.endif\n": "6:1: error: .ifdef must be: .ifdef NAME",
    ".ifdef X\n": "6:1: error: .ifdef has no .endif",
    ".include x\n": '6:1: error: must be: .include "FILE"',
    '.include "no.inc"\n': "6:10: error: cannot read 'no.inc': No such file or directory",
    '.error "not yet"\n': "6:1: error: not yet",
    '.assert 1 == 2, "no"\n': "6:9: error: no",
    ".assert x\n": "6:9: error: an address cannot be asserted",
    ".align 3\n": "6:8: error: must be a power of two from 1 to 65536, not 3",
    "mvm\n.align 16\n": "7:1: error: a program cannot be padded",
    ".region r, i8, [4]\n.byte 1, 2\n.org 1\n": "8:6: error: 1 is behind: the section already has 2 bytes",
    "wait x - a\n": "6:8: error: cannot subtract the address 'a' here",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(text: str) -> None:
    assert errors(text)[0].startswith("t.s:" + MISTAKES[text])


# --- includes ----------------------------------------------------------------------------------------------


def test_includes_and_their_macros() -> None:
    files = {
        "defs.inc": ".equ n, 7\n.macro m\nwait n\n.endm\n",
        "more.inc": '.include "defs.inc"\nm\n',
    }
    assert program('.include "more.inc"\nm\nwait n + 1\n', files) == ["wait 7", "wait 7", "wait 8"]


def test_an_error_in_a_third_level_include_names_file_and_chain() -> None:
    files = {
        "one.inc": '\n.include "two.inc"\n',
        "two.inc": '.include "three.inc"\n',
        "three.inc": "mvm\nlod\n",
    }
    (found,) = errors('.include "one.inc"\n', files)
    heads = [line for line in found.split("\n") if not line.startswith(" ")]
    assert heads == [
        "three.inc:2:1: error: unknown instruction 'lod'; did you mean 'load'?",
        "two.inc:1:10: note: included from here",
        "one.inc:2:10: note: included from here",
        "t.s:6:10: note: included from here",
    ]


def test_an_include_cycle_is_an_error() -> None:
    (found,) = errors(
        '.include "a.inc"\n', {"a.inc": '.include "b.inc"\n', "b.inc": '.include "a.inc"\n'}
    )
    assert "is nested deeper than 200 levels" in found


def test_lines_of_an_include_are_recorded_under_its_name() -> None:
    obj = build(HEAD + 'mvm\n.include "x.inc"\n', {"x.inc": "mvm\n\nwait 1\n"})
    assert [(loc.file, loc.line) for loc in obj.attributes.locations] == [
        ("t.s", 6), ("x.inc", 1), ("x.inc", 3),
    ]  # fmt: skip


# --- repetition and conditions --------------------------------------------------------------------------------


def test_rept_and_irp() -> None:
    assert (
        program(".rept 2\nmvm\n.rept 2\nwait 1\n.endr\n.endr\n") == ["mvm", "wait 1", "wait 1"] * 2
    )
    assert program(".irp n, 3, 1\n.irp m, 1, 2\nwait \\n*10 + \\m\n.endr\n.endr\n") == [
        "wait 31", "wait 32", "wait 11", "wait 12",
    ]  # fmt: skip
    assert program(".rept 0\nmvm\n.endr\n") == []


def test_conditions_may_hold_any_directive_outside_loops() -> None:
    text = ".ifdef FAST\n.equ n, 1\n.else\n.equ n, 2\n.region r, i8, [n]\n.endif\n.text\nwait n\n"
    assert program(text) == ["wait 2"]
    assert program(".equ FAST, 0\n" + text) == ["wait 1"]
    assert program(".ifndef x\nx: mvm\n.endif\n.ifndef x\nwait 1\n.endif\n") == ["mvm"]


def test_the_branch_not_taken_says_nothing() -> None:
    assert program('.if 0\n.error "no"\nlod\n.elif 1\nmvm\n.else\n.error "no"\n.endif\n') == ["mvm"]


def test_asserts_in_loops_name_the_iteration() -> None:
    (found,) = errors('.for k, 0, 9\n.assert k < 5, "too far"\n.endfor\n')
    assert "t.s:7:9: error: too far (where k = 5)" in found


def test_warnings_and_prints_are_remarks() -> None:
    said = []
    build(
        HEAD + '.warning "careful"\n.print "hello"\n.for k, 0, 5\n.print "once"\n.endfor\n',
        remark=said.append,
    )
    assert [(d.severity, d.message) for d in said] == [
        ("warning", "careful"), ("note", "hello"), ("note", "once"),
    ]  # fmt: skip


# --- places ---------------------------------------------------------------------------------------------------


def test_dot_differences_and_alignment() -> None:
    obj = build("""
        .region r, u8, [32]
        start: .byte 1, 2, 3
        .align 8
        middle: .byte middle - start, . - start
        .org 16
        .word start + 4, . - 4
    """)
    data = obj.sections[0].data
    assert data[:3].tolist() == [1, 2, 3]
    assert data[8:10].tolist() == [8, 8]
    assert obj.sections[0].size == 24
    assert [(int(r["offset"]), int(r["addend"])) for r in obj.sections[0].relocations] == [
        (16, 4),
        (20, 12),
    ]


def test_names_of_gnu_and_llvm() -> None:
    obj = build(
        '.region r, u8, [32]\n.short 1\n.long 2\n.8byte 3\n.zero 2\n.string "a"\n.skip 1\n.extern z\n'
    )
    assert obj.sections[0].data.tobytes() == b"\1\0\2\0\0\0\3\0\0\0\0\0\0\0\0\0a\0\0"


# --- the tool -------------------------------------------------------------------------------------------------


def test_the_flags_around_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "d.inc").write_text('.warning "old"\n')
    (tmp_path / "t.s").write_text(HEAD + '.include "d.inc"\n')
    (tmp_path / "flags").write_text("-I\ninc\n--MD\nt.d\n")
    assert cli_as.main(["t.s", "-o", "t.o", "@flags"]) == 0
    assert "inc/d.inc:1:1: warning: old" in capsys.readouterr().err
    assert (tmp_path / "t.d").read_text() == "t.o: t.s inc/d.inc\n"
    assert cli_as.main(["t.s", "-o", "t.o", "-I", "inc", "-W"]) == 0
    assert capsys.readouterr().err == ""
    assert cli_as.main(["t.s", "-o", "u.o", "-I", "inc", "--fatal-warnings"]) == 1
    assert not (tmp_path / "u.o").exists()
    assert "warnings are errors here" in capsys.readouterr().err
    (tmp_path / "bad.s").write_text("lod\n" * 50)
    for limit, count in (("3", 3), ("0", 50)):
        assert cli_as.main(["bad.s", "-o", "u.o", "--error-limit", limit]) == 1
        assert capsys.readouterr().err.count("error:") == count


# --- late definitions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("wait n", ["wait 6"]),
        (".for k, 0, n - 4\nwait k\n.endfor", ["wait 0", "wait 1"]),
        (".if n == 6\nmvm\n.endif", ["mvm"]),
        (".rept n - 5\nmvm\n.endr", ["mvm"]),
        ("load ib[0:n - 3], n * 2", ["load ib[0:3], 0xc"]),
        (".let m = n\nwait m", ["wait 6"]),
        (".set m, n\nwait m", ["wait 6"]),
        (".region r, i8, [n]\n.byte n\n.fill n - 1, 1, n\n.org n\n.text", []),
        (".assert n == 6", []),
        (".param offset, n", []),
    ],
)
def test_an_equ_may_stand_below_its_use(use: str, expected: list[str]) -> None:
    assert program(f"{use}\n.equ n, h * 2\n.equ h, 3\n") == expected


def test_late_labels_are_resolved_by_the_linker() -> None:
    obj = build(HEAD + "load ib[0:4], below + 2\n.region r, i8, [8]\nbelow: .byte 1\n")
    (row,) = next(s for s in obj.sections if s.kind == "text").relocations
    assert obj.symbols[int(row["symbol"])].name == "below"
    assert int(row["addend"]) == 2


def test_an_equ_that_needs_itself() -> None:
    found = errors(".equ a1, b1 + 1\n.equ b1, a1\nwait 3\n")
    assert "'b1' is defined by itself: b1 -> a1 -> b1" in found[0]


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize(
    "comment", ["# it's", '// "', "# \\ @ é", "//#'\"", "# ;:[(,", "#", "//", ""]
)
def test_comments_with_every_special_character(
    tmp_path: Path, end: str, bom: str, comment: str
) -> None:
    lines = [
        f"{line} {comment}"
        for line in (*HEAD.split("\n")[:-1], ".macro m", "mvm", ".endm", "m", "wait 1")
    ]
    path = tmp_path / "t.s"
    path.write_bytes((bom + (end or "\n").join(lines) + end).encode())
    assert cli_as.main([str(path), "-o", str(tmp_path / "t.o")]) == 0


def test_empty_things_align_and_label() -> None:
    obj = build(
        ".mode i8\n.region e, i8, [0]\n.align 64\nl: \n.core a, 0\nm:\n.for k, 0, 0\nmvm\n.endfor\nn:\n"
    )
    values = {s.name: s.value for s in obj.symbols if s.kind == "label"}
    assert values == {"l": 0, "m": 0, "n": 0}


def test_an_undefined_symbol_in_a_loop_macro_or_include_is_told_where_it_is_used() -> None:
    from cim.asm.linker import link

    text = (
        HEAD + '.macro m\nload ib[0:4], gone\n.endm\n.for k, 0, 3\nm\n.endfor\n.include "x.inc"\n'
    )
    with pytest.raises(CimError) as raised:
        link([build(text, {"x.inc": "call gone\n"})], "out")
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.render() == (
        "t.s:7:15: error: undefined symbol 'gone'\nnote: also used at x.inc:1:6"
    )


@pytest.mark.parametrize("directive", [".incbin", ".include"])
@pytest.mark.parametrize("name", ["/dev/zero", "/"])
def test_what_is_no_file_is_refused(directive: str, name: str) -> None:
    with pytest.raises(CimError, match="it is not a regular file"):
        assemble([Source("t.s", f'.region r, i8, [1]\n{directive} "{name}"\n')], "t.o")


@pytest.mark.parametrize(
    "text", [".globl l\nl: mvm\n", "l: mvm\n.globl l\n", "l: mvm\n.global l\n"]
)
def test_globl_may_stand_before_or_after_the_label(text: str) -> None:
    symbols = {s.name: s.is_global for s in build(HEAD + text + "k: mvm\n").symbols}
    assert symbols["l"]
    assert not symbols["k"]


def test_a_label_that_is_used_before_it_stands_stays_local() -> None:
    symbols = {s.name: s.is_global for s in build(HEAD + "load ib[0:1], l\nl: mvm\n").symbols}
    assert not symbols["l"]


@pytest.mark.parametrize(
    "text",
    [".for k, 0, 3\nwait k * 1.5\n.endfor\n", ".let h = 1.5\n.for k, 0, 3\nwait h + k\n.endfor\n"],
)
def test_floats_and_loop_variables_are_never_cut_to_integers(text: str) -> None:
    assert "a loop variable can only be combined with integers, not 1.5" in errors(text)[0]


TOO_MUCH = {
    ".region r, i8, [8]\n.space 100000000000": "the size is 100000000000, more than the 4294967296",
    ".region r, i8, [8]\n.fill 1000000000000, 8, 1": "more than the 4294967296",
    ".region r, i8, [8]\n.org 100000000000000000": "more than an address reaches",
    ".region r, i8, [99999999, 99999999, 999999]": "more than the 4294967296 that an address reaches",
    ".rept 100000000\nmvm\n.endr": "must be at most 8000000",
    "\n".join(
        [f".for k{i}, 0, 2" for i in range(40)] + ["mvm"] + [".endfor"] * 40
    ): "must be at most 8000000",
    ".for a1, 0, 2\n" * 300
    + "mvm\n"
    + ".endfor\n" * 300: "blocks are nested deeper than 64 levels",
    ".if 1\n" * 3000 + "mvm\n" + ".endif\n" * 3000: "blocks are nested deeper than 64 levels",
    ".param mul_pos, 1e400": "mul_pos is inf, must fit a float32",
    ".param mul_pos, 1e39": "must fit a float32",
    "wait 99999999999999999999": "does not fit 64 bits",
}


@pytest.mark.parametrize("text", TOO_MUCH, ids=[t[:20] for t in TOO_MUCH])
def test_too_much_is_an_error_in_bounded_time_and_memory(text: str) -> None:
    assert TOO_MUCH[text] in errors(text + "\n")[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("load ib[0:4], x + 1.5", "an address can only be moved by an integer"),
        (".let q = 2.7\nload ib[0:4], q + x", "an address can only be moved by an integer"),
        ("call tail + 0.5", "an address can only be moved by an integer"),
        (".let a = 3", "'a' is already a core"),
        (".equ n, 1\n.region n, i8, [1]", "'n' is already a constant"),
        (".region n, i8, [1]\n.equ n, 1", "'n' is already a constant"),
        (".let n = 1\nn: mvm", "'n' is already a constant"),
        (".for i, 0, 10000000000000000000\n.endfor", "is too large here"),
    ],
)
def test_what_used_to_be_taken_silently(text: str, message: str) -> None:
    assert message in errors(text + "\n")[0]


def test_the_listing_flag_does_not_take_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.s").write_text(HEAD)
    assert cli_as.main(["-a", "t.s", "-o", "t.o"]) == 0
    assert (tmp_path / "t.s").read_text() == HEAD
    assert cli_as.main(["-a=t.lst", "t.s", "-o", "t.o"]) == 0
    assert (tmp_path / "t.lst").exists()
