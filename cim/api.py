"""Models from Python: compile one, run it on the emulated chip, look at what it cost.

import cim
program = cim.compile("model.onnx", settings=["core.crossbar=64x64"], sync="ring")
run = program.run({"x": x})
run.outputs["y"], run.stats.cycles
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.driver import compile_model
from cim.codegen.quantize import read_calibration
from cim.diagnostics import error
from cim.emulator.network import LoadedNetwork
from cim.emulator.network_stats import NetworkStats
from cim.files import write_all
from cim.isa.machine import load_machine


@dataclass(frozen=True)
class Run:
    """What a run gives: the outputs by name, in the model's own shapes and types, and the statistics."""

    outputs: dict[str, NDArray[Any]]
    stats: NetworkStats

    def __repr__(self) -> str:
        shapes = (f"{name}: {_shown(array)}" for name, array in self.outputs.items())
        return f"<Run with {', '.join(shapes)}; {self.stats.cycles:,} bus cycles>"


class Program:
    """A compiled network, ready to run any number of times."""

    def __init__(self, folder: str | Path, files: Mapping[str, bytes] | None = None) -> None:
        """Read what `cim-cc` or `Program.save` has written. Raises `CimError` for missing or changed files.

        `files` are the folder's by name, where they are known.
        """
        self._network = LoadedNetwork(Path(folder) / "network.json")
        self._files = files

    @property
    def inputs(self) -> list[str]:
        """The names of the model's inputs."""
        return [tensor.name for tensor in self._network.network.inputs]

    @property
    def outputs(self) -> list[str]:
        """The names of the model's outputs."""
        return [tensor.name for tensor in self._network.network.outputs]

    def __repr__(self) -> str:
        network = self._network.network
        ends = [
            ", ".join(f"{one.name}: {'x'.join(map(str, one.shape))} {one.dtype}" for one in some)
            for some in (network.inputs, network.outputs)
        ]
        return f"<Program {network.name}: {ends[0] or 'nothing'} -> {ends[1]}>"

    def run(
        self, inputs: NDArray[Any] | Sequence[NDArray[Any]] | Mapping[str, NDArray[Any]], check: bool = False,
        max_cycles: int | None = None,
    ) -> Run:  # fmt: skip
        """Run on inputs by name, or in the order of the model, or on one array where it has one input.

        A leading dimension of 1 in the model may be a batch of any size. With `check` every layer is
        compared with the NumPy reference and the network with onnxruntime; `max_cycles` are bus clock cycles
        of a layer or a turn of it. Raises `CimError`: for inputs that do not fit, faults, deadlocks, limits, and differences.
        """
        if not isinstance(inputs, Mapping):
            arrays: list[Any] = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
            if len(arrays) != len(self.inputs):
                raise error(
                    f"{len(arrays)} inputs are given, the model has {', '.join(self.inputs)}"
                )
            inputs = dict(zip(self.inputs, arrays, strict=True))
        given = {name: np.asarray(array) for name, array in inputs.items()}
        done = self._network.run(given, check, max_cycles)
        return Run(dict(done.outputs), self._network.stats(done))

    def save(self, folder: str | Path) -> None:
        """Write the files that `cim-cc` writes. Raises `CimError` where that fails, or for a program read from files."""
        if self._files is None:
            raise error("this program was read from files; copy them")
        write_all({Path(folder) / name: content for name, content in self._files.items()})


def compile(  # noqa: A001  (as people would call it)
    model: Any,
    arch: str = "default",
    settings: str | Sequence[str] | Mapping[str, Any] = (),
    sync: str = "linear",
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    host: Collection[str] = (),
    mapping: str = "im2col",
    quantize: NDArray[Any] | Mapping[str, NDArray[Any]] | str | Path | None = None,
    fold: bool = False,
) -> Program:
    """Compile a model for a machine: a file (ONNX or Keras), a SavedModel folder, or one in memory.

    `arch` is a preset or an `arch.toml`, `settings` are `SECTION.KEY=VALUE`, or values by `SECTION.KEY`. `sync` is the scheme: sequential, linear,
    cyclic, ring or central; `mapping` is im2col, sdk or vw-sdk. `dims` and `input_shapes` fix symbolic dimensions, `host`
    names matrix operators that stay on the host. `quantize` are inputs to calibrate with, one or more along the first
    axis, or a file of them: a float model is then quantized to int8. With `fold`, the cores of a layer that needs more than the machine has
    work in several turns. Raises `CimError` for everything that is wrong with the model or does not fit the machine.
    """
    if isinstance(settings, str):
        settings = [settings]
    elif isinstance(settings, Mapping):
        settings = [f"{key}={value}" for key, value in settings.items()]
    if isinstance(quantize, str | Path):
        quantize = read_calibration(quantize)
    compiled = compile_model(
        model,
        load_machine(arch, settings),
        sync,
        dims=dims,
        input_shapes=input_shapes,
        host=host,
        mapping=mapping,
        quantize=quantize,
        fold=fold,
    )
    files = compiled.files()
    folder = tempfile.mkdtemp(prefix="cim-")
    try:
        write_all({Path(folder) / name: content for name, content in files.items()})
        program = Program(folder, files)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    # `check` reads the references later, so the files live as long as the program.
    weakref.finalize(program, shutil.rmtree, folder, ignore_errors=True)
    return program


def _shown(array: NDArray[Any]) -> str:
    return f"{'x'.join(map(str, array.shape)) or 'a scalar'} {array.dtype}"
