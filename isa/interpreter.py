"""The golden model: executes the `operation` texts of the spec, slowly and without time.

Cores take turns, one instruction each. For a program without data races every order gives the same memory,
so the emulator, which has time, must agree with this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.isa import numerics
from cim.isa.encoding import ILLEGAL, Decoded, Words, decode, immediate_value
from cim.isa.model import Instruction, Isa, Operand
from cim.isa.numerics import NumericMode


@dataclass
class CoreProgram:
    """What the setup phase gives one core.

    `weights` is [used rows][used columns] in the mode's cell type, None for a core without a crossbar;
    parameter vectors may be shorter than M, the rest keeps its default. `entry` counts instructions.
    """

    words: Words
    weights: NDArray[Any] | None = None
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    entry: int = 0


class Fault(Exception):
    """A run-time exception of the spec, with the core and instruction index that raised it."""

    def __init__(self, exception: str, core: int, pc: int) -> None:
        super().__init__(f"{exception} in core {core} at instruction {pc}")
        self.exception = exception
        self.core = core
        self.pc = pc


class Deadlock(Exception):
    """Every unfinished core is blocked. `blocked` maps a core to its instruction index."""

    def __init__(self, blocked: dict[int, int]) -> None:
        super().__init__(f"blocked: {blocked}")
        self.blocked = blocked


class _Blocked(Exception):
    pass


class _Refused(Exception):
    pass


class BufferState:
    """A buffer's elements; slices read as int64 (or float32) and convert when assigned."""

    def __init__(self, length: int, type_name: str) -> None:
        self.data = np.zeros(length, dtype=numerics.DTYPES[type_name])
        self.written = np.zeros(length, dtype=bool)

    def __getitem__(self, part: slice) -> NDArray[Any]:
        wide = np.float32 if self.data.dtype.kind == "f" else np.int64
        return self.data[part].astype(wide)

    def __setitem__(self, part: slice, values: NDArray[Any]) -> None:
        self.data[part] = numerics.convert(values, self.data.dtype)
        self.written[part] = True


PARAMETERS: dict[str, tuple[str, float]] = {
    "offset": ("i32", 0),
    "adc_mul": ("f32", 1),
    "mul_pos": ("f32", 1),
    "mul_neg": ("f32", 1),
    "y_zp": ("i32", 0),
}


ENTRY_BYTES = 2  # bytes of shared memory that have an attribute (extension attribute_buffer)


class CoreState:
    """One core: buffers, parameters, crossbar, SEQ_NR and program counter (counts instructions)."""

    def __init__(
        self, isa: Isa, program: CoreProgram, mode: NumericMode, shape: tuple[int, int]
    ) -> None:
        lengths = {"crossbar_outputs": shape[0], "crossbar_inputs": shape[1]}
        self.buffers = {
            name: BufferState(lengths[b.length], mode.of(b.type)) for name, b in isa.buffers.items()
        }
        self.parameters = {}
        for name, (type_name, default) in PARAMETERS.items():
            vector = np.full(shape[0], default, dtype=numerics.DTYPES[type_name])
            given = program.parameters.get(name, vector[:0])
            vector[: len(given)] = given
            self.parameters[name] = vector
        self.weights = program.weights
        self.decoded: Decoded = decode(isa, program.words)
        self.seq_nr = 0
        self.pc = program.entry

    @property
    def finished(self) -> bool:
        """Whether the program has ended."""
        return self.pc >= len(self.decoded.index)


class Interpreter:
    """A machine state that the operations of `isa` act on.

    `memory` is the shared memory's bytes, changed in place; `shape` is (M, N) of the crossbars. Instructions of other
    extensions than those named are illegal.
    """

    def __init__(
        self, isa: Isa, mode: NumericMode, shape: tuple[int, int], memory: NDArray[np.uint8],
        programs: Sequence[CoreProgram | None], extensions: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.isa = isa
        self.mode = mode
        self.memory = memory
        self.cores = [
            None if program is None else CoreState(isa, program, mode, shape)
            for program in programs
        ]
        self.instructions = list(isa.instructions.values())
        self.legal = [
            mode.mode in i.modes and (not i.extension or i.extension in extensions)
            for i in self.instructions
        ]
        self.attributes = np.zeros(-(-len(memory) // ENTRY_BYTES), dtype=np.int64)

    def run(self, order: Callable[[list[int]], list[int]] = sorted) -> None:
        """Run to the end; `order` chooses the turn of the cores in each round.

        Raises `Fault`, or `Deadlock` when no core can go on.
        """
        while True:
            alive = [
                i for i, core in enumerate(self.cores) if core is not None and not core.finished
            ]
            if not alive:
                return
            moved = [self.step(number) for number in order(alive)]
            if not any(moved):
                raise Deadlock({number: self._core(number).pc for number in alive})

    def step(self, number: int) -> bool:
        """Execute one instruction of a core; False when it is blocked. Raises `Fault`."""
        core = self._core(number)
        kind = int(core.decoded.index[core.pc])
        if kind == ILLEGAL or not self.legal[kind]:
            raise Fault("illegal_instruction", number, core.pc)
        instruction = self.instructions[kind]
        try:
            instruction.operation.run(self._environment(core, instruction))
        except _Blocked:
            return False
        except _Refused as refused:
            raise Fault(str(refused), number, core.pc) from None
        core.pc += 1
        return True

    def _core(self, number: int) -> CoreState:
        core = self.cores[number]
        if core is None:
            raise ValueError(f"core {number} has no program")
        return core

    def _operand(self, core: CoreState, operand: Operand) -> object:
        value = int(core.decoded.operands[operand.name][core.pc])
        if operand.kind == "buffer":
            return core.buffers[self.isa.buffer_names[value]]
        if operand.kind == "bits":
            number = immediate_value(value, self.mode.mode)
            return np.float32(number) if self.mode.mode == "f32" else number
        return value

    def _environment(self, core: CoreState, instruction: Instruction) -> dict[str, Any]:
        rows, columns = core.weights.shape if core.weights is not None else (0, 0)
        state: dict[str, Any] = {
            **core.buffers,
            **core.parameters,
            "W": core.weights,
            "rows": rows,
            "columns": columns,
            "SEQ_NR": core.seq_nr,
            "memory_bytes": len(self.memory),
            "core_count": len(self.cores),
            "integer": self.mode.mode != "f32",
            "narrow": self.mode.mode == "i8n",
            "increment_seq_nr": self._increment,
            "read_memory": self._read,
            "write_memory": self._write,
            "valid": lambda address, size: bool(self._entries(address, size).all()),
            "count_read": self._count_read,
            "make_valid": self._make_valid,
            **_PRIMITIVES,
        }
        for operand in instruction.operands.values():
            state[operand.name] = self._operand(core, operand)
        return state

    def _increment(self, number: int) -> None:
        core = self.cores[number]
        if core is None:
            raise _Refused("no_such_core")
        core.seq_nr = (core.seq_nr + 1) & 0xFFFFFFFF

    def _read(self, address: int, buffer: BufferState, count: int) -> NDArray[Any]:
        dtype = buffer.data.dtype
        raw = self.memory[address : address + count * dtype.itemsize].tobytes()
        values = np.frombuffer(raw, dtype=dtype)
        return values if dtype.kind == "f" else values.astype(np.int64)

    def _write(self, address: int, buffer: BufferState, lo: int, hi: int) -> None:
        raw = buffer.data[lo:hi].tobytes()
        self.memory[address : address + len(raw)] = np.frombuffer(raw, dtype=np.uint8)

    def _entries(self, address: int, size: int) -> NDArray[np.int64]:
        """The attributes of the entries in which bytes lie: how many reads are to come."""
        return self.attributes[address // ENTRY_BYTES : (address + size - 1) // ENTRY_BYTES + 1]

    def _count_read(self, address: int, size: int) -> None:
        self._entries(address, size)[:] -= 1

    def _make_valid(self, address: int, size: int, readers: int) -> None:
        self._entries(address, size)[:] = readers


def _require(condition: bool, exception: str) -> None:
    if not condition:
        raise _Refused(exception)


def _block_until(condition: bool) -> None:
    if not condition:
        raise _Blocked


def _matvec(weights: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    # The order of float32 additions is not part of the spec; integers are exact in int64.
    kind = np.float32 if weights.dtype.kind == "f" else np.int64
    return np.asarray(x.astype(kind) @ weights.astype(kind))


_PRIMITIVES: dict[str, Callable[..., Any]] = {
    "require": _require,
    "block_until": _block_until,
    "length": lambda buffer: len(buffer.data),
    "element_bytes": lambda buffer: buffer.data.dtype.itemsize,
    "written": lambda buffer, count: bool(buffer.written[:count].all()),
    "matvec": _matvec,
    "rint": numerics.rint,
    "f32": numerics.f32,
    "where": np.where,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "zeros": lambda count: np.zeros(count, dtype=np.int64),
}
