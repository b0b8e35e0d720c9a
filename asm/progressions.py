"""Integer sequences as expressions of a loop's variable: `s*k + t*((a*k + b)/w)`, the second part often 0.

The second part is what a row's end does to an address: every w-th step is another one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST_FOR_JUMPS = 8  # fewer values fit any jumps, and tell nothing
LARGEST_WIDTH = 1024
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Progression:
    """What is added to the first value in iteration k: `step*k + jump*((a*k + b)/w)`."""

    step: int
    jump: int = 0
    a: int = 0
    b: int = 0
    w: int = 1

    def text(self, variable: str) -> str:
        """With a leading sign and a space around it; empty where nothing is added."""
        text = _term(self.step, variable)
        if self.jump:
            inner = variable if self.a == 1 else f"{self.a}*{variable}"
            if self.b:
                inner = f"({inner} + {self.b})"
            text += _term(self.jump, f"({inner}/{self.w})")
        return text


def _term(factor: int, what: str) -> str:
    if not factor:
        return ""
    sign = "+" if factor > 0 else "-"
    return f" {sign} {what}" if abs(factor) == 1 else f" {sign} {abs(factor)}*{what}"


def fit(values: Ints) -> tuple[int, list[Progression]]:
    """How many rows, from the first, are a progression in every column, and which.

    Of a matrix with at least two rows. Not always the most rows that could be; two rows are always one.
    """
    steps = np.diff(values, axis=0)
    differs = steps != steps[0]
    bad = np.flatnonzero(differs.any(axis=1))
    plain = int(bad[0]) + 1 if bad.size else len(values)
    if bad.size:
        rows = _rows_of_two_steps(steps, differs)
        while rows >= FEWEST_FOR_JUMPS and rows > plain:
            found = _fit_jumps(steps[: rows - 1])
            if found is not None:
                return rows, found
            rows = rows // 2
    return plain, [Progression(step) for step in steps[0].tolist()]


def _rows_of_two_steps(steps: Ints, differs: NDArray[np.bool_]) -> int:
    """Rows until a column has a third kind of step."""
    first = np.argmax(differs, axis=0)
    other = steps[first, np.arange(steps.shape[1])]
    third = (differs & (steps != other)).any(axis=1)
    return int(np.argmax(third)) + 1 if third.any() else len(steps) + 1


def _fit_jumps(steps: Ints) -> list[Progression] | None:
    made: list[Progression] = []
    known: dict[bytes, tuple[int, int, int] | None] = {}
    for column in steps.T:
        kinds, counts = np.unique(column, return_counts=True)
        if len(kinds) == 1:
            made.append(Progression(int(kinds[0])))
            continue
        step, other = (int(kinds[i]) for i in np.argsort(-counts, kind="stable"))
        jumps = column == other
        key = jumps.tobytes()
        if key not in known:
            known[key] = _floor_line(np.concatenate([[0], np.cumsum(jumps)]))
        found = known[key]
        if found is None:
            return None
        made.append(Progression(step, other - step, *found))
    return made


def _floor_line(counts: Ints) -> tuple[int, int, int] | None:
    """`a, b, w` with `counts[k] == (a*k + b) / w` for all k, the smallest w that does."""
    last = len(counts) - 1
    k = np.arange(last + 1)
    total = int(counts[-1])
    for w in range(2, min(LARGEST_WIDTH, last + 1) + 1):
        # The slope a / w is known to within one count over the whole length.
        for a in range(max(1, w * (total - 1) // last), min(w - 1, w * (total + 1) // last) + 1):
            low = w * counts - a * k
            b = max(0, int(low.max()))
            if b < int(low.min()) + w:
                return a, b, w
    return None
