"""The compiler's public function: a model file to everything that `cim-cc` writes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm import network_file
from cim.codegen.compile_layer import (
    CompiledLayer,
    compile_layer,
    compile_turns,
    file_stem,
)
from cim.codegen.keras_import import is_keras, keras_to_onnx
from cim.codegen.layer import Layer
from cim.codegen.layer_files import made_layers
from cim.codegen.onnx_import import HostNode, Imported, import_model
from cim.codegen.onnx_load import load_graph
from cim.codegen.partition import HostStep, Partition, partition
from cim.codegen.quantize import quantized
from cim.codegen.schedule import SCHEMES
from cim.codegen.window import MAPPINGS
from cim.diagnostics import did_you_mean, error
from cim.isa.machine import Machine, load_machine


@dataclass(frozen=True)
class CompiledModel:
    """A compiled model: its layers in order, and for a whole model how they and the host run together.

    A folded layer is there once for each of its turns; `fold` says that layers may be. `partition` is None where a
    single layer was asked for.
    """

    name: str
    machine: Machine
    layers: tuple[CompiledLayer, ...]
    imported: Imported
    partition: Partition | None
    fold: bool = False

    def files(
        self, stage: str = "image", progress: Callable[[str], None] = lambda _: None
    ) -> dict[str, bytes]:
        """All files by name: texts (`assembly`), objects (`object`), or `bin` and `cfg` (`image`).

        `progress` is called with each layer's name when it is made. Raises `CimError` where an image
        does not fit its machine.
        """
        files: dict[str, bytes] = {}
        for made in made_layers(self.layers, stage, progress):
            files |= made
        if self.partition is not None:
            files |= self._network_files(self.partition)
        elif self.fold:  # also of one turn: an older file may be there, of several
            files["network.json"] = network_file.encode_network(self._one_layer())
        return files

    def _network_files(self, whole: Partition) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        steps: list[network_file.LayerStep | network_file.HostStep] = []
        for step in whole.steps:
            if isinstance(step, HostStep):
                content = step.model.SerializeToString(deterministic=True)
                name = f"{self.name}.host{len(steps)}.onnx"
                files[name] = content
                steps.append(
                    network_file.HostStep(
                        name, _sha256(content), list(step.inputs), list(step.outputs)
                    )
                )
            else:
                layer = step.layer
                steps.append(self._layer_step(layer, layer.input_name, layer.output_name))
        reference = self.imported.graph.named_model().SerializeToString(deterministic=True)
        reference_name = f"{self.name}.ref.onnx"
        files[reference_name] = reference
        network = network_file.Network(
            name=self.name,
            inputs=[self._tensor(name) for name in whole.inputs],
            outputs=[self._tensor(name) for name in whole.outputs],
            steps=steps,
            host=[
                network_file.HostNode(e.name, e.operator, e.reason, e.macs, e.share)
                for e in whole.report
            ],
            macs=whole.macs,
            reference=reference_name,
            reference_sha256=_sha256(reference),
        )
        files["network.json"] = network_file.encode_network(network)
        return files

    def _one_layer(self) -> network_file.Network:
        """A single layer that may have turns as a network: the order of its images, with the names of its reference."""
        layer, (reference, content) = self.layers[0].layer, self.layers[0].program.reference
        x = network_file.Tensor("x", layer.input_dtype.name, list(layer.input_shape))
        y = network_file.Tensor("y", layer.output_dtype.name, list(layer.output_shape))
        return network_file.Network(
            name=self.name,
            inputs=[x],
            outputs=[y],
            steps=[self._layer_step(layer, x.name, y.name)],
            host=[],
            macs=layer.macs,
            reference=reference,
            reference_sha256=_sha256(content),
        )

    def _layer_step(self, layer: Layer, source: str, target: str) -> network_file.LayerStep:
        cfg, *later = [f"{o.program.name}.cfg" for o in self.layers if o.layer is layer]
        return network_file.LayerStep(layer.name, cfg, source, target, later)

    def _tensor(self, name: str) -> network_file.Tensor:
        known = self.imported.graph.type(name)
        dtype = np.dtype(known.dtype).name if known.dtype is not None else ""
        return network_file.Tensor(name, dtype, list(known.shape or ()))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def compile_model(
    source: Any,
    machine: Machine | None = None,
    scheme: str = "linear",
    layer: str | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    host: Collection[str] = (),
    mapping: str = "im2col",
    quantize: NDArray[Any] | Mapping[str, NDArray[Any]] | None = None,
    fold: bool = False,
) -> CompiledModel:
    """Compile a model for a machine (default: the preset `default`).

    The model is an ONNX or Keras file, a SavedModel folder, or an ONNX or Keras model in memory.

    `layer` picks a single layer by its node's name; `dims` and `input_shapes` fix symbolic dimensions; `host`
    names matrix operators that stay on the host; `mapping` is im2col, sdk or vw-sdk; `quantize` are inputs to calibrate
    a float model with, which is then quantized to int8; with `fold` the cores of a layer that needs more than the
    machine has work in several turns. Raises `CimError` for a model that cannot be read, a layer that is not there or
    cannot be mapped, and a layer that does not fit the machine.
    """
    if scheme not in SCHEMES:
        raise error(f"unknown scheme '{scheme}'{did_you_mean(scheme, SCHEMES)}")
    if mapping not in MAPPINGS:
        raise error(f"unknown mapping '{mapping}'{did_you_mean(mapping, MAPPINGS)}")
    machine = machine or load_machine()
    in_memory = not isinstance(source, str | os.PathLike)
    input_shapes = input_shapes or {}
    if not in_memory and Path(source).is_dir() and not is_keras(source):
        raise error("is a folder without a saved_model.pb, no SavedModel", where=str(source))
    if is_keras(source):
        source, input_shapes = keras_to_onnx(source, input_shapes), {}
    if quantize is not None:
        graph = load_graph(source, dims, input_shapes, host)
        source, dims, input_shapes = quantized(graph, quantize), {}, {}
    narrow = machine.core.partial_sum == "narrow"
    imported = import_model(source, dims or {}, input_shapes, host, narrow)
    where = imported.graph.path
    chosen = imported.layers if layer is None else (_named_layer(imported, layer, where),)
    name = file_stem(where, set()) if in_memory else Path(where).stem
    taken = {name.lower()}  # the network's own files
    compiled: list[CompiledLayer] = []
    for one in chosen:
        if fold:
            compiled += compile_turns(one, machine, scheme, taken, mapping)
        else:
            stem = file_stem(one.name, taken)
            compiled.append(compile_layer(one, machine, scheme, stem, mapping))
    whole = partition(imported) if layer is None else None
    return CompiledModel(name, machine, tuple(compiled), imported, whole, fold)


def _named_layer(imported: Imported, name: str, where: str) -> Layer:
    """The layer of that name. A node that went to the host is an error with its reason here."""
    for layer in imported.layers:
        if name in (layer.name, layer.output_name):
            return layer
    for unit in imported.units:
        if isinstance(unit, HostNode) and unit.node.name == name:
            raise error(f"cannot be mapped: {unit.reason}", where=where)
    names = [layer.name for layer in imported.layers]
    raise error(
        f"has no layer '{name}'{did_you_mean(name, names)}",
        where=where,
        notes=[f"its layers are: {', '.join(names) or 'none'}"],
    )
