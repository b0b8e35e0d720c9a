r"""Sources that carry their own expectation: tests/asm/sources/FEATURE/ok_*.s and err_*.s.

Behind a line stands `#= ` and what it adds to its section: bytes in hexadecimal, then its relocations. A line that
calls a macro, includes a file or begins a block stands for all that it leads to. At the end of a file stand, behind
`#! `, the errors, warnings and notes with line and column, all of them and in order.

`pytest tests/asm/test_sources.py --update-sources` writes what the assembler says now.
"""

from pathlib import Path
from unittest import mock

import pytest

from cim.asm import data, directives, messages
from cim.asm.assembler import Assembler, assemble
from cim.asm.blocks import BLOCK_DIRECTIVES
from cim.asm.elf import write_object
from cim.asm.objects import RelocationType
from cim.asm.syntax import ALIASES
from cim.diagnostics import CimError, Diagnostic, Source
from cim.isa.load import load_isa

FOLDER = Path(__file__).parent / "sources"
SOURCES = sorted(path for path in FOLDER.glob("*/*.s") if path.name.startswith(("ok_", "err_")))
BYTES, SAID = "#= ", "#! "


class Recorder:
    """Notes what each line of the file adds to the object; the last pass counts."""

    def __init__(self) -> None:
        self.assembler: Assembler | None = None
        self.added: dict[int, list[str]] = {}
        self.top_level = Assembler.top_level

    def __call__(self, assembler: Assembler, node) -> None:
        if assembler is not self.assembler:
            self.assembler, self.added = assembler, {}
        self.top_level(assembler, node)
        for section in assembler.sections.blocks:
            for block in section:
                if not hasattr(block, "seen"):
                    block.seen = True
                    self.note(assembler, node, block)

    def note(self, assembler: Assembler, node, block) -> None:
        where = node.where
        while where.source.origin is not None:
            where = where.source.origin.span
        names = {number: name for name, number in assembler.names.numbers.items()}
        parts = [block.content.tobytes().hex()]
        for table in block.relocations:
            for row in table:
                offset = int(row["offset"]) - self.base(assembler, block)
                name = names[int(row["symbol"])].split("\0")[0]
                kind = RelocationType(int(row["type"])).name
                parts.append(f"{kind}({offset}: {name}{int(row['addend']):+d})")
        self.added.setdefault(where.line, []).append(" ".join(parts))

    def base(self, assembler: Assembler, block) -> int:
        """Where the block begins in its section."""
        for blocks in assembler.sections.blocks:
            if any(one is block for one in blocks):
                at = next(i for i, one in enumerate(blocks) if one is block)
                return sum(len(one.content) for one in blocks[:at])
        raise AssertionError


def run(path: Path, text: str) -> tuple[dict[int, str], list[str], bytes | None]:
    """What each line adds, what is said, and the object, if there is one."""

    def read(file: Path) -> bytes:
        return (path.parent / file).read_bytes()

    said: list[Diagnostic] = []

    def build(by_shape: bool) -> bytes | None:
        said.clear()
        try:
            source = Source(path.name, text)
            return write_object(
                assemble([source], "t.o", read, by_shape=by_shape, remark=said.append)
            )
        except CimError as problem:
            said.extend(problem.diagnostics)
            return None

    recorder = Recorder()

    def noted(assembler: Assembler, node) -> None:
        recorder(assembler, node)

    with mock.patch.object(Assembler, "top_level", noted):
        raw = build(by_shape=False)
    shown = [line for one in said for line in one.render().split("\n") if line[:2] != "  "]
    with mock.patch("cim.asm.batches.MIN_RUN", 2):
        assert build(by_shape=True) == raw
    assert [line for one in said for line in one.render().split("\n") if line[:2] != "  "] == shown
    return {line: " ".join(parts).strip() for line, parts in recorder.added.items()}, shown, raw


def with_expectations(text: str, added: dict[int, str], said: list[str]) -> str:
    """The text with what it should lead to; its line ends stay."""
    end = "\r\n" if "\r\n" in text else "\n"
    body = text.replace("\r\n", "\n")
    final = body.endswith("\n")
    made = []
    for number, line in enumerate(body.removesuffix("\n").split("\n"), 1):
        code = line.split(BYTES)[0]
        bytes_ = added.get(number, "")
        if code.startswith(SAID):
            continue
        made.append(f"{code.rstrip() if BYTES in line or bytes_ else code:<40} {BYTES}{bytes_}" if bytes_ else
                    code.rstrip() if BYTES in line else code)  # fmt: skip
    made += [f"{SAID}{line}" for line in said]
    return end.join(made) + (end if final else "")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_source(path: Path, request: pytest.FixtureRequest) -> None:
    raw = path.read_bytes()
    mark = b"\xef\xbb\xbf" if raw.startswith(b"\xef\xbb\xbf") else b""
    text = raw.decode("utf-8-sig")
    added, said, built = run(path, text)
    is_right = path.name.startswith("ok_")
    expected = with_expectations(text, added if is_right else {}, said)
    if request.config.getoption("--update-sources"):
        path.write_bytes(mark + expected.encode())
    assert (built is not None) == is_right, said
    assert any("error: " in line for line in said) != is_right
    assert path.read_bytes() == mark + expected.encode()


def words_in(prefix: str) -> set[str]:
    found: set[str] = set()
    for path in SOURCES:
        if path.name.startswith(prefix):
            found |= set(path.read_text(encoding="utf-8-sig").lower().replace(":", " ").split())
    return found


def test_every_instruction_and_directive_has_a_source() -> None:
    directive = {
        *directives.HANDLERS,
        *data.DIRECTIVES,
        *messages.DIRECTIVES,
        *BLOCK_DIRECTIVES,
        *ALIASES,
    }
    never_right = {".error"}  # which always stops
    assert directive - never_right - words_in("ok_") == set()
    assert set(load_isa().by_mnemonic) - words_in("ok_") == set()
    assert directive - words_in("err_") == set()
    assert set(load_isa().by_mnemonic) - words_in("err_") == set()
