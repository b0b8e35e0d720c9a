"""Speed and memory of assembler and linker, each with its target; GNU `as` is measured in the same run.

python benchmarks/assembler.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fastest import fastest

from cim.asm.assembler import assemble
from cim.diagnostics import Source

HEAD = ".mode i8n\n.core a, 0\n.crossbar rows=32, columns=32\n.fill 1024, 2, 1\n.text\n"
BODY = """load ib[0:32], ifm + {a}
mvm
wait {k}
load pb[0:32], ps + {b}
gpeu.add ob, ob, pb
store ps + {b}, ob[0:32]
call b
"""
LINES = BODY.count("\n")
CORES = 1024
CORE = """.core c{n}, {n}, vg={n}
.crossbar rows=32, columns=32
  .fill 1024, 2, 1
.text
.for o, 0, 500
  load ib[0:32], ifm + o*32
  mvm
  store ps + o*32, ob[0:32]
.endfor
"""
# Runs a tool in a process of its own and says on stderr how much memory it took, in kB.
MEASURED = """
import resource, sys
from cim.asm import cli_as as tool
status = tool.main()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(status)
"""


def flat(lines: int) -> str:
    """A program of unrolled instructions."""
    return HEAD + "".join(BODY.format(a=128 * k, b=32 * k, k=k + 1) for k in range(lines // LINES))


def show(what: str, figure: str, target: str) -> None:
    print(f"{what:<58} {figure:>32}   target: {target}")


def gnu(folder: Path, text: str) -> float | None:
    """Seconds of GNU as, start included; None where there is none."""
    if shutil.which("as") is None:
        return None
    (folder / "gnu.s").write_text(text)
    command = ["as", str(folder / "gnu.s"), "-o", str(folder / "gnu.o")]
    return fastest(lambda: subprocess.run(command, check=True), 5)


def against(seconds: float, other: float | None) -> str:
    ratio = f"{seconds / other:.2f} x GNU as" if other else "no GNU as"
    return f"{seconds:.2f} s = {ratio}"


def loop(folder: Path) -> None:
    text = ".mode i8\n.core a, 0\n.for k, 0, 600000\nload ib[0:32], k*32\nwait k\nmvm\n.endfor\n"
    seconds = fastest(lambda: assemble([Source("loop.s", text)], "loop.o"), 3)
    other = gnu(folder, ".rept 1800000\n.quad 1\n.endr\n")
    show("(a) a loop of 1,800,000 instructions", against(seconds, other), "1 x .rept of .quad")


def unrolled(folder: Path) -> None:
    text = flat(300_000)
    seconds = fastest(lambda: assemble([Source("flat.s", text)], "flat.o"), 3)
    other = gnu(folder, "".join(f".quad {k}\n" for k in range(300_000)))
    show("(b) 300,000 flat lines", against(seconds, other), "60 x .quad lines, 4 s")


def memory(folder: Path, what: str, text: str, target: str) -> None:
    """Time and memory of `cim-as` as a command, start and output included."""
    (folder / "big.s").write_text(text)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(folder / "big.s"), "-o", str(folder / "big.o")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    show(what, f"{int(done.stderr) / 1024:.0f} MB, {seconds:.1f} s", target)


def linear() -> None:
    each = {}
    for lines in (10_000, 100_000, 1_000_000):
        text = flat(lines)
        seconds = fastest(lambda text=text: assemble([Source("f.s", text)], "f.o"), 3)
        each[lines] = 1e6 * seconds / lines
    figure = " / ".join(f"{value:.2f}" for value in each.values()) + " us a line"
    show("(d) 10,000 / 100,000 / 1,000,000 flat lines", figure, "the same")


def linking(folder: Path) -> None:
    regions = (
        '.machine "pelke23"\n.mode i8n\n.region ifm, i8, [500, 32]\n.region ps, i8, [500, 32]\n'
    )
    text = regions + "".join(CORE.format(n=n) for n in range(CORES))
    (folder / "cores.s").write_text(text)
    tool = [sys.executable, "-m"]
    out = str(folder / "cores")
    subprocess.run([*tool, "cim.asm.cli_as", f"{out}.s", "-o", f"{out}.o"], check=True)
    command = [*tool, "cim.asm.cli_ld", f"{out}.o", "-o", out]
    seconds = fastest(lambda: subprocess.run(command, check=True), 3)
    show(f"(e) cim-ld of {CORES} cores, {CORES * 1500:,} instructions", f"{seconds:.2f} s", "3 s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        loop(work)
        unrolled(work)
        memory(work, "(c) 300,000 flat lines, cim-as as a command", flat(300_000), "1 GB")
        linear()
        linking(work)
        large = flat(5_000_000)[: 100 * 2**20].rsplit("\n", 1)[0] + "\n"
        memory(work, f"(f) 100 MB, {large.count(chr(10)):,} lines", large, "nothing quadratic")
