"""Random changes of an ONNX model at the protobuf level: what damaged files and faulty exporters look like."""

import random

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import helper

from tests.codegen.models import model, value

F = np.float32
NUMBERS = [0, 1, -1, 2, 3, 7, 127, 255, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, -(2**63)]
FLOATS = [0.0, -1.0, float("nan"), float("inf"), 1e-45, 3e38]


def float_model():
    """Every rewritten and folded form in one model."""
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.normal(size=(4, 2, 3, 3)).astype(F), "b": rng.normal(size=4).astype(F),
        "t": rng.normal(size=(4, 3, 2, 2)).astype(F), "m": rng.normal(size=(3, 5)).astype(F),
        "c": rng.normal(size=(1, 5)).astype(F), "shape": np.array([1, -1, 3]),
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "one": np.ones((3, 1, 1), F), "slope": np.full((4, 1, 1), 0.1, F),
        **{name: np.ones(4, F) for name in ("g", "h", "mean", "var")},
    }  # fmt: skip
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["p"], "pad"),
        helper.make_node("Conv", ["p", "w", "b"], ["a"], "conv", strides=[2, 2], pads=[0, 0, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "g", "h", "mean", "var"], ["bn"], "bn"),
        helper.make_node("PRelu", ["bn", "slope"], ["r"], "act"),
        helper.make_node("ConvTranspose", ["r", "t"], ["d"], "up", strides=[2, 2]),
        helper.make_node("Mul", ["d", "one"], ["e"], "mul"),
        helper.make_node("Identity", ["e"], ["i"], "same"),
        helper.make_node("Reshape", ["i", "shape"], ["f"], "flat"),
        helper.make_node("MatMul", ["left", "f"], ["k"], "left_product"),
        helper.make_node("Squeeze", ["k"], ["sq"], "squeeze"),
        helper.make_node("Gemm", ["sq", "m", "c"], ["y"], "gemm", alpha=0.5),
    ]
    constants["left"] = rng.normal(size=(2, 36)).astype(F)
    return model(nodes, [value("x", F, [1, 2, 5, 5])], [value("y", F, [2, 5])], constants)


def quantized_model():
    """QDQ, QLinearConv, MatMulInteger and QGemm in one model."""
    rng = np.random.default_rng(1)
    constants = {
        "s": F(0.5), "z": np.uint8(3), "w": rng.integers(-9, 9, (4, 2, 2, 2)).astype(np.int8), "ws": np.full(4, 0.25, F),
        "wz": np.zeros(4, np.int8), "b": rng.integers(-9, 9, 4).astype(np.int32), "bs": np.full(4, 0.125, F),
        "v": rng.integers(-9, 9, (3, 4, 1, 1)).astype(np.int8), "vs": F(0.5), "vz": np.int8(0),
        "m": rng.integers(-9, 9, (2, 4, 3)).astype(np.int8), "shape": np.array([1, 9, 4]),
        "q": rng.integers(-9, 9, (27, 2)).astype(np.int8), "flat": np.array([1, 27]),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["qx"], "quantize"),
        helper.make_node("DequantizeLinear", ["qx", "s", "z"], ["dx"], "dequantize"),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["dw"], "weights", axis=0),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["db"], "bias", axis=0),
        helper.make_node("Conv", ["dx", "dw", "db"], ["c"], "conv"),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("QuantizeLinear", ["r", "s", "z"], ["qr"], "requantize"),
        helper.make_node("QLinearConv", ["qr", "s", "z", "v", "vs", "vz", "s", "z"], ["ql"], "qlinear"),
        helper.make_node("Reshape", ["ql", "flat"], ["f"], "flatten"),
        helper.make_node("QGemm", ["f", "s", "z", "q", "vs", "vz", "", "s", "z"], ["y"], "qgemm", domain="com.microsoft"),
        helper.make_node("Reshape", ["qr", "shape"], ["rows"], "rows"),
        helper.make_node("MatMulInteger", ["rows", "m"], ["y2"], "integer"),
    ]  # fmt: skip

    outputs = [value("y", np.uint8, [1, 2]), value("y2", np.int32, [2, 9, 3])]
    made = model(nodes, [value("x", F, [1, 2, 4, 4])], outputs, constants)
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made


def names_of(made):
    """Every name of a value, node or dimension."""
    graph = made.graph
    names = {v.name for v in (*graph.input, *graph.output, *graph.initializer, *graph.node)}
    return sorted(
        names | {n for node in graph.node for n in (*node.input, *node.output)} | {"", "nobody"}
    )


def messages(message, depth=0):
    """A message and all inside it."""
    yield message
    for described, held in message.ListFields():
        if described.type == FieldDescriptor.TYPE_MESSAGE and depth < 12:
            for part in [held] if isinstance(held, Message) else held:
                yield from messages(part, depth + 1)


def mutate(made, seed, count):
    """A copy with `count` random changes: fields cleared, doubled, moved, filled with other numbers, names and types."""
    chance = random.Random(seed)
    changed = onnx.ModelProto()
    changed.CopyFrom(made)
    names = names_of(made)
    for _ in range(count):
        found = [
            m
            for m in messages(changed)
            if m.DESCRIPTOR.name not in ("OperatorSetIdProto", "StringStringEntryProto")
        ]
        message = chance.choice(found)
        fields = [
            d
            for d in message.DESCRIPTOR.fields
            if d.name
            not in ("ir_version", "opset_import", "doc_string", "external_data", "data_location")
        ]
        present = [d for d, _ in message.ListFields() if d in fields]
        described = chance.choice(present if present and chance.random() < 0.8 else fields)
        _change(chance, message, described, names)
    return changed


def _change(chance, message, described, names):
    kind, name = described.type, described.name
    repeated = (
        described.is_repeated
        if hasattr(described, "is_repeated")
        else described.label == described.LABEL_REPEATED
    )
    if chance.random() < 0.25:
        message.ClearField(name)
        return
    if repeated:
        held = getattr(message, name)
        action = chance.choice(["drop", "double", "swap", "new"])
        if held and action == "drop":
            del held[chance.randrange(len(held))]
        elif held and action == "double":
            part = held[chance.randrange(len(held))]
            if kind == FieldDescriptor.TYPE_MESSAGE:
                held.add().CopyFrom(part)
            else:
                held.append(part)
        elif len(held) > 1 and action == "swap":
            a, b = chance.sample(range(len(held)), 2)
            if kind == FieldDescriptor.TYPE_MESSAGE:
                one = type(held[a])()
                one.CopyFrom(held[a])
                held[a].CopyFrom(held[b])
                held[b].CopyFrom(one)
            else:
                held[a], held[b] = held[b], held[a]
        elif kind == FieldDescriptor.TYPE_MESSAGE:
            held.add()
        elif held and chance.random() < 0.7:
            held[chance.randrange(len(held))] = _other(chance, described, names)
        else:
            held.append(_other(chance, described, names))
    elif kind == FieldDescriptor.TYPE_MESSAGE:
        getattr(message, name).SetInParent()
    else:
        if name == "raw_data":
            data = message.raw_data
            setattr(
                message,
                name,
                data[: chance.randrange(len(data) + 1)] if chance.random() < 0.5 else data + b"xyz",
            )
            return
        setattr(message, name, _other(chance, described, names))


def _other(chance, described, names):
    kind = described.type
    if kind == FieldDescriptor.TYPE_STRING:
        return chance.choice(names)
    if kind == FieldDescriptor.TYPE_BYTES:
        return chance.choice(names).encode()
    if kind in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return chance.choice(FLOATS)
    if kind == FieldDescriptor.TYPE_ENUM:
        return chance.choice(described.enum_type.values).number
    limit = {FieldDescriptor.TYPE_INT32: 2**31, FieldDescriptor.TYPE_UINT64: 2**64}.get(kind, 2**63)
    low = 0 if kind == FieldDescriptor.TYPE_UINT64 else -limit
    choices = [n for n in (*NUMBERS, *range(1, 30)) if low <= n < limit]
    return chance.choice(choices)
