"""One layer from description to image: mapping, schedule, text, objects, link."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cim.asm.assembler import assemble
from cim.asm.image import Image
from cim.asm.linker import link
from cim.asm.objects import Object
from cim.asm.synchronization import check_synchronization
from cim.codegen.emit import Program, emit
from cim.codegen.layer import Layer
from cim.codegen.mapping import Mapping, map_layer
from cim.codegen.reference_model import reference_model
from cim.codegen.schedule import Schedule, schedule_turn
from cim.codegen.turns import Turn, turns_of
from cim.codegen.window import MAX_CORES
from cim.diagnostics import CimError, Source, error
from cim.isa.machine import Machine
from cim.isa.numerics import NumericMode

LONGEST_STEM = 100  # of a file; names of a model have no limit


@dataclass(frozen=True)
class CompiledLayer:
    """A layer, how it is mapped, and the schedule and program (as text) of a turn of it; mostly there is only one."""

    layer: Layer
    mode: NumericMode
    mapping: Mapping
    turn: Turn
    schedule: Schedule
    program: Program

    @property
    def title(self) -> str:
        """The layer's name, with the turn where there are several."""
        return f"{self.layer.name}{self.turn.title}"

    @property
    def macs(self) -> int:
        """The turn's share of the layer's multiply-accumulates."""
        held = self.mapping.held(self.layer, self.turn.tiles)
        return self.layer.macs * held // self.mapping.held(self.layer, self.mapping.tiles)

    def used(self, machine: Machine) -> float:
        """The share of the cells of the turn's crossbars that hold a weight."""
        cells = self.turn.cores * machine.core.inputs * machine.core.outputs
        return self.mapping.held(self.layer, self.turn.tiles) / cells

    def image(self) -> Image:
        """The linked image. Raises `CimError` where a capacity is exceeded."""
        return image_of(self.program)


def objects_of(program: Program) -> dict[str, Object]:
    """The objects by file name, assembled from the texts."""
    included = {program.weights[0]: program.weights[1]}

    def read_file(path: Path) -> bytes:
        if path.name not in included:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return included[path.name]

    made = {}
    for name, text in program.texts.items():
        obj_name = f"{name.removesuffix('.s')}.o"
        made[obj_name] = assemble([Source(name, text)], obj_name, read_file)
    return made


def image_of(program: Program) -> Image:
    """The linked image. Raises `CimError` where a capacity is exceeded."""
    image = link(objects_of(program).values(), program.name)
    if found := check_synchronization(image):
        raise CimError(found)
    return image


def layer_mode(layer: Layer, machine: Machine) -> NumericMode:
    """The numeric mode of a layer on a machine. Raises `CimError` where they do not go together."""
    narrow = machine.core.partial_sum == "narrow"
    ifm, ofm = layer.type_names
    if layer.quantization is None:
        if narrow:
            raise error(
                f"layer '{layer.name}' is float32, and the machine '{machine.name}' has narrow partial "
                "sums (8 bits)",
                notes=[
                    "quantize it to int8: --quantize CALIB.npy, with a few inputs to calibrate with",
                    "or set core.partial_sum=wide",
                ],
            )
        return NumericMode("f32", ifm, ofm)
    if narrow and layer.quantization.y_scale is None:
        raise error(
            f"layer '{layer.name}' has int32 outputs, and the machine '{machine.name}' has narrow partial "
            "sums (8 bits)",
            notes=[
                "give the layer an 8-bit output (a QuantizeLinear right behind it, or QLinearConv)",
                "or set core.partial_sum=wide",
            ],
        )
    return NumericMode("i8n" if narrow else "i8", ifm, ofm)


def compile_layer(
    layer: Layer, machine: Machine, scheme: str, name: str, mapping: str = "im2col"
) -> CompiledLayer:
    """Map, schedule and write a layer; `name` is the stem of its files.

    `mapping` is im2col, sdk or vw-sdk; what it cannot map it maps with im2col.

    Raises `CimError` for a layer that needs more cores than there are, or another numeric mode.
    """
    mode = layer_mode(layer, machine)
    available = available_cores(machine)
    mapped = map_layer(layer, machine.core.outputs, machine.core.inputs, mapping, available)
    _check_cores(layer, mapped, machine, available)
    (turn,) = turns_of(mapped, available)
    return _compiled(layer, machine, scheme, mode, mapped, turn, name, _reference(layer, name))


def compile_turns(
    layer: Layer, machine: Machine, scheme: str, taken: set[str], mapping: str = "im2col"
) -> tuple[CompiledLayer, ...]:
    """As `compile_layer`, for any number of cores: those that are too many work in later turns.

    The stems of the files are made of the layer's name, and unlike those that are `taken`, which is extended.
    """
    mode = layer_mode(layer, machine)
    available = available_cores(machine)
    mapped = map_layer(layer, machine.core.outputs, machine.core.inputs, mapping, available)
    if mapped.cores > available:  # then a window that needs more cores, too, may be better
        mapped = map_layer(layer, machine.core.outputs, machine.core.inputs, mapping)
    stem = file_stem(layer.name, taken)
    reference = _reference(layer, stem)
    made = []
    for turn in turns_of(mapped, available):
        name = file_stem(stem, taken, f"-turn{turn.number + 1}") if turn.folded else stem
        made.append(_compiled(layer, machine, scheme, mode, mapped, turn, name, reference))
    return tuple(made)


def _reference(layer: Layer, stem: str) -> tuple[str, bytes]:
    """The layer's ONNX model under its file name."""
    return f"{stem}.ref.onnx", reference_model(layer).SerializeToString(deterministic=True)


def _compiled(
    layer: Layer, machine: Machine, scheme: str, mode: NumericMode, mapped: Mapping, turn: Turn, name: str,
    reference: tuple[str, bytes],
) -> CompiledLayer:  # fmt: skip
    schedule = schedule_turn(scheme, mapped, turn)
    program = emit(name, layer, mode, mapped, turn, schedule, machine, reference)
    return CompiledLayer(layer, mode, mapped, turn, schedule, program)


def available_cores(machine: Machine) -> int:
    """The cores of a machine; where it has as many as needed, those that core numbers can count."""
    count = machine.core.count
    return count if isinstance(count, int) else MAX_CORES


def _check_cores(layer: Layer, mapping: Mapping, machine: Machine, available: int) -> None:
    if mapping.cores > available:
        rows, columns = layer.matrix_shape
        in_groups = f" in {layer.groups} groups" if layer.groups > 1 else ""
        raise error(
            f"layer '{layer.name}' needs {mapping.cores} cores ({mapping.p_v} for {rows // layer.groups} kernel "
            f"rows x {mapping.p_h} for {columns} channels{in_groups}), the machine '{machine.name}' has {available}: "
            f"{mapping.cores - available} too few",
            notes=[
                "larger crossbars (core.crossbar) or more cores (core.count) make it fit",
                "or --fold (in Python fold=True), which lets the cores work in several turns",
            ],
        )


def file_stem(name: str, taken: set[str], ending: str = "") -> str:
    """A layer's name as a file name with an ending, made unique; `taken` is extended."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:LONGEST_STEM] or "layer"
    plain += ending
    stem, number = plain, 2
    while stem.lower() in taken:
        stem, number = f"{plain}_{number}", number + 1
    taken.add(stem.lower())
    return stem
