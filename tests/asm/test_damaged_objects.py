"""Damaged objects and archives through all tools: success or a diagnostic, nothing else."""

import random
from pathlib import Path

import pytest

from cim.asm import cli_ar, cli_as, cli_ld, cli_nm, cli_objdump, cli_size

EXAMPLE = Path(__file__).parents[2] / "examples/handwritten/handover.s"


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_file(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("h.s").write_text(EXAMPLE.read_text())
    assert cli_as.main(["h.s", "-o", "h.o"]) == 0
    assert cli_ar.main(["rc", "h.a", "h.o"]) == 0
    rng = random.Random(seed)
    name = "h.a" if seed % 4 == 0 else "h.o"
    raw = bytearray(Path(name).read_bytes())
    for _ in range(rng.randint(1, 3)):
        raw[rng.randrange(len(raw))] = rng.choice([0, 255, rng.randrange(256), rng.randrange(128)])
    Path(name).write_bytes(raw)
    for tool, arguments in (
        (cli_ld, [name, "-o", "m", "--cref", "--gc-sections"]),
        (cli_nm, [name, "-n", "-S"]),
        (cli_size, [name]),
        (cli_objdump, [name, "-l", "-t", "-r", "-h", "-s"]),
        (cli_objdump, [name, "--loops"]),
        (cli_objdump, [name, "-d", "--core", "head"]),
    ):
        assert tool.main(arguments) in (0, 1)
