"""The ONNX backend interface: models and single operators run on the emulated chip.

    from cim import backend
    outputs = backend.prepare(model, settings=["core.crossbar=64x64"]).run([x])

`onnx.backend.test` runs against it. Weights, scales and zero points may be inputs of the model: they are
compiled when `run` gives them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper, version_converter
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

import cim
from cim.api import Program
from cim.codegen.onnx_geometry import WEIGHT_INPUT
from cim.codegen.onnx_graph import STANDARD_DOMAINS
from cim.codegen.onnx_load import OLDEST_OPSET
from cim.diagnostics import error
from cim.emulator.network_stats import NetworkStats


class CimRep(BackendRep):  # type: ignore[misc]
    """A model that is ready to run. It is compiled with the first inputs, and again where constants change."""

    def __init__(self, model: onnx.ModelProto, options: Mapping[str, Any]) -> None:
        held = {tensor.name for tensor in model.graph.initializer}
        self.model = model
        self.inputs = [value.name for value in model.graph.input if value.name not in held]
        self.bound = frozenset(constant_inputs(model)).intersection(self.inputs)
        self.options = dict(options)
        self.stats: NetworkStats | None = None
        self.program: Program | None = None
        self._key = ""

    def run(self, inputs: Any, **kwargs: Any) -> tuple[NDArray[Any], ...]:
        """The outputs for inputs by position or by name; `stats` then has what the run cost.

        `check` as for `Program.run`. Raises `CimError` as `cim.compile` and `Program.run` do.
        """
        given = dict(inputs) if isinstance(inputs, Mapping) else self._by_position(inputs)
        arrays = {name: np.asarray(array) for name, array in given.items()}
        bound = {name: array for name, array in arrays.items() if name in self.bound}
        data = {name: array for name, array in arrays.items() if name not in self.bound}
        program = self._compiled(bound, {name: array.shape for name, array in data.items()})
        done = program.run(data, **kwargs)
        self.stats = done.stats
        return tuple(done.outputs[name] for name in program.outputs)

    def _by_position(self, inputs: Any) -> dict[str, Any]:
        arrays = list(inputs) if isinstance(inputs, Sequence) else [inputs]
        if len(arrays) != len(self.inputs):
            raise error(
                f"{len(arrays)} inputs are given, must be {', '.join(self.inputs) or 'none'}"
            )
        return dict(zip(self.inputs, arrays, strict=True))

    def _compiled(
        self, bound: dict[str, NDArray[Any]], shapes: dict[str, tuple[int, ...]]
    ) -> Program:
        """The program for these constants and input shapes; the last one is kept."""
        hashed = hashlib.sha256(repr(sorted(shapes.items())).encode())
        for name in sorted(bound):
            array = bound[name]
            hashed.update(f"{name} {array.shape} {array.dtype} ".encode() + array.tobytes())
        if self.program is None or hashed.hexdigest() != self._key:
            model = onnx.ModelProto()
            model.CopyFrom(self.model)
            tensors = [numpy_helper.from_array(array, name) for name, array in bound.items()]
            model.graph.initializer.extend(tensors)
            self.program = cim.compile(model, input_shapes=shapes, **self.options)
            self._key = hashed.hexdigest()
        return self.program


def constant_inputs(model: onnx.ModelProto) -> set[str]:
    """The inputs that must be known to compile: all but the data of matrix operators and of quantizers.

    Where the data comes from a DequantizeLinear, so do weights: then its inputs.
    """
    makers = {name: node for node in model.graph.node for name in node.output}
    found: set[str] = set()
    data: set[str] = set()
    for node in model.graph.node:
        known = node.op_type in WEIGHT_INPUT or f"{node.domain}.{node.op_type}" in WEIGHT_INPUT
        quantizer = node.op_type in ("QuantizeLinear", "DequantizeLinear")
        if not (known or (quantizer and node.domain in STANDARD_DOMAINS)):
            continue
        data.update(node.input[:1])
        for name in node.input[1:]:
            found.add(name)
            maker = makers.get(name)
            if known and maker is not None and maker.op_type == "DequantizeLinear":
                found.update(maker.input)
                data.difference_update(maker.input)
    return found - data


class CimBackend(Backend):  # type: ignore[misc]
    """Compiles for a machine and runs on the emulator. A subclass may set another `machine`."""

    machine: Mapping[str, Any] = {}

    @classmethod
    def prepare(
        cls, model: onnx.ModelProto | str | os.PathLike[str], device: str = "CPU", **kwargs: Any
    ) -> CimRep:
        """A model, in memory or a file, ready to run; `kwargs` are those of `cim.compile`: arch, settings, sync and so on.

        Models older than opset 7 are converted to it. Raises `CimError` for another device.
        """
        if not cls.supports_device(device):
            raise error(f"there is no device '{device}', only CPU, on which the emulator runs")
        if isinstance(model, str | os.PathLike):
            model = onnx.load(model)
        onnx.checker.check_model(model)
        own = [o.version for o in model.opset_import if o.domain in STANDARD_DOMAINS]
        if own and own[0] < OLDEST_OPSET:
            model = version_converter.convert_version(model, OLDEST_OPSET)
        return CimRep(model, {**cls.machine, **kwargs})

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[NDArray[Any], ...]:
        """Compile and run once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None,
        **kwargs: Any,
    ) -> tuple[NDArray[Any], ...]:  # fmt: skip
        """Run one operator on arrays, one for each name among its inputs, at the newest opset or `opset_version`.

        `outputs_info` are type and shape of each output, for operators whose outputs cannot be inferred.
        """
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in dict.fromkeys(node.input) if name]
        if len(inputs) != len(names):
            raise error(f"{len(inputs)} inputs are given, must be {', '.join(names) or 'none'}")
        arrays = dict(zip(names, map(np.asarray, inputs), strict=True))
        values = [_value(name, array.dtype, array.shape) for name, array in arrays.items()]
        known = outputs_info or [None] * len(node.output)
        outputs = [
            onnx.ValueInfoProto(name=name) if info is None else _value(name, *info)
            for name, info in zip(node.output, known, strict=True)
            if name
        ]
        graph = helper.make_graph([node], node.op_type, values, outputs)
        opsets = [helper.make_opsetid("", opset)]
        if node.domain not in STANDARD_DOMAINS:
            opsets.append(helper.make_opsetid(node.domain, 1))
        model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets))
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is the CPU."""
        try:
            return bool(Device(device).type == DeviceType.CPU)
        except AttributeError:
            return False


def _value(name: str, dtype: Any, shape: Sequence[int]) -> onnx.ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, element, shape)


is_compatible = CimBackend.is_compatible
prepare = CimBackend.prepare
run_model = CimBackend.run_model
run_node = CimBackend.run_node
supports_device = CimBackend.supports_device
