"""How long whole networks take, and how much memory: compile to images, emulate one 224x224 image, check it.

    pip install -e '.[tensorflow]'
    python benchmarks/networks.py [CROSSBAR]

Keras models with random weights, quantized to int8, run by the command lines as a user would. Memory is the largest
resident set of the processes. Targets at 128x128: MobileNet 20 s to compile and 10 s to emulate, ResNet-18 40 s
and 20 s, and 4 GB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import onnx

from cim.explore import networks

TARGETS = {"mobilenet": (20, 10), "resnet18": (40, 20)}


def timed(*command: str) -> tuple[float, float]:
    """Seconds that a command takes, and its GB; it must succeed."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", *command])
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, command
    return time.perf_counter() - began, used.ru_maxrss / 1e6


def make(name: str, path: Path) -> None:
    """Write the quantized model."""
    onnx.save(networks.quantized_model(name), str(path))


def main() -> None:
    crossbar = sys.argv[1] if len(sys.argv) > 1 else "128x128"
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        np.save(
            folder / "x.npy", np.random.default_rng(1).normal(size=(1, 224, 224, 3)).astype("f4")
        )
        for name, targets in TARGETS.items():
            model = folder / f"{name}.onnx"
            # A process starts with the resident set of the one that starts it: TensorFlow must not be here.
            with ProcessPoolExecutor(1, get_context("spawn")) as other:
                other.submit(make, name, model).result()
            build = ["cim.codegen.cli", str(model), "-q", "-o", str(folder / name)]
            run = [
                "cim.emulator.cli",
                str(folder / name / "network.json"),
                "--quiet",
                "--input",
                str(folder / "x.npy"),
            ]
            runs = [
                timed(*build, "--set", f"core.crossbar={crossbar}"),
                timed(*run),
                timed(*run, "--check"),
            ]
            seconds, memory = zip(*runs, strict=True)
            print(
                f"{name:<10} {crossbar}: compile {seconds[0]:5.1f} s (of {targets[0]}), emulate {seconds[1]:5.1f} s "
                f"(of {targets[1]}), with --check {seconds[2]:5.1f} s, {max(memory):.2f} GB (of 4)"
            )


if __name__ == "__main__":
    main()
