"""Machine descriptions and settings."""

import pytest

from cim.diagnostics import CimError, Source
from cim.isa.load import spec_text
from cim.isa.machine import apply_settings, load_machine, presets, read_machine

DEFAULT = spec_text("arch/default.toml")


def messages(text: str) -> list[str]:
    with pytest.raises(CimError) as raised:
        read_machine(Source("arch.toml", text))
    return [f"{d.span.line}: {d.message}" for d in raised.value.diagnostics if d.span]


def test_presets_are_valid() -> None:
    assert presets() == ["default", "pelke23", "puma", "raella-512", "rwth-256"]
    for name in presets():
        assert load_machine(name).name == name
    assert load_machine("pelke23").core.partial_sum == "narrow"
    assert load_machine("pelke23").mvm_cycles == 1000
    # 512 bitlines x 3 cells a weight / 4 ADCs, at 1.28 conversions a cycle, for each of 8 input bits
    assert load_machine("raella-512").mvm_cycles == 8 * 300


def test_a_derived_mvm_needs_converters() -> None:
    with pytest.raises(CimError) as raised:
        load_machine("default", ["core.mvm_cycles=derived"])
    assert "[converters] must say from what" in str(raised.value)
    with pytest.raises(CimError) as raised:
        load_machine("default", ["core.mvm_cycles=derived", "converters.adc_count=4"])
    missing = [d.message for d in raised.value.diagnostics]
    assert missing == [
        f"key 'converters.{name}' is missing"
        for name in ("adc_rate_hz", "dac_bits", "input_bits", "cell_bits")
    ]
    text = DEFAULT.replace("mvm_cycles = 1000 ", 'mvm_cycles = "derived"')
    assert any("core.mvm_cycles is 'derived'" in m for m in messages(text))


def test_keys_with_a_default_may_be_left_out() -> None:
    text = "".join(line for line in DEFAULT.splitlines(keepends=True) if "bank" not in line)
    assert read_machine(Source("arch.toml", text)) == load_machine("default")


def test_all_faults_of_a_file_are_reported_with_their_lines() -> None:
    text = DEFAULT.replace("mvm_cycles = 1000 ", "mvm_cycels = 1000 ")
    text = text.replace('topology = "shared"', 'topology = "shard"')
    text = text.replace("gpeu_lanes = 32", "gpeu_lanes = 0")
    found = messages(text)
    lines = text.split("\n")

    def line(start: str) -> int:
        return next(n for n, t in enumerate(lines, 1) if t.startswith(start))

    assert len(found) == 4
    assert (
        f"{line('mvm_cycels')}: unknown key 'core.mvm_cycels'; did you mean 'mvm_cycles'?" in found
    )
    assert f"{line('[core]')}: key 'core.mvm_cycles' is missing" in found
    assert f"{line('gpeu_lanes')}: core.gpeu_lanes is 0: must be an integer >= 1" in found
    assert any("bus.topology is 'shard': must be one of shared, per_target" in m for m in found)


def test_a_missing_section_and_a_syntax_error() -> None:
    assert messages("name = 'x'\n[clock]\nfrequency_hz = 1\n")[0].endswith("[core] is missing")
    assert "not valid TOML" in messages("name = \n")[0]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("bus.width_byte=4", "unknown key 'bus.width_byte'; did you mean 'bus.width_bytes'?"),
        ("bus.width_bytes=5", "must be one of 1, 2, 4, 8, 16, 32, 64, 128"),
        ("bus.width_bytes", "must be SECTION.KEY=VALUE"),
        ("core.crossbar=64", "core.crossbar is '64'"),
        ("core.crossbar=64x2000", "both sides must be 1 to 1024"),
        ("core.crossbar=0x64", "both sides must be 1 to 1024"),
        ("core.count=none", "core.count is 'none'"),
    ],
)
def test_bad_settings(setting: str, message: str) -> None:
    with pytest.raises(CimError, match=r"--set") as raised:
        apply_settings(load_machine(), [setting])
    assert message in raised.value.diagnostics[0].message


def test_settings_apply() -> None:
    machine = load_machine("default", ["core.crossbar=64x32", "bus.width_bytes=8", "core.count=7"])
    assert (machine.core.outputs, machine.core.inputs) == (64, 32)
    assert (machine.bus.width_bytes, machine.core.count) == (8, 7)
    assert load_machine().bus.width_bytes == 32


def test_an_unknown_machine_is_explained() -> None:
    with pytest.raises(CimError, match="did you mean 'pelke23'"):
        load_machine("pelke32")
    with pytest.raises(CimError, match="No such file"):
        load_machine("nowhere.toml")
