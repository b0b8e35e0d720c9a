"""The instructions of an image as people read them: text and source line, by position in the program."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cim.emulator.prepare import Prepared
from cim.isa.encoding import Decoded, decode
from cim.isa.load import load_isa
from cim.isa.printer import format_instruction


@dataclass
class InstructionTexts:
    """Texts made when they are asked for; each core is decoded once."""

    prepared: Prepared
    _decoded: dict[int, Decoded] = field(default_factory=dict)

    def core_of(self, at: int) -> tuple[int, int]:
        """The core (position) of an instruction, and its index in the core's program."""
        starts = self.prepared.starts
        # Of cores without instructions, which share their first position with the next, the last one.
        core = int(np.searchsorted(starts, at, side="right")) - 1
        return core, at - int(starts[core])

    def text(self, at: int) -> str:
        """Instruction `at` in assembly syntax."""
        core, pc = self.core_of(at)
        if core not in self._decoded:
            words = self.prepared.image.words(self.prepared.configs[core])
            self._decoded[core] = decode(load_isa(), words)
        return format_instruction(load_isa(), self._decoded[core], pc, self.prepared.config.mode)

    def source(self, at: int) -> str:
        """Its source line, as `file:line`."""
        core, pc = self.core_of(at)
        location = self.prepared.image.location(self.prepared.configs[core], pc)
        return f"{location.file}:{location.line}"
