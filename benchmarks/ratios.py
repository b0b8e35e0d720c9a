"""Speed as ratios taken in one run, so that they mean the same on any machine.

    python benchmarks/ratios.py
    python benchmarks/assembler.py        # assembler and linker, with their targets

Prints one line a measurement: what, its own figure, and the ratio to something measured beside it.
"""

from __future__ import annotations

import subprocess
import sys

import emulator_ratios
import numpy as np
from fastest import fastest

from cim.asm.assembler import assemble
from cim.asm.image import Image
from cim.asm.linker import link
from cim.diagnostics import Source
from cim.emulator.prepare import prepare
from cim.emulator.run import execute
from cim.isa.encoding import decode, encode
from cim.isa.interpreter import CoreProgram, Interpreter
from cim.isa.load import load_isa, read_isa, spec_text

CHAIN = """
.machine "pelke23"
.mode i8n
.region ifm, i8, [{outputs}, 32]
.region ps, i8, [{outputs}, 32]
{cores}
"""
CORE = """
.core c{v}, {v}, vg={v}
.crossbar rows=32, columns=32
  .fill 1024, 2, {v} % 3 - 1
.param adc_mul, 0.01
.text
.for o, 0, {outputs}
  load ib[0:32], ifm + o*32
  mvm
  {receive}
  store ps + o*32, ob[0:32]
  {send}
.endfor
"""


def show(what: str, figure: str, ratio: float, against: str) -> None:
    print(f"{what:<52} {figure:>22} {ratio:>10.2f} x {against}")


def chain(cores: int, outputs: int) -> Image:
    """A linear chain of cores: load, mvm, wait, load, add, store, call for every output."""
    parts = []
    for v in range(cores):
        receive = "wait o + 1\n  load pb[0:32], ps + o*32\n  gpeu.add ob, ob, pb" if v else ""
        send = f"call c{v + 1}" if v + 1 < cores else ""
        parts.append(CORE.format(v=v, outputs=outputs, receive=receive, send=send))
    text = CHAIN.format(outputs=outputs, cores="".join(parts))
    return link([assemble([Source("chain.s", text)], "chain.o")], "chain")


def encoding() -> None:
    """A million words against a plain pass over the same array."""
    isa = load_isa()
    rng = np.random.default_rng(0)
    addresses = rng.integers(0, 2**32, 1_000_000)
    load = isa.instructions["load"]
    operands = {"buffer": 2, "lo": 0, "hi": 32, "address": addresses}
    words = encode(load, operands)
    plain = fastest(lambda: words ^ np.uint64(1))
    for what, action in (
        ("encode 1,000,000 words", lambda: encode(load, operands)),
        ("decode 1,000,000 words", lambda: decode(isa, words)),
    ):
        seconds = fastest(action)
        show(what, f"{seconds:.3f} s", seconds / plain, "one NumPy pass")


def starting() -> None:
    """Loading the spec, and the slowest tool's --help, against starting Python."""
    python = fastest(lambda: subprocess.run([sys.executable, "-c", ""], check=True))
    seconds = fastest(lambda: read_isa(Source("isa.toml", spec_text("isa.toml"))))
    show("load the spec", f"{1000 * seconds:.1f} ms", seconds / python, "starting Python")
    tools = (
        "asm.cli_isa",
        "asm.cli_as",
        "asm.cli_ld",
        "asm.cli_objdump",
        "codegen.cli",
        "emulator.cli",
    )
    slowest = max(
        fastest(
            lambda tool=tool: subprocess.run(
                [sys.executable, "-m", f"cim.{tool}", "--help"], check=True, capture_output=True
            )
        )
        for tool in tools
    )
    show(
        "the slowest tool's --help", f"{1000 * slowest:.0f} ms", slowest / python, "starting Python"
    )


def emulating() -> None:
    """Instructions a second, with values and timing, against the reference interpreter without time."""
    image = chain(16, 4000)
    prepared = prepare(image)
    count = len(prepared.program)
    execute(prepared)
    seconds = fastest(lambda: execute(prepared))
    small = chain(16, 8)
    isa = load_isa()

    def interpret() -> None:
        programs = [
            CoreProgram(small.words(core), small.weights(core), small.parameters(core))
            for core in small.config.cores
        ]
        Interpreter(isa, small.config.numeric_mode, (32, 32), small.memory(), programs).run()

    slow = fastest(interpret) / len(prepare(small).program)
    rate = count / seconds
    show("emulate a chain of 16 cores, 32x32, i8n", f"{rate / 1e6:.1f} M instr/s", slow * rate,
         "reference interpreter")  # fmt: skip


if __name__ == "__main__":
    encoding()
    starting()
    emulating()
    emulator_ratios.main()
