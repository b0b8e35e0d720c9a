"""`cim-cc --report` and its estimate."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cim
from cim.codegen import cli
from cim.codegen.compile_layer import compile_layer
from cim.codegen.driver import compile_model
from cim.codegen.estimate import estimate
from cim.codegen.schedule import SCHEMES
from cim.emulator.prepare import prepare
from cim.emulator.run import execute
from cim.emulator.stats import collect
from cim.explore.table1 import make_layer, read_table
from cim.isa.machine import load_machine
from tests.codegen.models import imported, only_layer, operator

DIGITS = Path(__file__).parents[2] / "examples/digits"
F = np.float32


class Page(HTMLParser):
    """Tables as rows of texts, and the titles of drawings."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.titles, self.scripts = [], [], [], 0
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, _attrs):
        if tag in ("meta", "rect"):
            return
        self.open.append(tag)
        self.scripts += tag == "script"
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        if tag not in ("meta", "rect"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        elif self.open and self.open[-1] == "title":
            self.titles.append(data)


@pytest.mark.parametrize("mapping", ["im2col", "vw-sdk"])
def test_page(tmp_path, mapping):
    arguments = [
        str(DIGITS / "digits_int8.onnx"),
        "-o",
        str(tmp_path / "build"),
        "-q",
        "--set",
        "core.crossbar=32x32",
    ]
    assert cli.main([*arguments, "--mapping", mapping, "--report", str(tmp_path / "r.html")]) == 0
    page = Page((tmp_path / "r.html").read_text())
    model = compile_model(
        DIGITS / "digits_int8.onnx",
        load_machine("default", ["core.crossbar=32x32"]),
        mapping=mapping,
    )
    head = page.rows[0]
    rows = {
        row[0]: dict(zip(head, row, strict=True)) for row in page.rows[1 : 1 + len(model.layers)]
    }
    for one in model.layers:
        row = rows[one.layer.name]
        assert (int(row["P_V"]), int(row["P_H"]), int(row["cores"])) == (
            one.mapping.p_v,
            one.mapping.p_h,
            one.mapping.cores,
        )
        assert row["matrix"] == "x".join(map(str, one.layer.matrix_shape))
        assert row["scheme"] == "linear"
        assert int(row["MACs"].replace(",", "")) == one.layer.macs
    assert sum(title.startswith("core ") for title in page.titles) == sum(
        one.mapping.cores for one in model.layers
    )
    on_host = {row[0] for row in page.rows[2 + len(model.layers) :]}
    assert on_host == {entry.name for entry in model.partition.report}
    assert page.scripts == 0


def test_names_of_the_model_are_text_and_one_layer_has_a_page(tmp_path):
    made = operator("Conv", (1, 2, 4, 4), {"w": np.ones((2, 2, 2, 2), F)})
    made.graph.node[0].name = "<script>&"
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    command = [
        str(tmp_path / "m.onnx"),
        "-q",
        "-o",
        str(tmp_path / "b"),
        "--layer",
        "<script>&",
        "--report",
        str(tmp_path / "r.html"),
    ]
    assert cli.main(command) == 0
    page = Page((tmp_path / "r.html").read_text())
    assert page.scripts == 0
    assert page.rows[1][0] == "<script>&"


def test_a_report_over_the_model_is_refused(tmp_path, capsys):
    made = operator("Conv", (1, 2, 4, 4), {"w": np.ones((2, 2, 2, 2), F)})
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    assert cli.main([str(path), "-o", str(tmp_path / "b"), "--report", str(path)]) != 0
    assert "error: " in capsys.readouterr().err
    assert path.read_bytes() == made.SerializeToString()


@settings(max_examples=40)
@given(
    st.sampled_from(SCHEMES), st.integers(1, 6), st.integers(1, 9), st.booleans(),
    st.sampled_from([4, 32]), st.sampled_from([1, 100, 1000]), st.sampled_from(["im2col", "vw-sdk"]),
    st.sampled_from(["shared", "per_target"]),
)  # fmt: skip
def test_no_run_is_faster_than_the_estimate(
    scheme, channels, outputs, has_bias, width, mvm, mapping, topology
):
    constants = {"w": np.ones((outputs, channels, 3, 2), F)}
    if has_bias:
        constants["b"] = np.ones(outputs, F)
    layer = only_layer(imported(operator("Conv", (1, channels, 6, 5), constants)))
    settings_ = ["core.crossbar=8x8", f"bus.width_bytes={width}", f"core.mvm_cycles={mvm}"]
    settings_.append(f"bus.topology={topology}")
    machine = load_machine("default", settings_)
    compiled = compile_layer(layer, machine, scheme, "one", mapping)
    stats = collect([execute(prepare(compiled.image()))])
    least = estimate(compiled, machine)
    assert least.cycles <= stats.cycles
    assert least.core <= stats.lower_bound.cycles
    assert least.bus <= stats.lower_bound.cycles
    if mapping == "im2col" and scheme != "sequential":
        assert least.cycles > 0.7 * stats.lower_bound.cycles


@pytest.mark.parametrize("scheme", SCHEMES)
def test_predictions_are_near(scheme):
    """Layers of Table I, from a bus with much room to one with none."""
    errors = []
    for row in read_table()[4:]:
        layer = only_layer(imported(make_layer(row)))
        for width, mvm in ((4, 100), (8, 1000), (32, 100), (64, 1000)):
            settings_ = [f"bus.width_bytes={width}", f"core.mvm_cycles={mvm}"]
            machine = load_machine("default", ["core.crossbar=128x128", *settings_])
            compiled = compile_layer(layer, machine, scheme, "one")
            cycles = execute(prepare(compiled.image()), values=False).cycles
            errors.append(abs(estimate(compiled, machine).predicted / cycles - 1))
    assert np.mean(errors) < 0.15
    assert max(errors) < 0.4


def test_estimates_of_a_network_are_near():
    program = cim.compile(DIGITS / "digits_int8.onnx", settings=["core.crossbar=32x32"])
    model = compile_model(
        DIGITS / "digits_int8.onnx", load_machine("default", ["core.crossbar=32x32"])
    )
    x = np.load(DIGITS / "test_images.npy")[:1]
    stats = program.run(x).stats
    for one in model.layers:
        made, cycles = estimate(one, model.machine), stats.layers[one.layer.name].cycles
        assert 0.85 < made.cycles / cycles <= 1, re.sub(r"\s+", " ", one.layer.name)
        assert made.cycles <= made.predicted < 1.1 * cycles
