"""Cores that start at an entry: the engine, the reference interpreter and the counts agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.asm.assembler import assemble
from cim.asm.image import Image
from cim.asm.linker import LinkOptions, link
from cim.diagnostics import Source
from cim.emulator.run import DeadlockError, RunFault, run_image
from cim.emulator.stats import collect
from cim.isa.interpreter import CoreProgram, Interpreter
from cim.isa.load import load_isa

HEAD = '.machine "default", "core.crossbar=4x4"\n.mode i8\n.region x, i8, [8]\n.byte 1, 2, 3, 4, 5, 6, 7, 8\n'


def image_of(text: str, *entries: str) -> Image:
    return link(
        [assemble([Source("p.s", HEAD + text)], "p.o")], "out", LinkOptions(entries=entries)
    )


def count_calls(image: Image) -> int:
    return collect([run_image(image)]).instructions.call


@settings(max_examples=15)
@given(st.integers(1, 6), st.data())
def test_what_runs_is_what_the_interpreter_runs(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, count - 1))
    moves = [
        f"{'go: ' if i == first else ''}load ib[0:2], x + {i}\nstore x + {i + 2}, ib[0:2]\n"
        for i in range(count)
    ]
    text = ".core a, 0\n" + "".join(moves)
    image = image_of(text, "go")
    result = run_image(image)
    (core,) = image.config.cores
    reference = Interpreter(
        load_isa(), image.config.numeric_mode, (4, 4), image.memory(),
        [CoreProgram(image.words(core), entry=core.entry // 8)],
    )  # fmt: skip
    with np.errstate(all="ignore"):
        reference.run()
    assert np.array_equal(result.memory, reference.memory)


def test_a_fault_is_told_at_its_own_line() -> None:
    text = ".core a, 0\nwait 0\nwait 0\ngo: wait 0\nload ib[0:4], 0xFFFF_FFF0\n"
    with pytest.raises(RunFault, match=r"p\.s:9"):
        run_image(image_of(text, "go"))


def test_only_what_runs_is_counted() -> None:
    text = ".core a, 0\ncall b\ngo: call b\n.core b, 1\nwait 1\n"
    assert count_calls(image_of(text, "go")) == 1
    with pytest.raises(DeadlockError) as raised:
        run_image(image_of(text.replace("wait 1", "wait 2"), "go"))
    assert "1 CALL in all programs, the wait needs 2" in str(raised.value)
