"""`--fold`: a layer with more cores than the machine has becomes several, which take turns on the cores.

Each has some of the output channels (with groups, some of the groups), is set up on its own and reads the same
input; the host joins the outputs. So every number stays what it is (but where partial sums are narrow and slopes differ from
channel to channel: each part has partial sums as wide as its own slopes need). The cores of one horizontal group, which share partial
sums, always work together: that many the machine must have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from cim.codegen.layer import Layer, Quantization
from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_import import HostNode, Imported, LayerUnit, Unit
from cim.codegen.onnx_reasons import Reason


def folded(
    imported: Imported, cores: Callable[[Layer], int], available: int, columns: int
) -> Imported:
    """The model with every layer that needs more than the available cores cut into parts that do not.

    `cores` says how many a layer needs, `columns` are the outputs M of a crossbar. A layer that cannot be cut so
    far stays whole.
    """
    units: list[Unit] = []
    for unit in imported.units:
        parts = _parts(unit.layer, cores, available, columns) if isinstance(unit, LayerUnit) else []
        if isinstance(unit, LayerUnit) and len(parts) > 1:
            units += _joined(imported.graph, unit, parts)
        else:
            units.append(unit)
    return Imported(imported.graph, tuple(units))


Part = tuple[int, int, Layer]  # its first and last input channel + 1, and what it computes


def _parts(layer: Layer, cores: Callable[[Layer], int], available: int, columns: int) -> list[Part]:
    """As few parts as fit, of nearly the same size; none where the layer fits, or cannot be cut."""
    needed = cores(layer)
    if needed <= available:
        return []
    blocks = -(-(layer.weights.shape[3] // layer.groups) // columns)
    for count in range(-(-needed // available), layer.groups * blocks + 1):
        parts = list(_cut(layer, count, columns))
        if all(cores(part) <= available for _, _, part in parts):
            return parts
    return []


def _cut(layer: Layer, count: int, columns: int) -> Iterator[Part]:
    """About `count` parts: whole groups while there are enough of them, else channels of one group each.

    Channels are cut where one crossbar ends and the next begins, so that no more cores work than without.
    """
    groups, channels, outputs = layer.groups, layer.weights.shape[2], layer.weights.shape[3]
    own = outputs // groups
    if groups > 1 and count <= groups:
        for first, last in _even(groups, count):
            yield (
                first * channels,
                last * channels,
                _some(layer, first * own, last * own, last - first),
            )
        return
    blocks = -(-own // columns)
    for group in range(groups):
        for begin, end in _even(blocks, min(-(-count // groups), blocks)):
            first, last = begin * columns, min(end * columns, own)
            part = _some(layer, group * own + first, group * own + last, 1)
            yield group * channels, (group + 1) * channels, part


def _even(size: int, count: int) -> Iterator[tuple[int, int]]:
    for i in range(count):
        yield i * size // count, (i + 1) * size // count


def _some(layer: Layer, first: int, last: int, groups: int) -> Layer:
    """The layer with output channels first..last-1 alone, of this many groups. Names and input are not yet its own."""
    axis = 1 if layer.layout == "NCHW" else len(layer.output_shape) - 1
    output_shape = list(layer.output_shape)
    output_shape[axis] = last - first
    input_shape = list(layer.input_shape)
    if layer.layout == "NCHW":
        input_shape[1] = layer.weights.shape[2] * groups

    def own(numbers: NDArray[Any]) -> NDArray[Any]:
        return numbers if numbers.size == 1 else numbers[first:last]

    q = layer.quantization
    bias = None if layer.bias is None else layer.bias[first:last]
    return replace(
        layer,
        weights=np.ascontiguousarray(layer.weights[..., first:last]),
        bias=bias if bias is not None and np.any(bias) else None,
        input_shape=tuple(input_shape),
        output_shape=tuple(output_shape),
        groups=groups,
        activation=replace(layer.activation, slopes=layer.activation.slopes[first:last]),
        quantization=None if q is None else _quantization(q, own),
    )


def _quantization(q: Quantization, own: Callable[[NDArray[Any]], NDArray[Any]]) -> Quantization:
    return replace(q, w_scale=own(q.w_scale), w_zp=own(q.w_zp))


def _joined(graph: Graph, unit: LayerUnit, parts: list[Part]) -> Iterator[Unit]:
    """The parts under names of their own, what picks their input channels, and what joins their outputs."""
    layer = unit.layer
    names = []
    picked: dict[tuple[int, int], str] = {}
    for number, (first, last, part) in enumerate(parts):
        source = layer.input_name
        if layer.layout == "NCHW" and last - first < layer.input_shape[1]:
            if (first, last) not in picked:
                picked[first, last] = graph.unused(f"{layer.name}/input_{first}_{last}")
                yield _pick(graph, layer, first, last, picked[first, last])
            source = picked[first, last]
        name = graph.unused(f"{layer.name}/{number}")
        output = graph.unused(f"{layer.output_name}/{number}")
        graph.declare(output, layer.output_dtype, part.output_shape)
        names.append(output)
        yield LayerUnit(replace(part, name=name, input_name=source, output_name=output), unit.nodes)
    axis = 1 if layer.layout == "NCHW" else len(layer.output_shape) - 1
    joined = graph.unused(f"{layer.name}/joined")
    yield _host(joined, helper.make_node("Concat", names, [layer.output_name], joined, axis=axis))


def _pick(graph: Graph, layer: Layer, first: int, last: int, name: str) -> HostNode:
    """Some channels of the input."""
    shape = (layer.input_shape[0], last - first, *layer.input_shape[2:])
    graph.declare(name, layer.input_dtype, shape)
    indices = graph.declare_constant(
        graph.unused(f"{name}/channels"), np.arange(first, last, dtype=np.int64)
    )
    return _host(
        name, helper.make_node("Gather", [layer.input_name, indices], [name], name, axis=1)
    )


def _host(name: str, proto: Any) -> HostNode:
    return HostNode(Node(name, proto), Reason(name, proto.op_type), 0)
