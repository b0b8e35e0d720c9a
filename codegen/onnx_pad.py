"""A Pad before a convolution becomes the convolution's own padding, where it is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_rewrite import Replacement

# The number of the input that says what a convolution's padding holds; none for a float one.
ZERO_POINT = {"Conv": None, "QLinearConv": 2, "ConvInteger": 2}


def unpadded(graph: Graph, node: Node) -> Replacement | None:
    """A convolution that pads itself, in place of one whose input, or that before DequantizeLinear, is a Pad's.

    The Pad must be constant, of the spatial axes alone, and fill with what the convolution fills with.
    """
    if bytes(node.attribute("auto_pad", b"NOTSET")) not in (b"NOTSET", b"VALID", b""):
        return None
    x = node.input(0)
    between = graph.dequantize(x)
    pad = graph.producer.get(x if between is None else between.input(0))
    if pad is None or pad.operator != "Pad":
        return None
    index = ZERO_POINT[node.operator]
    zero = (
        between.input(2) if between is not None else node.input(index) if index is not None else ""
    )
    added = _spatial_pads(graph, pad, zero)
    own = list(node.attribute("pads") or [0] * len(added or ()))
    if added is None or len(own) != len(added):
        return None
    made = Replacement(graph, node)
    inputs = list(node.proto.input)
    inputs[0] = pad.input(0)
    if between is not None:
        axis = between.attribute("axis")
        more = {} if axis is None else {"axis": axis}
        inputs[0] = made.add("DequantizeLinear", [pad.input(0), *between.proto.input[1:]], **more)
    proto = onnx.NodeProto()
    proto.CopyFrom(node.named_proto())
    del proto.input[:]
    proto.input.extend(inputs)
    kept = [a for a in proto.attribute if a.name not in ("pads", "auto_pad")]
    del proto.attribute[:]
    proto.attribute.extend(kept)
    pads = [a + b for a, b in zip(own, added, strict=True)]
    proto.attribute.append(helper.make_attribute("pads", pads))
    made.nodes.append(proto)
    return made


def _spatial_pads(graph: Graph, pad: Node, zero: str) -> list[int] | None:
    """What the Pad adds before and after each spatial axis; None where a convolution cannot do it."""
    shape = graph.type(pad.input(0)).shape
    if shape is None or len(shape) < 3 or bytes(pad.attribute("mode", b"constant")) != b"constant":
        return None
    pads: Any = pad.attribute("pads")
    axes: Any = range(len(shape))
    if pad.input(1):
        pads = graph.constant(pad.input(1))
    if pad.input(3):
        axes = graph.constant(pad.input(3))
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return None
    value: Any = np.float64(pad.attribute("value", 0.0))
    if pad.input(2):
        value = graph.constant(pad.input(2))
    fill = graph.constant(zero) if zero else np.zeros(())
    if value is None or fill is None or np.size(value) != 1 or np.size(fill) != 1:
        return None
    if float(np.reshape(value, ())) != float(np.reshape(fill, ())):
        return None
    made = [0] * (2 * len(shape))
    for number, axis in enumerate(int(axis) % len(shape) for axis in axes):
        made[axis], made[len(shape) + axis] = int(pads[number]), int(pads[len(axes) + number])
    outside = (*made[:2], *made[len(shape) : len(shape) + 2])
    if any(outside) or min(made) < 0:
        return None
    return [*made[2 : len(shape)], *made[len(shape) + 2 :]]
