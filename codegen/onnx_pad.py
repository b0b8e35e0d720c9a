"""A Pad before a convolution becomes the convolution's own padding, where it is the same.

Unsqueeze and Transpose may be in between, as in TensorFlow's 1-D convolutions, which are images of height 1, channels last.
"""

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
    turns: list[Node] = []
    while pad is not None and pad.operator in ("Unsqueeze", "Transpose"):
        turns.insert(0, pad)
        pad = graph.producer.get(pad.input(0))
    if pad is None or pad.operator != "Pad":
        return None
    index = ZERO_POINT[node.operator]
    zero = (
        between.input(2) if between is not None else node.input(index) if index is not None else ""
    )
    every = _pads(graph, pad, zero)
    for turn in turns:
        every = None if every is None else _turned(graph, turn, every)
    added = None if every is None else _spatial(every)
    own = list(node.attribute("pads") or [0] * len(added or ()))
    if added is None or len(own) != len(added):
        return None
    made = Replacement(graph, node)
    inputs = list(node.proto.input)
    inputs[0] = pad.input(0)
    for glue in (*turns, *([between] if between is not None else [])):
        attributes = {a.name: helper.get_attribute_value(a) for a in glue.proto.attribute}
        inputs[0] = made.add(glue.operator, [inputs[0], *glue.proto.input[1:]], **attributes)
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


def _pads(graph: Graph, pad: Node, zero: str) -> list[tuple[int, int]] | None:
    """What the Pad adds before and after each axis; None where it is not constant, or fills with something else."""
    shape = graph.type(pad.input(0)).shape
    if shape is None or bytes(pad.attribute("mode", b"constant")) != b"constant":
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
    made = [(0, 0)] * len(shape)
    for number, axis in enumerate(int(axis) % len(shape) for axis in axes):
        made[axis] = int(pads[number]), int(pads[len(axes) + number])
    return made


def _turned(graph: Graph, turn: Node, pads: list[tuple[int, int]]) -> list[tuple[int, int]] | None:
    """The same of each axis behind an Unsqueeze or Transpose; None where its axes are not constant."""
    if turn.operator == "Transpose":
        order = turn.attribute("perm") or range(len(pads))[::-1]
        return [pads[axis] for axis in order]
    axes: Any = graph.constant(turn.input(1)) if turn.input(1) else turn.attribute("axes")
    if axes is None:
        return None
    rank = len(pads) + len(axes)
    new = {int(axis) % rank for axis in axes}
    old = iter(pads)
    return [(0, 0) if axis in new else next(old) for axis in range(rank)]


def _spatial(pads: list[tuple[int, int]]) -> list[int] | None:
    """Those of the spatial axes, as a convolution has them; None where there are others, or some are negative."""
    outside, inside = pads[:2], pads[2:]
    if not inside or any(map(any, outside)) or min(map(min, inside)) < 0:
        return None
    return [before for before, _ in inside] + [after for _, after in inside]
