"""Whatever a tool is given, it succeeds or says what is wrong: sources by the grammar, and damaged files.

More examples by hand: `FUZZ=10000 pytest tests/asm/test_fuzz.py`.
"""

import os
import random
import shutil
from contextlib import redirect_stderr, redirect_stdout
from importlib import resources
from io import StringIO
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark

from cim.asm import cli_ar, cli_as, cli_ld, cli_nm, cli_objdump, cli_size
from cim.asm.assembler import assemble
from cim.asm.directives import HANDLERS
from cim.asm.elf import write_object
from cim.asm.formatter import format_text
from cim.diagnostics import CimError, ExitCode, Source
from cim.emulator import cli as cli_emu
from cim.isa.load import load_isa

MANY = int(os.environ.get("FUZZ", "0"))
ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    [
        *(Path(__file__).parent / "sources").rglob("*.s"),
        *(ROOT / "examples/handwritten").glob("*.s"),
    ]
)
HEAD = ".mode i8\n.core a, 0\n.crossbar rows=4, columns=4\n.fill 16, 2, 1\n.text\n"
GRAMMAR = Lark(
    resources.files("cim.asm").joinpath("grammar.lark").read_text(encoding="utf-8"),
    parser="lalr", lexer="basic",
)  # fmt: skip
WORDS = [*load_isa().by_mnemonic, *load_isa().buffers, *HANDLERS, ".for", ".endfor", ".if", ".else", ".endif",
         ".rept", ".endr", ".let", ".irp", ".macro", ".endm", ".include", ".word", ".fill", ".ascii", ".error",
         "k", "a", "x", ".", "sizeof", "core", "min", "rows", "columns", "role", "len", "i8", "f32"]  # fmt: skip
generated = from_lark(
    GRAMMAR,
    start="start",
    explicit={
        "NAME": st.sampled_from(WORDS),
        "NUMBER": st.sampled_from(["0", "1", "4", "7", "1024", "70000", "0x7fffffff", "0xffffffffffffffff", "1.5", "08"]),
        "STRING": st.sampled_from(['""', '"i8"', '"default"', '"core.crossbar=8x8"', '"t.s"', '"\\n"']),
    },
)  # fmt: skip
templates = st.sampled_from(
    ["load {0}, {1}", "wait {0}", ".for k, {0}, {1}", ".endfor", ".if {0}", ".endif", ".fill {0}, {1}", ".rept {0}",
     ".endr", ".region r{0}, i8, [{1}]", ".core c, {0}", ".crossbar rows={0}, columns={1}", ".param offset, {0}",
     ".align {0}", ".org {0}", ".let k = {0}", ".equ e, {0}", ".macro m a", "m {0}", ".endm", "1: .word {0} - 1b",
     ".space {0}", ".section {0}", ".line {0}", ".file {0}", ".layer x={0}", ".machine {0}", ".assert {0}, {1}",
     ".irp v, {0}", ".incbin {0}, {1}", "call {0}", "gpeu.add ob, ob, {0}, len={1}", ".mode {0}"]
)  # fmt: skip
operands = st.sampled_from(
    ["0", "1", "-1", "x", ".", "k", "1/0", "x - a", "sizeof(a)", "core(a)", "1b", "2f", '"t"', "1.5", "[1, 2]", "ib[0:4]",
     "a=1", "1 << 63", "-9223372036854775808", "18446744073709551615", "ib", ".Lx", "e", "max(k, 3)", "8000001", "", "1e999"]
)  # fmt: skip
lines = generated | st.builds(lambda t, a, b: t.format(a, b), templates, operands, operands)


def outcome(text: str, by_shape: bool):
    with mock.patch.multiple("cim.asm.batches", MIN_RUN=2, BATCH_LINES=7):
        try:
            return write_object(assemble([Source("t.s", text)], "t.o", by_shape=by_shape))
        except CimError as problem:
            return [diagnostic.render() for diagnostic in problem.diagnostics]


@settings(max_examples=MANY or 60)
@example([".file[[]]"], False)
@example([".space 18446744073709551615"], False)
@example([".for k, 0, 2", ".fill k << 61, 8", ".endfor"], True)
@given(st.lists(lines, min_size=1, max_size=12), st.booleans())
def test_generated_sources(body: list[str], head: bool) -> None:
    text = (HEAD if head else "") + "\n".join(body)
    assert outcome(text, by_shape=True) == outcome(text, by_shape=False)
    try:
        made = format_text(Source("t.s", text))
    except CimError:
        return
    assert format_text(Source("t.s", made)) == made


def damaged(raw: bytes, rng: random.Random, words: list[bytes]) -> bytes:
    """A few bytes changed, taken out, put in, repeated or exchanged for a word of another file."""
    made = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(made) + 1)
        to = min(len(made), at + rng.choice([0, 1, 1, 2, 4, 8, 30]))
        made[at:to] = rng.choice([
            b"", bytes([rng.randrange(256)]), rng.choice([b"\xff" * 8, b"\0" * 8, b"\n", b'"', b"\\", b"9" * 25]),
            bytes(made[at:to]) * 2, rng.choice(words), str(rng.choice([-1, 2**31, 2**32, 2**64])).encode(),
        ])  # fmt: skip
    return bytes(made)


def call(tool, *arguments: str) -> int:
    """The exit code; what a tool prints is thrown away, but must be printable."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = tool.main(list(arguments))
    assert status in {0, 1, 3, 4, 5, 6} & set(map(int, ExitCode)), (arguments, err.getvalue())
    assert status == 0 or err.getvalue()
    return status


@pytest.mark.parametrize("seed", range(MANY or 40))
def test_damaged_sources(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    path = rng.choice(SOURCES)
    shutil.copytree(path.parent, tmp_path / "s")
    monkeypatch.chdir(tmp_path / "s")
    words = rng.choice(SOURCES).read_bytes().split()
    Path("t.s").write_bytes(damaged(path.read_bytes(), rng, words))
    before = {p.name for p in Path().iterdir()}
    status = call(cli_as, "t.s", "-o", "t.o", "-g", "-a=t.lst")
    assert {p.name for p in Path().iterdir()} - before == (set() if status else {"t.o", "t.lst"})
    if status == 0:
        call(cli_ld, "t.o", "-o", "t", "--no-check")
        call(cli_objdump, "-d", "-S", "-h", "-t", "-r", "-s", "t.o")
        assert call(cli_as, "--format", "t.s") == 0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An object, an archive and an image of the example."""
    folder = tmp_path_factory.mktemp("built")
    name = str(folder / "h")
    assert call(cli_as, str(ROOT / "examples/handwritten/handover.s"), "-o", f"{name}.o", "-g") == 0
    assert call(cli_ar, "rc", f"{name}.a", f"{name}.o") == 0
    assert call(cli_ld, f"{name}.o", "-o", name) == 0
    return folder


@pytest.mark.parametrize("seed", range(MANY or 40))
def test_damaged_files(
    seed: int, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in built.iterdir():
        shutil.copy(path, tmp_path)
    rng = random.Random(seed)
    name = ("h.o", "h.a", "h.cfg", "h.bin")[seed % 4]
    words = Path("h.cfg").read_bytes().split(b'"')
    Path(name).write_bytes(damaged(Path(name).read_bytes(), rng, words))
    if name == "h.bin" and rng.random() < 0.7:  # past the digest, which would stop most of it
        fix_digest()
    inspected = name if name in ("h.o", "h.a") else "h.cfg"
    call(cli_nm, inspected)
    call(cli_size, inspected)
    call(cli_objdump, "-d", "-h", "-t", "-r", "-s", inspected)
    if inspected == "h.cfg":
        call(cli_emu, "h.cfg", "--max-cycles", "100000")
    else:
        call(cli_ld, inspected, "-o", "m", "-Map", "m.map")


def fix_digest() -> None:
    """Put the digest of the bin into the cfg."""
    import hashlib
    import json

    config = json.loads(Path("h.cfg").read_text())
    for key, value in config.items():
        if isinstance(value, str) and len(value) == 64:
            config[key] = hashlib.sha256(Path("h.bin").read_bytes()).hexdigest()
    Path("h.cfg").write_text(json.dumps(config))
