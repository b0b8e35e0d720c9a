"""What the compiler writes is in the layout of `cim-as --format`."""

from pathlib import Path

import pytest

from cim.asm import cli_as
from cim.codegen import cli

MODEL = Path(__file__).parents[2] / "examples/digits/digits_int8.onnx"


@pytest.mark.parametrize("scheme", ["sequential", "cyclic", "ring"])
def test_compiled_text_is_in_the_layout(scheme: str, tmp_path: Path) -> None:
    layer = ["--layer", "digits_1/conv2_1/BiasAdd", "--set", "core.crossbar=32x32"]
    assert cli.main([str(MODEL), "-S", "-q", "-o", str(tmp_path), "--sync", scheme, *layer]) == 0
    sources = sorted(map(str, tmp_path.glob("*.s")))
    assert len(sources) > 4
    assert cli_as.main(["--format", "--check", *sources]) == 0
