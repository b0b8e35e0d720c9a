"""The cache of the compiled engine, in processes of their own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = """
import sys
sys.path.insert(0, {tests!r})
from emulator_images import Core, load, make_image
import cim.emulator.run, cim.emulator.cli, cim.emulator.host, cim.emulator.stats
assert "numba" not in sys.modules
image = make_image([Core([load("rb", 0, 1, 0)])])
print(cim.emulator.run.run_image(image).cycles)
from numba import config
assert not config.CACHE_DIR
"""


def start(**environment):
    code = RUN.format(tests=str(Path(__file__).parent))
    kept = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "HOME")}
    return subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, cwd=ROOT, check=False,
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


def works(done):
    return done.returncode == 0 and done.stdout == "13\n" and done.stderr == ""


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_cache_is_made_used_and_survives_damage(tmp_path):
    assert works(start(XDG_CACHE_HOME=str(tmp_path / "new")))
    made = files(tmp_path)
    assert {path.suffix for path in made} == {".nbi", ".nbc"}
    assert all(path.relative_to(tmp_path).parts[:2] == ("new", "cim-toolchain") for path in made)
    stamps = [path.stat().st_mtime_ns for path in made]
    assert works(start(XDG_CACHE_HOME=str(tmp_path / "new")))
    assert [path.stat().st_mtime_ns for path in made] == stamps
    for path in made:
        path.write_bytes(path.read_bytes()[:50])
    assert works(start(XDG_CACHE_HOME=str(tmp_path / "new")))


def test_without_a_usable_cache(tmp_path):
    assert works(start(HOME=str(tmp_path / "nowhere")))
    assert not (tmp_path / "nowhere").exists()
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert works(start(HOME=str(tmp_path), XDG_CACHE_HOME=str(blocked / "cache")))
    assert files(tmp_path) == [blocked]


def test_a_folder_that_others_can_write_is_not_used(tmp_path):
    shared = tmp_path / "cim-toolchain"
    shared.mkdir()
    shared.chmod(0o777)
    assert works(start(XDG_CACHE_HOME=str(tmp_path)))
    assert files(tmp_path) == []


def test_a_terminal_is_told_about_the_compilation(tmp_path):
    code = RUN.format(tests=str(Path(__file__).parent))
    said = []
    for _ in range(2):
        ours, theirs = pty.openpty()
        subprocess.run(
            [sys.executable, "-c", code], stderr=theirs, stdout=subprocess.DEVNULL, cwd=ROOT, check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)},
        )  # fmt: skip
        os.close(theirs)
        try:
            said.append(os.read(ours, 1000).decode())
        except OSError:  # nothing was written
            said.append("")
        os.close(ours)
    assert said == ["compiling the emulator, once (about 10 s)\r\n", ""]
