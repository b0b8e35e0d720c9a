"""The assembler: programs, loops and what it says about mistakes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.asm.assembler import assemble
from cim.asm.objects import Object
from cim.diagnostics import CimError, Source
from cim.isa.encoding import decode
from cim.isa.load import load_isa
from cim.isa.printer import format_instruction

ISA = load_isa()
HEAD = ".mode i8\n.core a, 0\n.crossbar rows=4, columns=4\n.fill 16, 2, 1\n.text\n"


def build(text: str, **options) -> Object:
    return assemble([Source("t.s", text)], "t.o", **options)


def program(text: str) -> list[str]:
    """The unrolled instructions of the first core; addresses of symbols show as their addend."""
    obj = build(HEAD + text)
    section = next(s for s in obj.sections if s.kind == "text")
    words = section.data.view("<u8")
    decoded = decode(ISA, words)
    symbols: dict[int, dict[str, str]] = {}
    for row in section.relocations:
        name = obj.symbols[int(row["symbol"])].name
        kind = {1: "address", 2: "core"}[int(row["type"])]
        symbols[int(row["offset"]) // 8] = {kind: f"{name}+{int(row['addend'])}"}
    return [format_instruction(ISA, decoded, i, "i8", symbols.get(i)) for i in range(len(words))]


def errors(text: str) -> list[str]:
    with pytest.raises(CimError) as raised:
        build(text)
    return [
        f"{d.span.line}:{d.span.column}: {d.message}" for d in raised.value.diagnostics if d.span
    ]


def test_every_instruction_and_operand_form() -> None:
    assert program("""
        LOAD IB[0:4], 0x10      // upper case, and this comment holds "quotes' # and //
        mvm
        gpeu.add ob, ob, pb, len=3
        gpeu.Add ob, ob, -7
        gpeu.max rb, ob, 1 << 4
        gpeu.clr rb             # len is the used columns
        store 1_000, rb[1:3]
        call other
        call 3
        wait 0xFFFF_FFFF
    """) == [
        "load ib[0:4], 0x10",
        "mvm",
        "gpeu.add ob, ob, pb, len=3",
        "gpeu.add ob, ob, -7, len=4",
        "gpeu.max rb, ob, 16, len=4",
        "gpeu.clr rb, len=4",
        "store 0x3e8, rb[1:3]",
        "call other+0",
        "call 3",
        "wait 4294967295",
    ]


def test_loops_conditions_and_lets() -> None:
    text = """
    .for y, 0, 3
      .let base = y * 10
      .for x, y, 3
        .let at = base + x
        .if at % 2 == 0
          wait at
        .elif x > 1
          load ib[0:x], data + at
        .else
          wait 99
          wait 98
        .endif
      .endfor
      mvm
    .endfor
    """
    expected = []
    for y in range(3):
        for x in range(y, 3):
            at = y * 10 + x
            if at % 2 == 0:
                expected.append(f"wait {at}")
            elif x > 1:
                expected.append(f"load ib[0:{x}], data+{at}")
            else:
                expected += ["wait 99", "wait 98"]
        expected.append("mvm")
    assert program(text) == expected


@st.composite
def bodies(draw, depth: int = 0):
    """Random nested loops as (text lines, function that gives the expected WAIT values)."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["wait", "for", "if"] if depth < 3 else ["wait"]))
        if kind == "wait":
            factor, constant = draw(st.integers(0, 5)), draw(st.integers(0, 9))
            parts.append(("wait", factor, constant))
        elif kind == "for":
            first, extra = draw(st.integers(-2, 3)), draw(st.integers(-1, 3))
            parts.append(("for", first, extra, draw(bodies(depth + 1))))
        else:
            parts.append(
                ("if", draw(st.integers(2, 3)), draw(bodies(depth + 1)), draw(bodies(depth + 1)))
            )
    return parts


def render(parts, depth: int = 0) -> list[str]:
    variables = [f"k{i}" for i in range(depth)] or ["0"]
    total = " + ".join(variables)
    lines = []
    for part in parts:
        if part[0] == "wait":
            lines.append(f"wait max({total}, 0) * {part[1]} + {part[2]}")
        elif part[0] == "for":
            last = f"{part[1] + part[2]} + ({total}) % 2"
            lines += [f".for k{depth}, {part[1]}, {last}", *render(part[3], depth + 1), ".endfor"]
        else:
            lines += [f".if ({total}) % {part[1]} == 0", *render(part[2], depth)]
            lines += [".else", *render(part[3], depth), ".endif"]
    return lines


def c_remainder(a: int, b: int) -> int:
    return abs(a) % b * (1 if a >= 0 else -1)


def run(parts, values: tuple[int, ...] = ()) -> list[int]:
    total = sum(values)
    out = []
    for part in parts:
        if part[0] == "wait":
            out.append(max(total, 0) * part[1] + part[2])
        elif part[0] == "for":
            for k in range(part[1], part[1] + part[2] + c_remainder(total, 2)):
                out += run(part[3], (*values, k))
        else:
            out += run(part[2] if c_remainder(total, part[1]) == 0 else part[3], values)
    return out


@settings(max_examples=150)
@given(bodies())
def test_unrolling_equals_running_the_loops(parts) -> None:
    assert program("\n".join(render(parts))) == [f"wait {v}" for v in run(parts)]


def test_a_large_loop_is_one_array_operation() -> None:
    obj = build(HEAD + ".for k, 0, 1000000\nwait k + 1\ncall b\n.endfor\n")
    assert obj.sections[0].size == 16_000_000
    assert int(obj.sections[0].data.view("<u8")[-2] >> 32) == 1_000_000


def test_data_directives() -> None:
    obj = build("""
        .region r, i32, [16]
        .byte 1, -1, 255
        .half 0x1234
        .word -2
        .quad 1 << 40
        .float 0.5
        .ascii "a\\n#"
        .space 2
        .fill 2, 2, -3
        .for k, 0, 3
        .byte k * 2
        .endfor
    """)
    expected = bytes([1, 255, 255, 0x34, 0x12]) + (-2 % 2**32).to_bytes(4, "little")
    expected += (1 << 40).to_bytes(8, "little") + np.float32(0.5).tobytes() + b"a\n#\0\0"
    expected += b"\xfd\xff\xfd\xff" + bytes([0, 2, 4])
    assert obj.sections[0].data.tobytes() == expected


@pytest.mark.parametrize(("directive", "bits"), [(".byte", 8), (".half", 16), (".word", 32)])
def test_data_is_never_cut_off(directive: str, bits: int) -> None:
    low, high = -(2 ** (bits - 1)), 2**bits - 1
    for value in (low, high):
        build(f".region r, i8, [8]\n{directive} {value}\n")
    for value in (low - 1, high + 1):
        (message,) = errors(f".region r, i8, [8]\n{directive} {value}\n")
        assert message.endswith(f"{directive} is {value}, must be {low} to {high}")


FIELDS = [
    ("load ib[{}:1024], 0", "lo", 0, 1023),
    ("load ib[0:{}], 0", "hi", 1, 1024),
    ("load ib[0:1], {}", "address", 0, 2**32 - 1),
    ("gpeu.mov rb, ob, len={}", "len", 1, 1024),
    ("call {}", "core", 0, 65535),
    ("wait {}", "value", 0, 2**32 - 1),
]


@pytest.mark.parametrize(("text", "name", "low", "high"), FIELDS)
def test_every_field_at_its_ends(text: str, name: str, low: int, high: int) -> None:
    for value in (low, high):
        program(text.format(value))
    for value in (low - 1, high + 1, 2**70, -(2**70)):
        (message,) = errors(HEAD + text.format(f"({value})"))
        assert f"must be {low} to {high}" in message or "does not fit 64 bits" in message, message


def test_a_value_out_of_range_names_the_iteration() -> None:
    (message,) = errors(HEAD + ".for k, 0, 5\nload ib[0:k*300], 0\n.endfor\n")
    assert message == "7:11: hi is 0, must be 1 to 1024 (where k = 0)"


MISTAKES = {
    "lod ib[0:2], 4": "1: unknown instruction 'lod'; did you mean 'load'?",
    "load iv[0:2], 4": "6: 'iv' is no buffer; there are ib, ob, pb, rb",
    "load ib[0:2]": "6: the operands must be as in 'load BUFFER[LO:HI], ADDRESS'",
    "mvm 3": "5: the operands must be as in 'mvm'",
    "wait 007": "6: '007' must not start with 0; octal is 0o7",
    "wait 0x": "6: '0x' is not a number",
    "wait 1__0": "6: '1__0' is not a number",
    "wait (3": "8: the line ends too early; expected ')'",
    "wait 3 4": "8: unexpected '4'; expected the end of the line or ','",
    "wait @": "6: unexpected character '@'",
    "wait 1/0": "7: division by zero",
    "wait nowhere": "6: 'nowhere' must be a constant here (a loop variable, .let or .equ)",
    "wait 2 * x": "8: 'x' must be a constant here (a loop variable, .let or .equ); an address, "
    "which the linker sets, can only be moved by + and -",
    "gpeu.max rb, rb, 1.5": "18: an immediate must be an integer from -2147483648 to 2147483647",
    "gpeu.lrelu rb, rb": "1: gpeu.lrelu does not exist in mode i8 (only in f32)",
    ".endfor": "1: .endfor without .for",
    ".for k, 0": "1: .for must be: .for NAME, FIRST, LAST (LAST excluded)",
    ".byte 1": "1: .byte must not be in a program: only instructions and .quad words are",
    ".wrod 1": "1: unknown directive '.wrod'; did you mean '.word'?",
    ".core a, 1": "7: 'a' is already defined",
    ".core b, 0": "7: core number 0 is already 'a'",
    ".core b, 65536": "7: the core's number is 65536, must be 0 to 65535",
    ".param ofset, 1": "8: unknown parameter 'ofset'; did you mean 'offset'?",
    ".param offset, 0.5": "16: offset is 0.5, must be an integer from -2147483648 to 2147483647",
    ".region r, i9, [2]": "12: unknown type 'i9'; there are i8, u8, i32, f32",
    ".region r, i8, 4": "16: the shape must be like [8, 8, 3], each dimension an integer from 0",
    ".region r, i8, [4], rol=ifm": "21: unknown option 'rol'; did you mean 'role'?",
    '.machine "pelke32"': "10: no machine is called 'pelke32'; did you mean 'pelke23'?",
    ".mode i9": "7: mode must be one of f32, i8, i8n, not 'i9'",
    ".mode i8, ifm=f32": "7: in mode i8 the IFM must be i8 or u8, not 'f32'",
    ".extension loops": "12: unknown extension 'loops'; this toolchain has attribute_buffer",
    '.incbin "no.bin"': "9: cannot read 'no.bin': No such file or directory",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_explained_at_its_column(line: str) -> None:
    message = errors(HEAD + line + "\n")[0]
    assert message.removeprefix("6:") == MISTAKES[line]


def test_all_errors_of_a_file_come_in_one_run_in_order() -> None:
    found = errors(HEAD + "wait -1\nlod\n.for k, 0, 3\nwait 007\nwait -k\n.endif\n.endfor\nmvm 1\n")
    assert [int(m.split(":")[0]) for m in found] == [6, 7, 9, 10, 11, 13]


def test_an_unclosed_block_is_reported_where_it_begins() -> None:
    assert errors(HEAD + "  .for k, 0, 3\nmvm\n")[0] == "6:3: .for has no .endfor"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("comment", ["# it's", '// "', "# \\ @ é", "//#'\"", "# ;:[(", ""])
def test_comments_and_line_ends(end: str, comment: str) -> None:
    text = end.join([f"mvm {comment}", "wait 1"])
    assert program(text) == ["mvm", "wait 1"]


def test_the_caret_stands_under_the_character_after_tabs() -> None:
    with pytest.raises(CimError) as raised:
        build(HEAD + "\twait\t-1\n")
    assert raised.value.diagnostics[0].render().split("\n")[1:] == ["  \twait\t-1", "  \t    \t^^"]


def test_constants_and_defines() -> None:
    assert program(".equ n, 3\n.set m, n\n.set m, m + 1\nwait n * m\n") == ["wait 12"]
    (message,) = errors(HEAD + ".equ n, 1\n.equ n, 2\n")
    assert message == "7:6: 'n' is already set on line 6; .set may change it"
    obj = build(HEAD + "wait N\n", defines={"N": 9})
    assert int(obj.sections[0].data.view("<u8")[0] >> 32) == 9


def test_incbin_reads_a_part_beside_the_source(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(range(10)))
    source = Source(str(tmp_path / "t.s"), '.region r, u8, [4]\n.incbin "w.bin", 2, 4\n')
    assert assemble([source], "t.o").sections[0].data.tolist() == [2, 3, 4, 5]
    short = Source(str(tmp_path / "t.s"), '.region r, u8, [4]\n.incbin "w.bin", 8, 4\n')
    with pytest.raises(CimError, match="has 10 bytes, bytes 8 to 12 are needed"):
        assemble([short], "t.o")


def test_a_label_in_a_loop_is_refused() -> None:
    assert "a label must not be in a loop" in errors(HEAD + ".for k, 0, 2\nx: mvm\n.endfor\n")[0]


def test_labels_are_symbols() -> None:
    obj = build(HEAD + "mvm\nhere: mvm\n")
    (label,) = [s for s in obj.symbols if s.kind == "label"]
    assert (label.name, label.value, label.is_global) == ("here", 8, False)


def test_empty_cores_loops_and_files() -> None:
    assert program("") == []
    assert program(".for k, 0, 0\nmvm\n.endfor\n") == []
    assert build("").sections == []
    assert program(".for k, 5, 2\nmvm\n.endfor\nmvm") == ["mvm"]
