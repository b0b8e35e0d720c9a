"""The emulator's MVM against float32 BLAS on the same matrix-vector product, one thread, in one run.

OPENBLAS_NUM_THREADS=1 python benchmarks/mvm_ratio.py      (needs SciPy, through which numba reaches BLAS)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from fastest import fastest
from numba import njit

from cim.emulator.layout import CORE
from cim.emulator.values import OPTIONS, mvm_int

MACS = 2e8
TARGET = 0.3


@njit(**OPTIONS)
def emulated(x, result, cells, core, offset, adc_mul, times):
    for _ in range(times):
        mvm_int(x, result, cells, core, offset, adc_mul, 1)


@njit
def blas(weights, x, y, times):
    for _ in range(times):
        np.dot(weights, x, y)


def cpu_seconds(action: Callable[[], object]) -> float:
    action()  # compiles
    return fastest(action, 7, time.process_time)


def measure(side: int) -> None:
    rng = np.random.default_rng(0)
    cells = rng.integers(-255, 256, (side, side)).astype(np.int16)
    x = rng.integers(1, 256, side).astype(np.int32)
    cores = np.zeros(1, CORE)
    cores["rows"] = cores["columns"] = side
    result, offset = np.zeros(side, np.int32), np.zeros(side, np.int32)
    adc_mul = np.full(side, 1e-4, np.float32)
    times = int(MACS / side**2)
    ours = cpu_seconds(lambda: emulated(x, result, cells.ravel(), cores[0], offset, adc_mul, times))
    weights, values = np.ascontiguousarray(cells.T.astype(np.float32)), x.astype(np.float32)
    y = np.zeros(side, np.float32)
    theirs = cpu_seconds(lambda: blas(weights, values, y, times))
    rate = side**2 * times / ours / 1e9
    print(
        f"MVM {side}x{side}, i8n with digitization: {rate:5.1f} GMAC/s, {theirs / ours:.2f} of BLAS sgemv "
        f"(target {TARGET})"
    )


if __name__ == "__main__":
    if find_spec("scipy") is None:
        sys.exit("needs SciPy: pip install scipy")
    for side in (64, 128, 256):
        measure(side)
