"""The machine description: `arch.toml` files, presets, and settings on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from cim.diagnostics import CimError, Diagnostic, Source, UsageError, did_you_mean, error
from cim.files import read_text
from cim.isa import toml_source
from cim.wording import plain_rule

Positive = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Unlimited = Literal["unlimited"]
MAX_CROSSBAR = 1024


class Clock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one clock of the system."""

    frequency_hz: Positive


class Core(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A CIM core. `crossbar` is "MxN": outputs x inputs."""

    count: Annotated[int, msgspec.Meta(ge=1, le=65536)] | Literal["auto"]
    crossbar: Annotated[str, msgspec.Meta(pattern=r"^[0-9]+x[0-9]+$")]
    weight_bits: Annotated[int, msgspec.Meta(ge=2, le=16)]
    partial_sum: Literal["wide", "narrow"]
    instruction_memory_bytes: Annotated[int, msgspec.Meta(ge=16, le=2**40)] | Unlimited
    issue_cycles: Positive
    mvm_cycles: Positive | Literal["derived"]
    gpeu_lanes: Positive
    gpeu_latency_cycles: Count

    @property
    def outputs(self) -> int:
        """M: columns (bitlines) of the crossbar, and elements of `ob`, `pb` and `rb`."""
        return int(self.crossbar.split("x")[0])

    @property
    def inputs(self) -> int:
        """N: rows (wordlines) of the crossbar, and elements of `ib`."""
        return int(self.crossbar.split("x")[1])


class Converters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the latency of an MVM is derived from, if `core.mvm_cycles` is "derived".

    An input of `input_bits` is applied in slices of `dac_bits`; a weight lies in cells of `cell_bits` on
    neighbouring bitlines, each of which an ADC converts once a slice.
    """

    adc_count: Positive
    adc_rate_hz: Positive
    dac_bits: Positive
    input_bits: Positive
    cell_bits: Positive


class Bus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The AXI4-like bus."""

    width_bytes: Literal[1, 2, 4, 8, 16, 32, 64, 128]
    topology: Literal["shared", "per_target"]
    arbitration: Literal["round_robin", "oldest_first"]
    read_outstanding: Annotated[int, msgspec.Meta(ge=1, le=256)]
    write_outstanding: Annotated[int, msgspec.Meta(ge=1, le=256)]
    register_latency_cycles: Count


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shared memory. What has a default makes it free of conflicts."""

    size_bytes: Annotated[int, msgspec.Meta(ge=1, le=2**32)] | Unlimited
    read_latency_cycles: Count
    write_latency_cycles: Count
    read_outstanding: Positive | Unlimited = "unlimited"
    write_outstanding: Positive | Unlimited = "unlimited"
    banks: Annotated[int, msgspec.Meta(ge=1, le=65536)] | Unlimited = "unlimited"
    bank_interleave_bytes: Annotated[int, msgspec.Meta(ge=1, le=2**32)] = 64
    bank_cycles: Annotated[int, msgspec.Meta(ge=1, le=2**20)] = 1
    bank_ports: Literal["shared", "separate"] = "shared"


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the setup phase costs."""

    row_program_cycles: Count
    register_write_cycles: Count


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be set about the hardware."""

    name: str
    clock: Clock
    core: Core
    bus: Bus
    memory: Memory
    setup: Setup
    converters: Converters | None = None

    def __post_init__(self) -> None:
        if self.core.mvm_cycles == "derived" and self.converters is None:
            raise ValueError(
                "core.mvm_cycles is 'derived': section [converters] must say from what"
            )

    @property
    def mvm_cycles(self) -> int:
        """Bus clock cycles of an MVM, as given or by the formula of spec/timing.md."""
        if self.core.mvm_cycles != "derived":
            return self.core.mvm_cycles
        assert self.converters is not None, "see __post_init__"
        c = self.converters
        bitlines = self.core.outputs * -(-self.core.weight_bits // c.cell_bits)
        rounds = -(-bitlines // c.adc_count)
        slices = -(-c.input_bits // c.dac_bits)
        return slices * -(-rounds * self.clock.frequency_hz // c.adc_rate_hz)

    def settings(self) -> dict[str, Any]:
        """All values by dotted key, the name left out."""
        return {
            f"{section}.{key}": value
            for section, values in msgspec.to_builtins(self).items()
            if isinstance(values, dict)
            for key, value in values.items()
        }


SECTIONS: dict[str, type[msgspec.Struct]] = {
    "clock": Clock,
    "core": Core,
    "bus": Bus,
    "memory": Memory,
    "setup": Setup,
    "converters": Converters,
}
OPTIONAL_SECTIONS = {"converters"}
# Keys that change only when things happen, not what a program must look like.
TIMING_KEYS = frozenset(
    {f"{name}.{f.name}" for name, struct in SECTIONS.items() for f in msgspec.structs.fields(struct)}
    - {"core.count", "core.crossbar", "core.weight_bits", "core.partial_sum", "memory.size_bytes"}
)  # fmt: skip


def presets() -> list[str]:
    """The names of the machines that the package ships."""
    folder = resources.files("cim").joinpath("spec", "arch")
    return sorted(
        item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")
    )


def load_machine(name: str = "default", settings: Iterable[str] = ()) -> Machine:
    """A preset by name or an `arch.toml` by path, with `SECTION.KEY=VALUE` settings applied.

    Raises `CimError` with every key that is missing, unknown or out of range.
    """
    return apply_settings(read_machine(_open(name)), settings)


def _open(name: str) -> Source:
    if name in presets():
        resource = resources.files("cim").joinpath("spec", "arch", f"{name}.toml")
        return Source(f"{name}.toml", resource.read_text(encoding="utf-8"))
    if not name.endswith(".toml") and not Path(name).exists():
        raise error(
            f"no machine is called '{name}'{did_you_mean(name, presets())}",
            notes=[f"presets are {', '.join(presets())}; a file name must end in .toml"],
        )
    return Source(name, read_text(name))


def read_machine(source: Source) -> Machine:
    """Parse and validate a machine description. Raises `CimError` with all that is wrong in it."""
    data = toml_source.parse(source)
    found: list[Diagnostic] = []
    for path, message in _problems(data):
        found.append(Diagnostic(message, toml_source.locate(source, *path)))
    if found:
        raise CimError(found)
    return msgspec.convert(data, Machine)


def apply_settings(machine: Machine, settings: Iterable[str]) -> Machine:
    """The machine with `SECTION.KEY=VALUE` (or `name=…`) texts applied. Raises `UsageError` with all that are wrong."""
    data = msgspec.to_builtins(machine)
    known = {
        f"{section}.{field.name}"
        for section, struct in SECTIONS.items()
        for field in msgspec.structs.fields(struct)
    }
    found = []
    for setting in settings:
        key, equals, text = setting.partition("=")
        if key == "name" and equals:
            data["name"] = text
            continue
        if not equals or key not in known:
            hint = did_you_mean(key, known)
            wrong = f"unknown key '{key}'{hint}" if equals else "must be SECTION.KEY=VALUE"
            found.append(Diagnostic(wrong, where=f"--set {setting}"))
            continue
        section, name = key.split(".")
        number = re.fullmatch(r"-?[0-9][0-9_]*", text) and name != "crossbar"
        value: int | str = int(text) if number else text
        message = _problem_of(SECTIONS[section], name, value)
        if message:
            found.append(Diagnostic(message, where=f"--set {setting}"))
        data[section] = (data[section] or {}) | {name: value}
    # What was set to a wrong value has been told; this is about what is missing.
    found = found or [Diagnostic(message, where="--set") for _, message in _problems(data)]
    if found:
        raise UsageError(found)
    return msgspec.convert(data, Machine)


def _problems(data: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Every (place, message) that is wrong in a parsed `arch.toml`."""
    problems: list[tuple[tuple[str, ...], str]] = []
    if not isinstance(data.get("name"), str):
        problems.append(((), "'name' must be a text"))
    for key in data.keys() - SECTIONS.keys() - {"name"}:
        problems.append(((key,), f"unknown section '{key}'{did_you_mean(key, SECTIONS)}"))
    for section, struct in SECTIONS.items():
        values = data.get(section)
        if values is None and section in OPTIONAL_SECTIONS:
            continue
        if not isinstance(values, dict):
            problems.append(((), f"section [{section}] is missing"))
            continue
        fields = msgspec.structs.fields(struct)
        names = [field.name for field in fields]
        for key in values.keys() - set(names):
            hint = did_you_mean(key, names)
            problems.append(((section, key), f"unknown key '{section}.{key}'{hint}"))
        for field in fields:
            name = field.name
            if name not in values:
                if field.required:
                    problems.append(((section,), f"key '{section}.{name}' is missing"))
            elif message := _problem_of(struct, name, values[name]):
                problems.append(((section, name), message))
    core = data.get("core")
    derived = isinstance(core, dict) and core.get("mvm_cycles") == "derived"
    if derived and data.get("converters") is None:
        problems.append(
            (
                ("core", "mvm_cycles"),
                "core.mvm_cycles is 'derived': section [converters] must say from what",
            )
        )
    return problems


def _problem_of(struct: type[msgspec.Struct], name: str, value: object) -> str:
    """What is wrong with one value, or the empty string."""
    field = next(f for f in msgspec.structs.fields(struct) if f.name == name)
    try:
        msgspec.convert(value, field.type)
    except msgspec.ValidationError as problem:
        allowed = getattr(field.type, "__args__", ())
        if allowed and not isinstance(allowed[0], type) and not hasattr(allowed[0], "__args__"):
            rule = f"must be one of {', '.join(str(choice) for choice in allowed)}"
        else:
            rule = "must be like 64x64" if name == "crossbar" else plain_rule(str(problem))
        return f"{struct.__name__.lower()}.{name} is {value!r}: {rule}"
    if name == "crossbar":
        sides = [int(side) for side in str(value).split("x")]
        if not all(1 <= side <= MAX_CROSSBAR for side in sides):
            return f"core.crossbar is {value}: both sides must be 1 to {MAX_CROSSBAR}"
    return ""
