"""A layer as an ONNX model of its own, for `cim-emu --check` and any other runtime.

Input `x`, output `y`. Initializers: `w`, `b`, `x_scale`, `x_zp`, `w_scale`, `w_zp`, `b_scale`,
`y_scale`, `y_zp`, `slope` of a PRelu, and the bounds of a Clip as `low` and `high`; each only where the layer has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from cim.codegen.layer import Layer, Quantization

OPSET = 17
IR_VERSION = 8


def reference_model(layer: Layer) -> onnx.ModelProto:
    """The model of a layer in its own shapes and layout; the same bytes for the same layer.

    Weights are OIHW (OIW without a height) for a convolution and [C, K] for a matrix. Float layers are Conv or MatMul
    (with Add), integer ones the same between DequantizeLinear and QuantizeLinear; a layer with
    int32 output is ConvInteger or MatMulInteger.
    """
    build = _Builder(layer)
    q = layer.quantization
    if q is None:
        build.float_nodes()
    elif q.y_scale is None:
        build.integer_nodes(q)
    else:
        build.qdq_nodes(q)
    return build.model()


class _Builder:
    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        weights = layer.weights[0, 0]
        if layer.layout == "NCHW":
            weights = layer.weights.transpose(3, 2, 0, 1)
            weights = weights[:, :, 0] if len(layer.input_shape) == 3 else weights
        self.constant("w", weights)

    def constant(self, name: str, value: Any) -> str:
        """Adds an initializer."""
        array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Adds a node."""
        self.nodes.append(helper.make_node(operator, inputs, [output], output, **attributes))
        return output

    def model(self) -> onnx.ModelProto:
        """The finished model."""
        layer = self.layer
        x = _value("x", layer.input_dtype, layer.input_shape)
        y = _value("y", layer.output_dtype, layer.output_shape)
        graph = helper.make_graph(self.nodes, "layer", [x], [y], self.constants)
        made = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        made.producer_name = "cim-cc"
        return made

    def float_nodes(self) -> None:
        """Conv, or MatMul and Add, then the activation."""
        if self.layer.bias is not None:
            self.constant("b", self.layer.bias.astype(np.float32))
        self.activation(self.product("x", "w", "b"), "y")

    def qdq_nodes(self, q: Quantization) -> None:
        """The float nodes on dequantized operands, then QuantizeLinear."""
        layer = self.layer
        scale, zero_point = _same_size(q)
        axis = 0 if layer.layout == "NCHW" else 1
        self.constant("x_scale", np.float32(q.x_scale))
        self.constant("x_zp", np.array(q.x_zp, dtype=layer.input_dtype))
        self.constant("w_scale", scale)
        self.constant("w_zp", zero_point.astype(layer.weights.dtype))
        assert q.y_scale is not None
        self.constant("y_scale", np.float32(q.y_scale))
        self.constant("y_zp", np.array(q.y_zp, dtype=layer.output_dtype))
        self.node("DequantizeLinear", ["x", "x_scale", "x_zp"], "x_float")
        self.node("DequantizeLinear", ["w", "w_scale", "w_zp"], "w_float", axis=axis)
        if layer.bias is not None:
            self.constant("b", layer.bias.astype(np.int32))
            self.constant("b_scale", q.x_scale * scale)
            self.node("DequantizeLinear", ["b", "b_scale"], "b_float", axis=0)
        value = self.activation(self.product("x_float", "w_float", "b_float"), "activated")
        self.node("QuantizeLinear", [value, "y_scale", "y_zp"], "y")

    def integer_nodes(self, q: Quantization) -> None:
        """ConvInteger or MatMulInteger."""
        layer = self.layer
        zero_point = q.w_zp if q.w_zp.size > 1 else q.w_zp.reshape(())
        self.constant("x_zp", np.array(q.x_zp, dtype=layer.input_dtype))
        self.constant("w_zp", zero_point.astype(layer.weights.dtype))
        inputs = ["x", "w", "x_zp", "w_zp"]
        if layer.layout == "NCHW":
            self.node("ConvInteger", inputs, "y", **self.convolution())
        else:
            self.node("MatMulInteger", inputs, "y")

    def convolution(self) -> dict[str, Any]:
        """The attributes of a convolution."""
        layer = self.layer
        axes = 4 - len(layer.input_shape)  # 1 where height is no axis of the model's
        pads = layer.pads
        return {
            "kernel_shape": list(layer.weights.shape[axes:2]),
            "strides": list(layer.strides[axes:]),
            "dilations": list(layer.dilations[axes:]),
            "pads": [*pads[axes:2], *pads[2 + axes :]],
            **({"group": layer.groups} if layer.groups > 1 else {}),
        }

    def product(self, x: str, w: str, b: str) -> str:
        """Convolution or matrix product, with the bias; the name of the result."""
        biased = self.layer.bias is not None
        if self.layer.layout == "NCHW":
            return self.node("Conv", [x, w, b] if biased else [x, w], "sum", **self.convolution())
        value = self.node("MatMul", [x, w], "product" if biased else "sum")
        return self.node("Add", [value, b], "sum") if biased else value

    def activation(self, value: str, output: str) -> str:
        """The activation; without one, the last node gives `output` itself."""
        activation = self.layer.activation
        if activation.kind == "relu":
            return self.node("Relu", [value], output)
        if activation.slopes:
            along = (
                (-1, *(1 for _ in self.layer.output_shape[2:]))
                if self.layer.layout == "NCHW"
                else (-1,)
            )
            self.constant("slope", activation.slope.reshape(along))
            return self.node("PRelu", [value, "slope"], output)
        if activation.kind == "leaky_relu":
            return self.node("LeakyRelu", [value], output, alpha=float(activation.alpha))
        if activation.kind == "hard_swish":
            return self.node("HardSwish", [value], output)
        if activation.kind == "clip":
            bounds = [
                self.constant(name, np.float32(bound)) if np.isfinite(bound) else ""
                for name, bound in (("low", activation.low), ("high", activation.high))
            ]
            return self.node("Clip", [value, *bounds], output)
        self.nodes[-1].output[0] = output
        return output


def _same_size(q: Quantization) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Weight scales and zero points as one operator takes them: both scalars, or both [K]."""
    size = max(q.w_scale.size, q.w_zp.size)
    shape = (size,) if size > 1 else ()
    return (
        np.broadcast_to(q.w_scale.reshape(-1), (size,)).reshape(shape).astype(np.float32),
        np.broadcast_to(q.w_zp.reshape(-1), (size,)).reshape(shape).astype(np.int32),
    )


def _value(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)
