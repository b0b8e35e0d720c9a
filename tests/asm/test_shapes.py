"""Parsing a line by its shape gives what Lark gives for the whole line, columns included."""

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.asm.assembler import assemble
from cim.asm.elf import write_object
from cim.asm.shapes import parse_line
from cim.asm.syntax import LineError, parse_whole_line
from cim.diagnostics import CimError, Source
from tests.asm.test_elf import objects

numbers = st.sampled_from(
    [
        "0",
        "7",
        "12",
        "4095",
        "0x1F",
        "0b101",
        "0o17",
        "1_000",
        "1.5",
        "2e-3",
        "'a'",
        "007",
        "0x",
        "1__0",
        "9z",
        "1b",
        "0f",
        "12b3",
        "07f",
    ]
)
names = st.sampled_from(["o", "ifm", "k1", "C1_2", "ib", "x0x1", "_3"])
spaces = st.sampled_from(["", " ", "\t", "  "])
operators = st.sampled_from(["+", "-", "*", "/", "%", "<<", ">=", "==", "&&", "|"])


@st.composite
def expressions(draw) -> str:
    parts = [draw(numbers | names)]
    for _ in range(draw(st.integers(0, 3))):
        parts += [draw(spaces), draw(operators), draw(spaces), draw(numbers | names)]
    text = "".join(parts)
    return f"({text})" if draw(st.booleans()) else text


operands = st.one_of(
    expressions(),
    st.tuples(names, expressions(), expressions()).map(lambda t: f"{t[0]}[{t[1]}:{t[2]}]"),
    st.tuples(names, expressions()).map(lambda t: f"{t[0]}={t[1]}"),
    st.lists(expressions(), max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    st.sampled_from(['"a 12 \\" 3"', '"']),
)
comments = st.sampled_from(["", "# 12", " // it's 3", "# 'x", "@"])


@st.composite
def lines(draw) -> str:
    label = draw(st.sampled_from(["", "l1: ", "a:b2:", "1:", "07: ", "l:0x1 :", "3:12:"]))
    op = draw(st.sampled_from(["", "load", ".for", ".word", "gpeu.add", "MVM"]))
    body = f"{draw(spaces)},{draw(spaces)}".join(draw(st.lists(operands, max_size=4)))
    return f"{draw(spaces)}{label}{op} {body}{draw(spaces)}{draw(comments)}"


def outcome(parse, text: str):
    try:
        return parse(text)
    except LineError as problem:
        return problem.message, problem.place


@settings(max_examples=600)
@given(lines())
def test_the_tree_is_that_of_the_whole_line(text: str) -> None:
    assert outcome(parse_line, text) == outcome(parse_whole_line, text)


def result(text: str, by_shape: bool):
    # Runs and batches so short that a few lines hold many of them.
    with mock.patch.multiple("cim.asm.batches", MIN_RUN=2, BATCH_LINES=7):
        return _result(text, by_shape)


def _result(text: str, by_shape: bool):
    try:
        return write_object(assemble([Source("t.s", text)], "t.o", by_shape=by_shape))
    except CimError as problem:
        return [diagnostic.render() for diagnostic in problem.diagnostics]


@settings(max_examples=60)
@given(objects())
def test_programs_assemble_to_the_same_bytes(text: str) -> None:
    assert result(text, by_shape=True) == result(text, by_shape=False)


HEAD = ".mode i8\n.core a, 0\n.crossbar rows=4, columns=4\n.fill 16, 2, 1\n.text\n"
flat = st.sampled_from(
    ["load ib[0:4], {n}", "load ib[0:4], x + {n}*4", "store {n} + y, ob[0:2]", "wait {n}", "mvm", "call c{n}", "",
     "call a", "lod {n}", "load ib[0:{n}], 4", "gpeu.max rb, rb, {n}", "wait -{n}", ".let k = {n}", "wait k + {n}",
     "l{n}: mvm", "7: mvm", "{n}: .Lx: wait {n}", "load ib[0:{n}], 7b", "load ib[{n}:4], .Lx + {n}",
     "store 12f, ob[0:1]", ".quad {n}", "# {n}", "gpeu.add ob, ob, pb, len={n}", "mvm {n}", ".region r{n}, i8, [4]", ".text",
     ".for i, 0, 3\nwait i + {n}\n.endfor", "wait {n} # {n} it's", "wait {n}e-{n}", 'wait {n} // "{n}"',
     ".macro wait n\ncall \\n + {n}\n.endm", "load ib[0:4], '{n}'", "\twait\t{n}\r", "wait {n}\u00a0", "\x0b", "wait é{n}", "wait 0x{n}",
     "wait {n}$", "wait {n} + {n}\nwait {n} + {n}\nwait {n} + {n}",
     ".half {n}, -{n}", ".long {n}", ".byte {n}", ".quad . + {n}", ".float {n}", ".word x + {n}", ".word", ".quad 1, x",
     ".macro .long n\ncall \\n + {n}\n.endm", "load ib[0:4], .", "load ib[.:4], {n}", ".quad . + . - .", ".quad max (., {n})", ".region q{n}, i8, [4]\n.half {n}, {n}\n.half 1, 1"]
)  # fmt: skip


@settings(max_examples=250)
@given(st.lists(st.tuples(flat, st.sampled_from(["0", "3", "12", "0x20", "0X7f", "123456789012345678", "9223372036854775808", "70000", "1_0", "007", "1.5"]))),
       st.booleans())  # fmt: skip
def test_flat_programs_and_their_mistakes_come_out_the_same(body, head: bool) -> None:
    text = (HEAD if head else ".mode i8\n") + "\n".join(line.format(n=n) for line, n in body)
    assert result(text, by_shape=True) == result(text, by_shape=False)


@pytest.mark.parametrize(
    "text", ["wait 99999999999999999999", "wait 0x1_0", "load ib[0:1], 0xFFFFFFFFF"]
)
def test_numbers_that_no_array_holds(text: str) -> None:
    program = HEAD + f"wait 1\n{text}\nwait 2"
    assert result(program, by_shape=True) == result(program, by_shape=False)
