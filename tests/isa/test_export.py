"""The generated manual, header, package and JSON: current, valid, and in agreement with Python."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from cim.isa.encoding import decode, encode
from cim.isa.export import c_header, isa_json, sv_package
from cim.isa.load import load_isa
from cim.isa.manual import example_operands, manual
from cim.isa.strategies import Instance, boundary_words, instances

SPEC = Path(__file__).parents[2] / "spec"
ISA = load_isa()
ALL = list(ISA.instructions.values())
MADE = {
    "isa.md": manual,
    "generated/cim_isa.h": c_header,
    "generated/cim_isa_pkg.sv": sv_package,
    "generated/isa.json": isa_json,
}


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}")
    return found


def sample() -> np.ndarray:
    """Random words, legal words, and legal words with a bit flipped."""
    rng = np.random.default_rng(1)
    legal = np.array(
        [int(encode(i, example_operands(ISA, i)).reshape(1)[0]) for i in ALL for _ in range(20)],
        dtype=np.uint64,
    )
    flipped = legal ^ (np.uint64(1) << rng.integers(0, 64, len(legal)).astype(np.uint64))
    random = rng.integers(0, 2**64, 1000, dtype=np.uint64)
    return np.concatenate([random, legal, flipped, boundary_words()])


@pytest.mark.parametrize("name", MADE)
def test_the_checked_in_copy_is_current(name: str) -> None:
    assert (SPEC / name).read_text() == MADE[name](ISA), "run `make generate`"


def test_the_c_header_compiles_without_a_warning(tmp_path: Path) -> None:
    source = tmp_path / "t.c"
    source.write_text('#include "cim_isa.h"\nint main(void) { return 0; }\n')
    command = [
        tool("gcc"),
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Wno-unused-function",
        "-Werror",
        "-fsyntax-only",
    ]
    subprocess.run([*command, f"-I{SPEC / 'generated'}", source], check=True)


def test_c_decodes_as_python_does(tmp_path: Path) -> None:
    names = sorted({name for i in ALL for name in i.operands})
    program = tmp_path / "decode.c"
    program.write_text(
        '#include "cim_isa.h"\n#include <inttypes.h>\n#include <stdio.h>\n'
        'int main(void) { uint64_t w; while (scanf("%" SCNx64, &w) == 1) {\n'
        "  struct cim_instruction x = cim_decode(w);\n"
        f'  printf("%d{" %lld" * len(names)}\\n", (int)x.kind'
        + "".join(f", (long long)x.{name}" for name in names)
        + "); } return 0; }\n"
    )
    binary = tmp_path / "decode"
    subprocess.run([tool("gcc"), f"-I{SPEC / 'generated'}", program, "-o", binary], check=True)
    words = sample()
    text = "\n".join(hex(word) for word in words)
    done = subprocess.run([binary], input=text, capture_output=True, text=True, check=True)
    theirs = np.array([[int(n) for n in line.split()] for line in done.stdout.splitlines()])
    ours = decode(ISA, words)
    np.testing.assert_array_equal(theirs[:, 0], ours.index)
    for column, name in enumerate(names, 1):
        np.testing.assert_array_equal(theirs[:, column], ours.operands[name])
    assert (ours.index >= 0).sum() > 100


def test_c_encodes_as_python_does(tmp_path: Path) -> None:
    lines, expected = [], []
    for i in ALL:
        for chosen in ("minimum", "maximum"):
            operands = {
                n: (max(ISA.buffer_names) if o.kind == "buffer" else getattr(o, chosen))
                for n, o in i.operands.items()
            }
            if "lo" in operands:
                operands["lo"] = 0
            expected.append(int(encode(i, operands).reshape(1)[0]))
            values = ", ".join(f"INT64_C({v})" for v in operands.values())
            name = i.name.replace(".", "_")
            lines.append(f'  printf("%" PRIu64 "\\n", cim_encode_{name}({values}));')
    program = tmp_path / "encode.c"
    program.write_text(
        '#include "cim_isa.h"\n#include <inttypes.h>\n#include <stdio.h>\nint main(void) {\n'
        + "\n".join(lines)
        + "\n  return 0; }\n"
    )
    binary = tmp_path / "encode"
    subprocess.run([tool("gcc"), f"-I{SPEC / 'generated'}", program, "-o", binary], check=True)
    done = subprocess.run([binary], capture_output=True, text=True, check=True)
    assert [int(line) for line in done.stdout.split()] == expected


def test_systemverilog_recognizes_what_python_does(tmp_path: Path) -> None:
    compiler, runner = tool("iverilog"), tool("vvp")
    words = sample()[-1200:]
    (tmp_path / "words.hex").write_text("\n".join(format(int(w), "016x") for w in words))
    bench = tmp_path / "bench.sv"
    bench.write_text(
        "module bench;\n  import cim_isa_pkg::*;\n"
        f"  logic [63:0] words [0:{len(words) - 1}];\n  integer i;\n  initial begin\n"
        f'    $readmemh("{tmp_path / "words.hex"}", words);\n'
        f'    for (i = 0; i < {len(words)}; i = i + 1) $display("%0d", cim_decode(words[i]));\n'
        "  end\nendmodule\n"
    )
    out = tmp_path / "bench.vvp"
    package = SPEC / "generated/cim_isa_pkg.sv"
    subprocess.run([compiler, "-g2012", "-Wall", "-o", out, package, bench], check=True)
    done = subprocess.run([runner, out], capture_output=True, text=True, check=True)
    theirs = np.array([int(line) for line in done.stdout.split()])
    ours = decode(ISA, words).index
    np.testing.assert_array_equal(theirs, np.where(ours < 0, len(ALL), ours))


def test_the_json_is_the_spec() -> None:
    content = json.loads(isa_json(ISA))
    assert [i["name"] for i in content["instructions"]] == list(ISA.instructions)
    for entry, i in zip(content["instructions"], ALL, strict=True):
        assert int(entry["match"], 16) == i.match
        assert int(entry["mask"], 16) == i.mask


@settings(max_examples=200)
@given(instances())
def test_at_most_one_instruction_matches(x: Instance) -> None:
    word = int(encode(x.instruction, x.operands).reshape(1)[0])
    assert [i.name for i in ALL if word & i.mask == i.match] == [x.instruction.name]
