"""Why a node runs on the host: which of its properties, the value found, what would be accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Why(NamedTuple):
    """Why a node stays on the host: `subject` is `found`, must be `accepted`."""

    subject: str
    found: str
    accepted: str

    def __str__(self) -> str:
        return f"{self.subject} is {self.found}, must be {self.accepted}"


NO_MATRIX = "no matrix with constant weights"
RECURRENT = "recurrent layers run on the host"
CONTROL_FLOW = "control flow runs on the host"
STEPS_NOT_KNOWN = f"{CONTROL_FLOW}; where the number of steps is not known, one is counted"

ON_HOST = Why("it", "asked for on the host (--host)", "left to the cores")
INT32_OUTPUT = Why(
    "what its layer gives",
    "int32",
    "8-bit where partial sums are narrow (core.partial_sum), as of a QLinear operator, "
    "or of dequantized operands with a QuantizeLinear right behind",
)


class NotMappedError(Exception):
    """A matrix operator that the CIM cores cannot run, and `why`: `subject` is `found`, must be `accepted`."""

    def __init__(self, subject: str, found: object, accepted: object) -> None:
        self.why = Why(subject, str(found), str(accepted))
        super().__init__(str(self.why))


class OnlySumsError(NotMappedError):
    """Of a layer of quantized operands only the integer sums can be on the cores: what follows them is computed in float."""


@dataclass(frozen=True)
class Reason:
    """The reason for one node. What is no matrix operator has no `why`, but `otherwise`."""

    node: str
    operator: str
    why: Why | None = None
    otherwise: str = NO_MATRIX

    def __str__(self) -> str:
        return f"{self.operator} '{self.node}': {self.why or self.otherwise}"


def shown(shape: tuple[int, ...] | None) -> str:
    """A shape as 1x3x8x8, `scalar` for rank 0."""
    if shape is None:
        return "not known"
    return "x".join(map(str, shape)) if shape else "scalar"
