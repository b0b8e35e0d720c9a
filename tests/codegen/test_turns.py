"""Turns of a mapping, and that a machine of few cores gives the numbers of a machine of many."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import cim
from cim.asm.read_image import read_image
from cim.codegen import cli
from cim.codegen.compile_layer import compile_turns
from cim.codegen.driver import compile_model
from cim.codegen.mapping import map_layer
from cim.codegen.schedule import SCHEMES, schedule_turn
from cim.codegen.turns import turn_ends, turns_of
from cim.codegen.window import MAPPINGS
from cim.diagnostics import CimError
from cim.emulator.cli import main as emulate
from cim.isa.machine import load_machine
from tests.codegen.models import imported, model, only_layer, operator, save, value

DIGITS = Path(__file__).parents[2] / "examples/digits"
F = np.float32
counts = st.integers(1, 40)


@given(counts, counts, counts)
def test_as_few_turns_as_can_be(p_h, p_v, available):
    cores = p_h * p_v
    ends = turn_ends(cores, p_v, available)
    sizes = np.diff((0, *ends))
    assert ends[-1] == cores
    assert len(ends) == -(-cores // available)
    assert sizes.min() > 0
    assert sizes.max() <= available
    whole = available // p_v  # horizontal groups that fit at a time
    if whole and -(-p_h // whole) == len(ends):
        assert all(end % p_v == 0 for end in ends), "a chain is cut where none need be"
        assert sizes.max() - sizes.min() <= p_v


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 20), st.sampled_from(SCHEMES))
def test_every_tile_works_in_one_turn_and_every_chain_goes_on(channels, outputs, available, scheme):
    layer = only_layer(
        imported(
            operator("Conv", (1, channels, 4, 3), {"w": np.ones((outputs, channels, 2, 2), F)})
        )
    )
    mapping = map_layer(layer, 3, 5)
    turns = turns_of(mapping, available)
    assert [(t.hg, t.vg) for turn in turns for t in turn.tiles] == [
        (t.hg, t.vg) for t in mapping.tiles
    ]
    reached = dict.fromkeys(range(mapping.p_h), 0)
    for turn in turns:
        assert [tile.number for tile in turn.tiles] == list(range(turn.cores))
        schedule = schedule_turn(scheme, mapping, turn)
        names = {(tile.hg, tile.vg) for tile in turn.tiles}
        firsts, lasts = dict.fromkeys(reached, 0), dict.fromkeys(reached, 0)
        for tile, plan in zip(turn.tiles, schedule.plans, strict=True):
            assert plan.vg == tile.vg
            for other in (plan.successor, plan.predecessor):
                assert other is None or (tile.hg, other) in names
            steps = plan.expand()
            assert sorted(steps.output) == list(range(mapping.vectors))
            firsts[tile.hg] += int(steps.first.sum())
            lasts[tile.hg] += int(steps.last.sum())
            assert plan.resumes == (reached[tile.hg] > 0)
        for hg in {hg for hg, _ in names}:
            assert firsts[hg] == lasts[hg] == mapping.vectors
            reached[hg] += sum(1 for name in names if name[0] == hg)
        for tile, plan in zip(turn.tiles, schedule.plans, strict=True):
            assert plan.pauses == (reached[tile.hg] < mapping.p_v)
    assert set(reached.values()) == {mapping.p_v}


@settings(max_examples=60)
@given(
    st.sampled_from([(1, 3, 9), (2, 4, 6), (3, 2, 5), (6, 1, 2), (4, 1, 1)]), st.integers(1, 12), st.booleans(),
    st.sampled_from(SCHEMES), st.sampled_from(["f32", "i8", "i8n"]), st.sampled_from(["im2col", "sdk", "vw-sdk"]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_convolutions(shape, count, slopes, scheme, mode, mapping, seed):
    """Groups of every kind, per-channel scales and slopes, and any number of cores."""
    groups, channels, own = shape
    rng = np.random.default_rng(seed)
    weights = rng.integers(-128, 128, (groups * own, channels, 2, 2))
    x_shape = (2, groups * channels, 4, 3)
    nodes, constants = [], {}
    act = [helper.make_node("PRelu", ["s", "slopes"], ["a"], "act")] if slopes else []
    if slopes:
        constants["slopes"] = rng.uniform(0.1, 2, (groups * own, 1, 1)).astype(F)
    last = "a" if slopes else "s"
    out = (2, groups * own, 3, 2)
    if mode == "f32":
        constants |= {"w": weights.astype(F), "b": rng.normal(size=groups * own).astype(F)}
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["s"], "n", group=groups), *act]
        nodes[-1].output[0] = "y"
        info = [value("x", F, x_shape)], [value("y", F, out)]
        x = rng.normal(size=x_shape).astype(F)
    else:
        scales = rng.uniform(0.1, 1, groups * own).astype(F)
        constants |= {
            "w": weights.astype(np.int8), "ws": scales, "sx": F(0.5), "zx": np.uint8(9), "sy": F(40), "zy": np.uint8(99),
            "b": rng.integers(-99, 99, groups * own).astype(np.int32), "bs": F(0.5) * scales,
        }  # fmt: skip
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["dx"]),
            helper.make_node("DequantizeLinear", ["w", "ws"], ["dw"], axis=0),
            helper.make_node("DequantizeLinear", ["b", "bs"], ["db"], axis=0),
            helper.make_node("Conv", ["dx", "dw", "db"], ["s"], "n", group=groups),
            *act,
            helper.make_node("QuantizeLinear", [last, "sy", "zy"], ["y"]),
        ]
        info = [value("x", np.uint8, x_shape)], [value("y", np.uint8, out)]
        x = rng.integers(0, 256, x_shape).astype(np.uint8)
    made = model(nodes, *info, constants)
    width = "narrow" if mode == "i8n" else "wide"
    common = ["core.crossbar=4x4", f"core.partial_sum={width}", "core.mvm_cycles=10"]
    whole = cim.compile(made, settings=common, sync=scheme, mapping=mapping).run(x)
    (layer,) = whole.stats.layers.values()
    few = cim.compile(
        made, settings=[*common, f"core.count={count}"], sync=scheme, fold=True, mapping=mapping
    )
    run = few.run(x, check=True)
    # In cyclic and ring the order of additions is one within a turn, and it matters where sums round or saturate.
    if mode == "i8" or scheme in ("sequential", "linear", "central"):
        np.testing.assert_array_equal(run.outputs["y"], whole.outputs["y"])
    elif mode == "f32":
        np.testing.assert_allclose(run.outputs["y"], whole.outputs["y"], rtol=1e-4, atol=1e-2)
    turns = run.stats.layers.values()
    assert len(turns) == -(-layer.cores // count)
    assert sum(turn.cores for turn in turns) == layer.cores
    assert run.stats.cores <= count
    assert run.stats.host == []
    # Nothing moves more than once, and each MVM is done.
    assert run.stats.instructions.mvm == whole.stats.instructions.mvm
    assert run.stats.values == whole.stats.values
    assert run.stats.bytes.load == whole.stats.bytes.load
    assert run.stats.bytes.store == whole.stats.bytes.store
    assert run.stats.instructions.call <= whole.stats.instructions.call


@pytest.mark.parametrize("count", [2, 4, 25])
def test_setup_is_repeated_and_counted(tmp_path, count):
    """By the formula of spec/timing.md: every turn anew for each image, but what lies in memory only once."""
    rng = np.random.default_rng(0)
    constants = {"w": rng.normal(size=(20, 5, 2, 2)).astype(F), "b": rng.normal(size=20).astype(F)}
    made = operator("Conv", (1, 5, 3, 3), constants)
    x = rng.normal(size=(3, 5, 3, 3)).astype(F)
    settings_ = ["core.crossbar=4x4", f"core.count={count}", "bus.width_bytes=4"]
    settings_ += ["setup.row_program_cycles=1000", "setup.register_write_cycles=7"]
    program = cim.compile(made, settings=settings_, fold=True)
    stats = program.run(x, check=True).stats
    program.save(tmp_path)
    turns = -(-25 // count)
    assert len(stats.layers) == turns
    expected = []
    names = [f"n-turn{turn + 1}.cfg" for turn in range(turns)] if turns > 1 else ["n.cfg"]
    for name in names:
        config = read_image(tmp_path / name).config
        cycles = sum(core.program.size // 4 + core.rows * core.columns for core in config.cores)
        cycles += 4 * 1000 + 7 * len(config.cores)  # float layers have no parameters
        expected.append(cycles * (len(x) if turns > 1 else 1))
    expected[0] += 20 + len(x) * 5 * 3 * 3  # the bias, and an IFM for each image
    assert [turn.setup_cycles for turn in stats.layers.values()] == expected
    assert stats.setup_cycles == sum(expected)
    assert stats.cycles == sum(turn.cycles for turn in stats.layers.values())
    assert stats.instructions.mvm == 25 * 4 * len(x)


def test_the_order_of_saturating_sums_is_that_of_the_turns():
    """+100, +100, -100 by three cores: only where -100 is not the last, nothing saturates."""
    constants = {
        "sx": F(1), "zx": np.int8(0), "w": np.array([[100], [100], [-100]], np.int8), "sw": F(1), "zw": np.int8(0),
        "sy": F(1), "zy": np.int8(0),
    }  # fmt: skip
    made = operator(
        "QLinearMatMul", (3, 3), constants, dtype=np.int8,
        inputs=["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"],
    )  # fmt: skip
    x = np.ones((3, 3), np.int8)
    outputs = {}
    for count in (1, 2, 3):
        settings_ = ["core.crossbar=1x1", "core.partial_sum=narrow", f"core.count={count}"]
        program = cim.compile(made, settings=settings_, sync="ring", fold=True)
        outputs[count] = program.run(x, check=True).outputs["y"].ravel().tolist()
    step = 128 / 127  # of a partial sum; 100 is 99 steps
    saturated, exact = round((127 - 99) * step), round(99 * step)
    assert outputs[1] == [saturated] * 3  # 0 1 2
    assert outputs[2] == [saturated] * 3  # 0 1 or 1 0, then 2
    assert outputs[3] == [exact, saturated, exact]  # 0 2 1, 1 0 2, 2 1 0


def test_files_of_a_single_layer_that_is_folded(tmp_path, capsys):
    """`--layer` gives the images and a network.json that names their order."""
    rng = np.random.default_rng(1)
    made = operator("Conv", (1, 3, 5, 4), {"w": rng.normal(size=(6, 3, 3, 3)).astype(F)})
    path, build = save(made, tmp_path), tmp_path / "b"
    common = [str(path), "-o", str(build), "--set", "core.crossbar=4x4", "--set", "core.count=5"]
    assert cli.main([*common, "--layer", "n", "--fold", "--report", str(tmp_path / "r.html")]) == 0
    out = capsys.readouterr().out
    assert all(f"n (turn {turn} of 3)" in out for turn in (1, 2, 3))
    assert (tmp_path / "r.html").read_text().count("<h3>") == 1
    network = json.loads((build / "network.json").read_text())
    (step,) = network["steps"]
    assert (step["cfg"], step["later_turns"]) == ("n-turn1.cfg", ["n-turn2.cfg", "n-turn3.cfg"])
    x = rng.normal(size=(2, 3, 5, 4)).astype(F)
    run = cim.Program(build).run(x, check=True)
    want = cim.compile(made, settings=["core.crossbar=4x4"]).run(x).outputs["y"]
    np.testing.assert_array_equal(run.outputs["y"], want)
    # All turns see the same regions at the same places.
    places = [
        [(r["name"], r["address"], r["size_bytes"]) for r in json.loads(cfg.read_text())["regions"]]
        for cfg in build.glob("*.cfg")
    ]
    assert len(places) == 3
    assert all(one == places[0] for one in places)


def test_without_fold_a_layer_that_is_too_large_is_an_error_that_names_it(tmp_path, capsys):
    path = save(operator("MatMul", (3, 9), {"w": np.ones((9, 8), F)}), tmp_path)
    common = [str(path), "-q", "-o", str(tmp_path / "b"), "--set", "core.crossbar=4x4", "--set"]
    assert cli.main([*common, "core.count=2"]) == 1
    err = capsys.readouterr().err
    assert "needs 6 cores (3 for 9 kernel rows x 2 for 8 channels), the machine" in err
    assert "or --fold (in Python fold=True), which lets the cores work in several turns" in err
    assert cli.main([*common, "core.count=2", "--fold"]) == 0
    assert cli.main([*common, "core.count=1", "--fold"]) == 0


def test_a_folder_that_was_folded_before(tmp_path, capsys):
    """Nothing of the older network.json is left, where the layer fits now."""
    path = save(operator("MatMul", (3, 9), {"w": np.ones((9, 8), F)}), tmp_path)
    common = [
        str(path),
        "-q",
        "-o",
        str(tmp_path / "b"),
        "--set",
        "core.crossbar=4x4",
        "--layer",
        "n",
        "--fold",
    ]
    for count, turns in ((2, 3), (6, 1)):
        assert cli.main([*common, "--set", f"core.count={count}"]) == 0
        stats = cim.Program(tmp_path / "b").run(np.ones((3, 9), F), check=True).stats
        assert len(stats.layers) == turns
    assert "note:" not in capsys.readouterr().out
    common.remove("-q")
    assert cli.main([*common, "--set", "core.count=6"]) == 0
    assert "note: n-turn1.cfg and 2 more there are of an earlier run" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["a[/b]", "[red]x", "x" * 300, "[link=file:///]"])
def test_names_of_any_kind(tmp_path, capsys, name):
    made = operator("MatMul", (3, 9), {"w": np.ones((9, 8), F)})
    made.graph.node[0].name = name
    path, build = save(made, tmp_path), tmp_path / "b"
    common = [str(path), "-o", str(build), "--fold", "--set", "core.crossbar=4x4"]
    assert cli.main([*common, "--set", "core.count=2"]) == 0
    assert name[:60] in capsys.readouterr().out  # longer ones are folded
    (step,) = json.loads((build / "network.json").read_text())["steps"]
    files = [step["cfg"], *step["later_turns"]]
    assert [file[-len("-turn1.cfg") :] for file in files] == [f"-turn{n}.cfg" for n in (1, 2, 3)]
    np.save(tmp_path / "x.npy", np.ones((3, 9), F))
    assert emulate([str(build / "network.json"), "--input", str(tmp_path / "x.npy")]) == 0
    assert name[:60] in capsys.readouterr().out


def test_layers_that_fit_are_not_folded(tmp_path):
    path = save(operator("MatMul", (3, 9), {"w": np.ones((9, 8), F)}), tmp_path)
    machine = load_machine("default", ["core.crossbar=4x4", "core.count=6"])
    plain, folded = (compile_model(path, machine, fold=fold).files() for fold in (False, True))
    assert plain == folded


@given(
    st.integers(1, 8), st.integers(1, 12), st.integers(3, 8), st.integers(3, 8), st.integers(2, 20),
    st.integers(2, 30), st.integers(1, 12), st.sampled_from(MAPPINGS),
)  # fmt: skip
def test_what_fits_with_some_window_is_not_folded(
    channels, outputs, height, width, columns, rows, count, kind
):
    """A window with fewer MVMs in all may need more cores, and setups for each image with them."""
    made = operator(
        "Conv", (1, channels, height, width), {"w": np.ones((outputs, channels, 2, 2), F)}
    )
    layer = only_layer(imported(made))
    settings_ = [f"core.crossbar={columns}x{rows}", f"core.count={count}"]
    machine = load_machine("default", settings_)
    fitting = map_layer(layer, columns, rows, kind, count)
    turns = compile_turns(layer, machine, "linear", set(), kind)
    if fitting.cores <= count:
        assert len(turns) == 1
        assert turns[0].mapping.title == fitting.title
    else:
        assert len(turns) == -(-turns[0].mapping.cores // count) > 1


def test_a_whole_network(tmp_path):
    """Digits on a fifth of the cores that it needs."""
    images = np.load(DIGITS / "test_images.npy")[:2]
    machine = ["core.crossbar=32x32", "core.mvm_cycles=50"]
    whole = cim.compile(DIGITS / "digits_int8.onnx", settings=machine).run(images)
    few = [*machine, f"core.count={whole.stats.cores // 5}"]
    with pytest.raises(CimError, match="too few"):
        cim.compile(DIGITS / "digits_int8.onnx", settings=few)
    program = cim.compile(DIGITS / "digits_int8.onnx", settings=few, fold=True)
    run = program.run(images, check=True)
    (name,) = run.outputs
    assert np.array_equal(run.outputs[name], whole.outputs[name])
    assert run.stats.cores <= whole.stats.cores // 5
    program.save(tmp_path)
    steps = json.loads((tmp_path / "network.json").read_text())["steps"]
    layers = [step for step in steps if step["type"] == "layer"]
    assert len(layers) == len(whole.stats.layers)
    assert sum(1 + len(step.get("later_turns", ())) for step in layers) == len(run.stats.layers)
