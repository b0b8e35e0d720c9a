"""The frame of the command lines, and files that are written whole or not at all."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cim import console
from cim.console import run
from cim.diagnostics import CimError, Diagnostic, Note, Source, Span, did_you_mean, error
from cim.files import check_outputs, read_text, write_all

TOOLS = [
    "cim.asm.cli_as",
    "cim.asm.cli_ld",
    "cim.asm.cli_objdump",
    "cim.asm.cli_nm",
    "cim.asm.cli_size",
    "cim.codegen.cli",
    "cim.emulator.cli",
]


def call(module: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def test_a_diagnostic_draws_its_line() -> None:
    span = Span(Source("f.s", "one\n\tmvm x\n"), 2, 6, 7)
    text = Diagnostic("no", span, notes=(Note("why"), Note("there", span))).render()
    drawn = "  \tmvm x\n  \t    ^"
    assert text == f"f.s:2:6: error: no\n{drawn}\nnote: why\nf.s:2:6: note: there\n{drawn}"


def test_exit_codes_and_messages(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> int:
        raise error("wrong", where="x.s", notes=["do this"])

    def breaks() -> int:
        raise ValueError("odd")

    assert run("tool", lambda: 0) == 0
    assert run("tool", fails) == 1
    assert capsys.readouterr().err == "x.s: error: wrong\nnote: do this\n"
    assert run("tool", breaks) == 70
    assert "tool: internal error: ValueError: odd" in capsys.readouterr().err


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIM_DEBUG", "1")
    with pytest.raises(CimError):
        run("tool", lambda: (_ for _ in ()).throw(error("x")))


def test_many_errors_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> int:
        raise CimError([Diagnostic(f"e{i}") for i in range(25)])

    run("tool", fails)
    assert "note: 5 more errors not shown" in capsys.readouterr().err


@pytest.mark.parametrize("tool", TOOLS)
def test_help_version_and_usage(tool: str) -> None:
    assert call(tool, "--help").returncode == 0
    assert call(tool, "--version").stdout.split()[1] == "0.1.0"
    bad = call(tool, "--no-such-option")
    assert bad.returncode == 2
    assert "Traceback" not in bad.stderr


@pytest.mark.parametrize("tool", TOOLS)
def test_help_imports_nothing_heavy(tool: str) -> None:
    code = (
        f"import sys; sys.argv = ['t', '--help']; import {tool} as m\n"
        "import atexit\n"
        "heavy = {'numba', 'onnx', 'onnxruntime', 'tensorflow'}\n"
        "atexit.register(lambda: print('HEAVY', sorted(heavy & set(sys.modules))))\n"
        "m.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "HEAVY []" in done.stdout


@pytest.mark.parametrize("tool", TOOLS)
def test_common_slips_end_in_a_message(tool: str, tmp_path: Path) -> None:
    without = ("cim.emulator.cli", "cim.asm.cli_nm", "cim.asm.cli_size")
    output = ["-o", str(tmp_path / "out")] if tool not in without else []
    flags = ["-d"] if tool == "cim.asm.cli_objdump" else output
    (tmp_path / "text").write_text("not what you think\n")
    for name in ("missing", "folder/", "text"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        done = call(tool, str(tmp_path / name), *flags)
        assert done.returncode == 1, (name, done)
        assert "error: " in done.stderr
        assert "Traceback" not in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "text"]


def test_write_all_leaves_nothing_behind_when_one_file_fails(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("before")
    (tmp_path / "dir").mkdir()
    with pytest.raises(CimError, match="Is a directory"):
        write_all({tmp_path / "old": b"after", tmp_path / "new": b"x", tmp_path / "dir": b"y"})
    assert (tmp_path / "old").read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dir", "old"]


def test_write_all_writes_with_the_usual_permissions(tmp_path: Path) -> None:
    write_all({tmp_path / "a" / "b": b"x"})
    (tmp_path / "plain").write_text("")
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a/b", "plain")]
    assert modes[0] == modes[1]


def test_text_that_is_not_utf8_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"ok\n\xff\n")
    with pytest.raises(CimError, match="line 2 is not UTF-8 text"):
        read_text(tmp_path / "t")
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfmvm")
    assert read_text(tmp_path / "bom") == "mvm"


def test_did_you_mean() -> None:
    assert did_you_mean("lod", ["load", "store"]) == "; did you mean 'load'?"
    assert did_you_mean("zzz", ["load", "store"]) == ""


def test_links_are_followed_and_pipes_written_to(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_all({tmp_path / "link": b"new"})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_all({tmp_path / "pipe": b"through"})
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()
    write_all({Path("/dev/null"): b"gone"})
    assert Path("/dev/null").is_char_device()


def test_an_output_must_not_be_an_input_or_another_output(tmp_path: Path) -> None:
    check_outputs(["a", "b", "/dev/null", "/dev/null"], ["c"])
    (tmp_path / "link").symlink_to(tmp_path / "x")
    for outputs, inputs, message in (
        (["a"], ["b", "./a"], "a: error: is read by this command, and must not be its output"),
        (["a", "./a"], [], "./a: error: is named for two outputs"),
        ([tmp_path / "link"], [tmp_path / "x"], "is read by this command"),
    ):
        with pytest.raises(CimError, match=message):
            check_outputs(outputs, inputs)


def test_the_tools_keep_what_they_read(tmp_path: Path) -> None:
    source = tmp_path / "t.s"
    source.write_text(".mode i8\n.core a, 0\nmvm\n")
    obj = tmp_path / "t.o"
    assert call("cim.asm.cli_as", str(source), "-o", str(obj)).returncode == 0
    image = tmp_path / "t"
    assert call("cim.asm.cli_ld", str(obj), "-o", str(image)).returncode == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for tool, *arguments in (
        ("cim.asm.cli_as", source, "-o", source),
        ("cim.asm.cli_as", source, "-o", obj, "--MD", source),
        ("cim.asm.cli_as", source, "-o", obj, f"-a={obj}"),
        ("cim.asm.cli_ld", obj, "-o", image, "-Map", obj),
        ("cim.asm.cli_ld", obj, "-o", image, "-Map", tmp_path / "t.cfg"),
        ("cim.emulator.cli", tmp_path / "t.cfg", "--stats", tmp_path / "t.cfg"),
        ("cim.emulator.cli", tmp_path / "t.cfg", "--dump", "r=b.npy", "--stats", "b.npy"),
    ):
        done = call(tool, *map(str, arguments))
        assert done.returncode == 1, (tool, arguments)
        assert "must not be its output" in done.stderr or "two outputs" in done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_full_standard_output_is_a_message() -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("needs /dev/full")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "cim.asm.cli_isa", "list"], stdout=full, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "cim-isa: error: No space left on device" in done.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_shows_on_a_terminal_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: clock[0])
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with console.progress("emulating", 10) as show:
        assert show is not None
        show(1)
        assert screen.getvalue() == ""
        clock[0] += 1.5
        show(5)
    assert "emulating" in screen.getvalue()
    assert "50%" in screen.getvalue()


def test_progress_is_silent_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with console.progress("emulating", 10) as show:
        assert show is None


def test_what_takes_long_is_named_on_a_terminal() -> None:
    """Also while a library is kept quiet, whose stderr is ours."""
    code = "import os, time\nfrom cim import console\nwith console.status('reading it'):\n os.close(2)\n time.sleep(0.3)"
    master, slave = os.openpty()
    subprocess.run([sys.executable, "-c", code], stderr=slave, check=True)
    os.close(slave)
    shown = os.read(master, 4096).decode()
    os.close(master)
    assert shown.count("reading it") > 1  # it moves
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stderr == b""
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--chek"], "unrecognized arguments: --chek; did you mean '--check'?"),
        (["--xyz"], "unrecognized arguments: --xyz\n"),
        (["--sync", "rng"], "'linear'); did you mean 'ring'?"),
        (["--sync"], "argument --sync: expected one argument\n"),
    ],
)
def test_slips_in_options(given: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what is wrong, not a page of all options."""
    made = console.parser("cim-x", "Does x.")
    made.add_argument("--check", action="store_true")
    made.add_argument("--sync", choices=["ring", "linear"])
    with pytest.raises(SystemExit) as stopped:
        made.parse_args(given)
    assert stopped.value.code == 2
    error = capsys.readouterr().err.replace(
        "choose from ring, linear", "choose from 'ring', 'linear'"
    )
    assert error.startswith("cim-x: error: ")
    assert says in error
    assert error.endswith("note: cim-x --help lists the options\n")
    assert error.count("\n") == 2
