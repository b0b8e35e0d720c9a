"""The JSON schemas: current, true of real files, and strict."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest

from cim.asm.network_file import read_network
from cim.asm.read_image import read_image
from cim.codegen.cli import main as compile_command
from cim.diagnostics import CimError
from cim.emulator.cli import main as run_command
from cim.emulator.network_stats import NetworkStats
from cim.emulator.schemas import schemas
from cim.emulator.stats import Stats

ROOT = Path(__file__).parents[2]
SCHEMAS = {name: json.loads(content) for name, content in schemas().items()}
VALIDATORS = {name: jsonschema.Draft202012Validator(content) for name, content in SCHEMAS.items()}
# Keys that a file may leave out.
MEMORY = (
    "read_outstanding",
    "write_outstanding",
    "banks",
    "bank_interleave_bytes",
    "bank_cycles",
    "bank_ports",
)
OPTIONAL = {
    "activation",
    "alpha",
    "converters",
    "groups",
    "later_turns",
    "mapping",
    "turn",
    "turn_ends",
    "window_height",
    "window_width",
    *MEMORY,
}  # the bus's limits of the same name are not


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The digits network, compiled and run, and one of its layers run alone."""
    path = tmp_path_factory.mktemp("schemas")
    model = ROOT / "examples/digits/digits_int8.onnx"
    few = ["--set", "core.count=12", "--fold"]  # one layer needs twice as many
    command = [str(model), "-o", str(path), "--set", "core.crossbar=32x32"]
    assert compile_command([*command, *few]) == 0
    network = read_network(path / "network.json")
    (tensor,) = network.inputs
    np.save(path / "x.npy", np.zeros(tensor.shape, tensor.dtype))
    command = [str(path / "network.json"), "--input", str(path / "x.npy"), "--quiet"]
    assert run_command([*command, "--stats", str(path / "network-stats.json")]) == 0
    cfg = layer_cfg(path)
    layer = read_image(cfg).config
    x = np.zeros(layer.layer.input_shape, {"u8": np.uint8, "i8": np.int8}[layer.ifm])
    np.save(path / "x1.npy", x)
    command = [str(cfg), "--input", str(path / "x1.npy"), "--quiet"]
    assert run_command([*command, "--stats", str(path / "stats.json")]) == 0
    return path


def layer_cfg(path):
    """A layer on several cores, with partial sums and a bias."""
    (found,) = path.glob("*conv2*.cfg")
    return found


def content_of(folder, name):
    files = {"cfg": layer_cfg(folder).name}
    stem = name.removesuffix(".schema.json")
    return json.loads((folder / files.get(stem, f"{stem}.json")).read_bytes())


def objects(value, place=()):
    """Every object inside a JSON value, as (path, object)."""
    if isinstance(value, dict):
        yield place, value
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            yield from objects(item, (*place, key))


def at(value, place):
    for key in place:
        value = value[key]
    return value


def is_map(place):
    """Objects whose keys are names from the program, not words of the format."""
    return place[-1:] in (("parameters",), ("layers",))


def distinct_objects(content):
    """One object of each kind: a list of a thousand cores says no more than its first."""
    seen = set()
    for place, item in objects(content):
        kind = (tuple("#" if isinstance(k, int) else k for k in place), tuple(item))
        if kind not in seen:
            seen.add(kind)
            yield place, item


def test_the_checked_in_copies_are_current():
    found = {path.name: path.read_bytes() for path in (ROOT / "spec/schema").iterdir()}
    assert found == schemas(), "python -m cim.emulator.schemas makes them"


def test_the_command_writes_them(tmp_path):
    command = [sys.executable, "-m", "cim.emulator.schemas", str(tmp_path / "made")]
    subprocess.run(command, check=True, capture_output=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()} == schemas()


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    assert SCHEMAS[name]["title"]
    assert SCHEMAS[name]["description"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_real_files_validate(folder, name):
    VALIDATORS[name].validate(content_of(folder, name))


def test_every_cfg_of_the_network_validates(folder):
    found = list(folder.glob("*.cfg"))
    assert len(found) > 1
    for path in found:
        VALIDATORS["cfg.schema.json"].validate(json.loads(path.read_bytes()))


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_missing_key_does_not_validate(folder, name):
    content = content_of(folder, name)
    tried = set()
    for place, item in distinct_objects(content):
        for key in item.keys() - OPTIONAL:
            if is_map(place):
                continue
            changed = copy.deepcopy(content)
            del at(changed, place)[key]
            assert not VALIDATORS[name].is_valid(changed), (*place, key)
            tried.add(key)
    assert len(tried) > 10


@pytest.mark.parametrize("name", SCHEMAS)
def test_an_unknown_key_does_not_validate(folder, name):
    content = content_of(folder, name)
    for place, _ in distinct_objects(content):
        changed = copy.deepcopy(content)
        at(changed, place)["surprise"] = 1
        assert not VALIDATORS[name].is_valid(changed), place


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("format",), "cim-network"),
        (("format_version",), 2),
        (("memory_bytes",), -1),
        (("mode",), "i4"),
        (("cores", 0, "number"), 65536),
        (("cores", 0, "rows"), 1.5),
        (("regions", 0, "content", "offset"), "0"),
        (("locations", 0), ["a.s"]),
        (("locations", 0), ["a.s", 1, 2]),
        (("machine", "bus", "width_bytes"), 3),
        (("machine", "core", "count"), "many"),
        (("layer", "layout"), "NHWC"),
    ],
)
def test_a_wrong_value_does_not_validate(folder, place, value):
    content = content_of(folder, "cfg.schema.json")
    at(content, place[:-1])[place[-1]] = value
    assert not VALIDATORS["cfg.schema.json"].is_valid(content)


def test_the_reader_refuses_what_the_schema_refuses(folder, tmp_path):
    """Of the cfg, which is read again, every key of every kind of object."""
    content = content_of(folder, "cfg.schema.json")
    path = tmp_path / "changed.cfg"
    for place, item in distinct_objects(content):
        for key in [*(item.keys() - OPTIONAL), None]:
            if is_map(place):
                continue
            changed = copy.deepcopy(content)
            if key is None:
                at(changed, place)["surprise"] = 1
            else:
                del at(changed, place)[key]
            path.write_text(json.dumps(changed))
            with pytest.raises(CimError):
                read_image(path)


def test_stats_fit_their_models(folder):
    """The schema of a network's statistics has a model of its own; the file must fit it."""
    for name, model in (("stats", Stats), ("network-stats", NetworkStats)):
        raw = (folder / f"{name}.json").read_bytes()
        again = msgspec.to_builtins(msgspec.json.decode(raw, type=model))
        assert again == json.loads(raw)


def test_statistics_say_their_units():
    for name in ("stats.schema.json", "network-stats.schema.json"):
        for part in (SCHEMAS[name], *SCHEMAS[name]["$defs"].values()):
            for key, value in part["properties"].items():
                if value.get("type") == "integer" and key != "macs":
                    assert value["description"], key
