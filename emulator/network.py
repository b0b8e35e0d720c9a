"""Runs a whole network: CIM layers on the emulated chip, everything between them on the host."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.image import Image, digest
from cim.asm.network_file import HostStep, LayerStep, Network, Tensor, read_network
from cim.asm.read_image import read_image
from cim.diagnostics import error
from cim.emulator.check import check_layer, check_network, output_steps
from cim.emulator.errors import SAME_RUN
from cim.emulator.host import input_hints, layer_of
from cim.emulator.network_stats import (
    NetworkStats,
    network_stats,
)
from cim.emulator.prepare import Prepared, prepare
from cim.emulator.run import Progress, Result, shown_after
from cim.emulator.settings import timing_machine
from cim.emulator.stats import Stats, collect
from cim.emulator.turns import check_turns, run_turns
from cim.files import read_bytes
from cim.isa.machine import Machine

Arrays = dict[str, NDArray[Any]]


@dataclass
class NetworkRun:
    """Outputs by name, the batch as leading dimension, and the runs of each layer's turns, one an image.

    `results` has them by the layer's name and the turn's number, from 0; `instructions` counts those executed, `runs` the
    runs of the whole network.
    """

    outputs: Arrays
    results: dict[tuple[str, int], list[Result]] = field(default_factory=dict)
    instructions: int = 0
    runs: int = 0


class LoadedNetwork:
    """A network with its images and host models read and checked, ready to run.

    `settings` are `SECTION.KEY=VALUE` changes of timing keys. Raises `CimError` for a missing or changed file.
    """

    def __init__(self, path: str | Path, settings: Sequence[str] = ()) -> None:
        self.path = Path(path)
        self.network: Network = read_network(path)
        self.layers: dict[str, list[Prepared]] = {}
        self.machines: dict[str, Machine] = {}
        self.sessions: dict[str, Any] = {}
        self.quantized = False
        self.narrow = False
        self._check_flow()
        self._check_names()
        for step in self.network.steps:
            if isinstance(step, LayerStep):
                names = [step.cfg, *step.later_turns]
                images = [self._image(name) for name in names]
                check_turns(images)
                self._check_name(step, images[0])
                self.layers[step.name] = [prepare(image) for image in images]
                config = images[0].config
                self.quantized |= config.mode != "f32"
                self.narrow |= config.mode == "i8n"
                self.machines[step.name] = timing_machine(config.machine, settings)
            else:
                self.sessions[step.model] = self._session(step.model, step.sha256)

    def _image(self, name: str) -> Image:
        path = self.path.parent / name
        if not path.exists():
            raise error(
                "cannot read: No such file or directory",
                where=str(path),
                notes=["cim-cc -S and -c make no images: assemble and link the layer first"],
            )
        return read_image(path)

    def _check_names(self) -> None:
        names = [step.name for step in self.network.steps if isinstance(step, LayerStep)]
        for name in names:
            if names.count(name) > 1:
                raise error(
                    f"is not a valid network: it has two layers '{name}'", where=str(self.path)
                )

    def _check_name(self, step: LayerStep, image: Image) -> None:
        found = layer_of(image).name
        if found != step.name:
            raise error(
                f"is of layer '{found}', {self.path.name} has it as layer '{step.name}'",
                where=str(image.path),
                notes=[SAME_RUN],
            )

    def _session(self, name: str, sha256: str) -> Any:
        path = self.path.parent / name
        content = read_bytes(path)
        if digest(content) != sha256:
            raise error(
                f"SHA-256 is {digest(content)[:16]}…, {self.path.name} names {sha256[:16]}…",
                where=str(path),
                notes=[SAME_RUN],
            )
        return onnx_session(content, name)

    def _check_flow(self) -> None:
        """Every step must find what it reads, and every output must be made. Raises `CimError`."""
        network, made = self.network, {tensor.name for tensor in self.network.inputs}

        def need(names: Sequence[str], who: str) -> None:
            for name in names:
                if name not in made:
                    raise error(
                        f"is not a valid network: {who} needs '{name}', which nothing before it makes",
                        where=str(self.path),
                    )

        for number, step in enumerate(network.steps):
            if isinstance(step, HostStep):
                need(step.inputs, f"step {number}")
                made.update(step.outputs)
            else:
                need([step.input], f"step {number}")
                made.add(step.output)
        need([tensor.name for tensor in network.outputs], "the output list")

    def instructions(self, inputs: Arrays) -> int:
        """Instructions that the cores execute for these inputs, in all images. Raises `CimError` as `run` does."""
        one = 0
        for turns in self.layers.values():
            layer = layer_of(turns[0].image)
            images = layer.input_shape[0] if layer.layout == "NCHW" else 1
            one += images * sum(len(turn.program) for turn in turns)
        return self._batch(inputs) * one

    def run(
        self, inputs: Arrays, check: bool = False, max_cycles: int | None = None,
        progress: Progress | None = None,
    ) -> NetworkRun:  # fmt: skip
        """Run a batch, image by image; a leading dimension of 1 in the model may be any number here.

        `progress` is told how many instructions are done. With `check`, every layer's output is compared with the NumPy reference, and, unless partial sums are
        narrow, the network's with onnxruntime; raises `Mismatch`. Raises what `run_turns` raises, and `CimError` for inputs of
        another shape or type.
        """
        count = self._batch(inputs)
        done = NetworkRun({})
        reference = None
        steps: dict[str, float] = {}
        # On a narrow machine partial sums saturate, which onnxruntime knows nothing of; there the layers are
        # compared, with a reference that saturates alike.
        if check and not self.narrow:
            reference = self._session(self.network.reference, self.network.reference_sha256)
            steps = output_steps(read_bytes(self.path.parent / self.network.reference))
        images = []
        for index in range(count):
            one = {
                tensor.name: inputs[tensor.name]
                if count == 1
                else inputs[tensor.name][index : index + 1]
                for tensor in self.network.inputs
            }
            images.append(self._run_one(one, done, check, max_cycles, progress))
            done.runs += 1
            if reference is not None:
                check_network(
                    self.network, reference, one, images[-1], self.quantized, str(self.path), steps
                )
        done.outputs = {
            tensor.name: images[0][tensor.name]
            if count == 1
            else np.concatenate([image[tensor.name] for image in images])
            for tensor in self.network.outputs
        }
        return done

    def _batch(self, inputs: Arrays) -> int:
        counts = set()
        for tensor in self.network.inputs:
            if tensor.name not in inputs:
                raise error(f"input '{tensor.name}' is missing", where=str(self.path))
            counts.add(_batch_of(tensor, inputs[tensor.name], str(self.path)))
        if len(counts) > 1:
            raise error(
                f"the inputs have different batches: {', '.join(map(str, sorted(counts)))}",
                where=str(self.path),
            )
        return counts.pop() if counts else 1

    def _run_one(
        self, inputs: Arrays, done: NetworkRun, check: bool, max_cycles: int | None,
        progress: Progress | None,
    ) -> Arrays:  # fmt: skip
        values = dict(inputs)
        for step in self.network.steps:
            if isinstance(step, HostStep):
                feed = {name: values[name] for name in step.inputs}
                made = run_session(self.sessions[step.model], step.outputs, feed, step.model)
                values.update(zip(step.outputs, made, strict=True))
                continue
            turns = self.layers[step.name]
            ran = run_turns(
                turns, values[step.input], self.machines[step.name], max_cycles,
                shown_after(done.instructions, progress),
            )  # fmt: skip
            if check:
                check_layer(turns[0].image, values[step.input], ran.output)
            values[step.output] = ran.output
            for turn, results in zip(turns, ran.results, strict=True):
                done.results.setdefault((step.name, layer_of(turn.image).turn), []).extend(results)
                done.instructions += len(results) * len(turn.program)
        return {tensor.name: values[tensor.name] for tensor in self.network.outputs}

    def checked(self) -> str:
        """What a run with `check` has compared, in words."""
        layers = len(self.layers)
        words = f"{layers} layer{'s agree' if layers != 1 else ' agrees'} with the NumPy reference"
        if self.narrow:
            return f"{words}; not the network: onnxruntime does not know narrow partial sums"
        return f"{words}, and the network with onnxruntime"

    def stats(self, done: NetworkRun) -> NetworkStats:
        """The figures of a run: per layer or turn of one, and summed."""
        layers: dict[str, Stats] = {}
        for runs in done.results.values():
            title = layer_of(runs[0].prepared.image).title
            while title in layers:  # a layer may be called like the turn of another
                title += "'"
            layers[title] = collect(runs)
        return network_stats(layers, self.network.host, done.runs)


def run_session(session: Any, outputs: Sequence[str], feed: Arrays, name: str) -> list[Any]:
    """Run a host model. Raises `CimError` with onnxruntime's own words where it refuses."""
    try:
        return list(session.run(list(outputs) or None, feed))
    except Exception as problem:
        raise error(f"onnxruntime cannot run it: {_first_line(problem)}", where=name) from problem


def _first_line(problem: Exception) -> str:
    return str(problem).strip().split("\n")[0]


def onnx_session(content: bytes, name: str = "the model") -> Any:
    """An onnxruntime session that computes what the model says, without fusing or reordering.

    Where onnxruntime lacks an operator in the model's opset or types, it is the ONNX project's own evaluator, which
    runs alike but slowly. Raises `CimError` with onnxruntime's own words for a model that it refuses.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as problem:
        if "NOT_IMPLEMENTED" in str(problem):
            from onnx.reference import ReferenceEvaluator

            with suppress(Exception):  # it does not know the operator either
                return ReferenceEvaluator(content)
        raise error(f"onnxruntime cannot load it: {_first_line(problem)}", where=name) from problem


def _batch_of(tensor: Tensor, x: NDArray[Any], where: str) -> int:
    shape = tuple(tensor.shape)
    batched = (
        bool(shape) and shape[0] == 1 and x.shape[1:] == shape[1:] and len(x.shape) == len(shape)
    )
    if str(x.dtype) != tensor.dtype or not (x.shape == shape or (batched and len(x))):
        raise error(
            f"input '{tensor.name}' must be {_shown(shape)} {tensor.dtype}, not {_shown(x.shape)} {x.dtype}",
            where=where, notes=input_hints(shape, x, tensor.dtype),
        )  # fmt: skip
    return len(x) if batched else 1


def _shown(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "a scalar"
