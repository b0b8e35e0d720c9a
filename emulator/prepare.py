"""From an image to the arrays of the engine: all that can be done once for many runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.image import Config, CoreConfig, Image
from cim.diagnostics import error
from cim.emulator import layout
from cim.isa.encoding import WORD_BYTES, Decoded, decode
from cim.isa.interpreter import PARAMETERS
from cim.isa.load import load_isa
from cim.isa.machine import TIMING_KEYS, Machine
from cim.isa.model import CLASSES
from cim.isa.numerics import DTYPES

NO_CLASS = 255  # of an instruction that is never run
CHUNK_WORDS = 1 << 18  # decoding takes some 100 bytes a word, so a large image is done in pieces


@dataclass(frozen=True)
class Prepared:
    """An image, decoded. Nothing in it is changed by a run.

    Cores are counted by their position in `configs`, which is sorted by core number; the program of each
    begins at its `starts`. `parameters` is [core][parameter][column], those of float32 as bits; `sums_fit` says that no
    sum of an integer MVM can leave int32. `kinds` describes the buffers by code; `classes` has each instruction's position in
    `CLASSES`. What stands before a core's entry is never run: `ILLEGAL`, and of no class.
    """

    image: Image
    configs: list[CoreConfig]
    program: NDArray[Any]
    starts: NDArray[np.int64]
    cores: NDArray[Any]
    kinds: NDArray[Any]
    cells_int: NDArray[np.int16]
    cells_f32: NDArray[np.float32]
    parameters: NDArray[np.int32]
    sums_fit: bool
    classes: NDArray[np.uint8]

    @property
    def config(self) -> Config:
        """The image's configuration."""
        return self.image.config

    @property
    def names(self) -> list[int]:
        """Core numbers by position."""
        return [config.number for config in self.configs]

    def span(self, position: int) -> tuple[int, int]:
        """Where a core's instructions begin and end in `program`."""
        return int(self.starts[position]), int(self.cores[position]["end"])

    def calls(self) -> NDArray[np.int64]:
        """The (called, calling) positions of all CALLs to cores that exist: each pair once, sorted."""
        at = np.flatnonzero(self.program["op"] == layout.CALL)
        caller = np.searchsorted(self.starts, at, side="right") - 1
        pairs = np.stack([self.program["arg"][at].astype(np.int64), caller], axis=1)
        return np.unique(pairs[pairs[:, 0] != layout.NO_CORE], axis=0)


def prepare(image: Image) -> Prepared:
    """Decode all programs and lay out crossbars and parameters for the engine."""
    config = image.config
    configs = sorted(config.cores, key=lambda core: core.number)
    sizes = [core.program.size // 8 for core in configs]
    starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    program = np.zeros(int(starts[-1]), dtype=layout.INSTRUCTION)
    classes = np.zeros(program.shape, dtype=np.uint8)
    numbers = np.array([core.number for core in configs], dtype=np.int64)
    for first, last in _chunks(sizes):
        words = np.concatenate([image.words(core) for core in configs[first:last]])
        part = slice(int(starts[first]), int(starts[last]))
        decoded = decode(load_isa(), words)
        _translate(decoded, config, numbers, program[part], classes[part], str(image.path))
    cores = np.zeros(len(configs), dtype=layout.CORE)
    entries = starts[:-1] + np.array([core.entry // WORD_BYTES for core in configs], dtype=np.int64)
    for start, entry in zip(starts[:-1], entries, strict=True):
        program[start:entry] = np.zeros((), dtype=layout.INSTRUCTION)
        classes[start:entry] = NO_CLASS
    cores["pc"], cores["end"] = entries, starts[1:]
    cores["first"] = entries
    cores["program"] = [core.address + core.entry for core in configs]
    cores["block_end"] = layout.NO_BLOCK
    cells = _place_weights(image, configs, cores)
    empty_int, empty_f32 = np.zeros(0, dtype=np.int16), np.zeros(0, dtype=np.float32)
    is_float = config.mode == "f32"
    parameters = _parameters(image, configs)
    return Prepared(
        image=image,
        configs=configs,
        program=program,
        starts=starts[:-1],
        cores=cores,
        kinds=_buffers(config),
        cells_int=empty_int if is_float else cells,
        cells_f32=cells if is_float else empty_f32,
        parameters=parameters,
        sums_fit=not is_float and _sums_fit(cells, parameters, cores),
        classes=classes,
    )


def checked_machine(image: Image, machine: Machine | None) -> Machine:
    """The machine to run on. Raises `CimError` for one that the program was not made for."""
    made_for = image.config.machine
    if machine is None:
        return made_for
    ours, theirs = made_for.settings(), machine.settings()
    for key in sorted(ours.keys() - TIMING_KEYS):
        if ours[key] != theirs[key]:
            raise error(
                f"was linked for {key}={ours[key]}, the machine has {theirs[key]}",
                where=str(image.path),
                notes=[f"{key} shapes the program; give it to cim-cc"],
            )
    return machine


def _chunks(sizes: list[int]) -> list[tuple[int, int]]:
    """Ranges of cores that are decoded together."""
    ranges = []
    first = words = 0
    for index, size in enumerate(sizes):
        words += size
        if words >= CHUNK_WORDS or index == len(sizes) - 1:
            ranges.append((first, index + 1))
            first, words = index + 1, 0
    return ranges


def _translate(
    decoded: Decoded, config: Config, numbers: NDArray[np.int64], program: NDArray[Any],
    classes: NDArray[np.uint8], where: str,
) -> None:  # fmt: skip
    """Fill instruction records; `op` stays `ILLEGAL` for words that this mode, or the extensions, do not have."""
    operands = decoded.operands
    for number, instruction in enumerate(load_isa().instructions.values()):
        chosen = np.flatnonzero(decoded.index == number)
        if not chosen.size or config.mode not in instruction.modes:
            continue
        if instruction.extension and instruction.extension not in config.extensions:
            continue
        if instruction.name not in layout.FORMS:
            raise error(
                f"uses '{instruction.mnemonic}', which the emulator's engine does not have",
                where=where,
                notes=["cim.isa.interpreter executes it from the spec"],
            )
        op, source = layout.FORMS[instruction.name]
        rows = np.zeros(chosen.shape, dtype=layout.INSTRUCTION)
        rows["op"], rows["source"] = op, source
        if instruction.timing_class in ("load", "store"):
            rows["buffer"] = operands["buffer"][chosen]
            rows["lo"], rows["hi"] = operands["lo"][chosen], operands["hi"][chosen]
            rows["arg"] = operands["address"][chosen]
            if instruction.name in layout.COUNTED:
                rows["a"] = 1
            if "readers" in instruction.operands:
                rows["b"] = operands["readers"][chosen]
        elif instruction.timing_class == "gpeu":
            rows["buffer"], rows["hi"] = operands["dst"][chosen], operands["len"][chosen]
            rows["a"], rows["b"] = operands["a"][chosen], operands["b"][chosen]
            rows["arg"] = operands["imm"][chosen]
        elif instruction.timing_class == "wait":
            rows["arg"] = operands["value"][chosen]
        elif instruction.timing_class == "call":
            rows["arg"] = _positions(numbers, operands["core"][chosen])
        program[chosen] = rows
        classes[chosen] = CLASSES.index(instruction.timing_class)


def _positions(numbers: NDArray[np.int64], called: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of core numbers, `NO_CORE` for those without a program."""
    found = np.minimum(np.searchsorted(numbers, called), numbers.size - 1)
    return np.where(numbers[found] == called, found, layout.NO_CORE)


def _buffers(config: Config) -> NDArray[Any]:
    core = config.machine.core
    lengths = {"crossbar_outputs": core.outputs, "crossbar_inputs": core.inputs}
    buffers = load_isa().buffers.values()
    kinds = np.zeros(max(buffer.code for buffer in buffers) + 1, dtype=layout.BUFFER)
    for buffer in buffers:
        dtype = DTYPES[config.numeric_mode.of(buffer.type)]
        limits = np.iinfo(dtype if dtype.itemsize == 1 else np.int64)
        kinds[buffer.code] = (
            lengths[buffer.length], dtype.itemsize, dtype.kind != "u", limits.min, limits.max,
        )  # fmt: skip
    return kinds


def _place_weights(image: Image, configs: list[CoreConfig], cores: NDArray[Any]) -> NDArray[Any]:
    """The crossbar contents one after another; a core without one has no rows."""
    parts = []
    position = 0
    for index, core in enumerate(configs):
        weights = image.weights(core)
        if weights is None or weights.size == 0:
            continue
        cores[index]["cells"] = position
        cores[index]["rows"], cores[index]["columns"] = weights.shape
        parts.append(weights.reshape(-1))
        position += weights.size
    native = np.float32 if image.config.mode == "f32" else np.int16
    return np.concatenate(parts).astype(native) if parts else np.zeros(0, dtype=native)


def _parameters(image: Image, configs: list[CoreConfig]) -> NDArray[np.int32]:
    """[core][parameter][column], defaults where the image sets none."""
    shape = (len(configs), len(PARAMETERS), image.config.machine.core.outputs)
    vectors = np.zeros(shape, dtype=np.int32)
    for place, (name, (type_name, default)) in enumerate(PARAMETERS.items()):
        of_type = vectors.view(DTYPES[type_name].newbyteorder("="))[:, place]
        of_type[:] = default
        for index, core in enumerate(configs):
            given = image.parameters(core).get(name)
            if given is not None:
                of_type[index, : given.size] = given
    return vectors


def _sums_fit(cells: NDArray[np.int16], parameters: NDArray[np.int32], cores: NDArray[Any]) -> bool:
    """Whether all sums of all MVMs fit int32, whatever the inputs of 8 bits."""
    largest = max(abs(int(cells.max(initial=0))), abs(int(cells.min(initial=0))))
    offsets = parameters[:, layout.OFFSET]
    offset = max(abs(int(offsets.max(initial=0))), abs(int(offsets.min(initial=0))))
    return 255 * largest * int(cores["rows"].max(initial=0)) + offset < 2**31
