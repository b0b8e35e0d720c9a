"""Models in many forms that several test modules make."""

import numpy as np
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.models import model, requantized, value

F = np.float32


@st.composite
def operand_shapes(draw):
    """Shapes of two operands of a MatMul, of any rank from 1, with broadcasting."""
    k = draw(st.integers(1, 4))
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    shapes = []
    for inner in ((draw(st.integers(1, 4)), k), (k, draw(st.integers(1, 4)))):
        own = [size if draw(st.booleans()) else 1 for size in batch]
        own = own[draw(st.integers(0, len(own))) :]
        shapes.append((*own, *inner))
    if draw(st.integers(0, 4)) == 0:
        shapes[draw(st.integers(0, 1))] = (k,)
    return shapes


class Chain:
    """A convolution, a Squeeze, and nodes behind it as they are appended; `shape` is that behind the Squeeze."""

    def __init__(self, image, kernel, axes, rng, operator="Conv", batch=1, opset=17):
        self.rng, self.opset = rng, opset
        channels = 3
        self.x = rng.normal(size=(batch, 2, *image)).astype(F)
        shape = (channels, 2, *kernel) if operator == "Conv" else (2, channels, *kernel)
        grow = 1 if operator == "ConvTranspose" else -1
        whole = (batch, channels, *(i + grow * (k - 1) for i, k in zip(image, kernel, strict=True)))
        self.constants = {"w": rng.normal(size=shape).astype(F)}
        self.nodes = [helper.make_node(operator, ["x", "w"], ["c"], "conv")]
        if axes is None:
            self.nodes.append(helper.make_node("Squeeze", ["c"], ["s"], "squeeze"))
            axes = [i for i, size in enumerate(whole) if size == 1]
        elif opset < 13:
            self.nodes.append(helper.make_node("Squeeze", ["c"], ["s"], "squeeze", axes=axes))
        else:
            self.constants["axes"] = np.array(axes, np.int64)
            self.nodes.append(helper.make_node("Squeeze", ["c", "axes"], ["s"], "squeeze"))
        taken = {axis % len(whole) for axis in axes}
        self.shape = tuple(size for i, size in enumerate(whole) if i not in taken)
        self.last = "s"

    def transpose(self, order):
        """Appends a Transpose, which may be another's successor."""
        self.add("Transpose", perm=list(order))
        self.shape = tuple(self.shape[axis] for axis in order)

    def constant(self, array):
        name = f"k{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def add(self, operator, inputs=None, **attributes):
        """Appends a node behind the last one."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs or [self.last], [name], f"{operator}_{name}", **attributes))  # fmt: skip
        self.last = name

    def add_any(self, operator, operand_shape, first=False):
        """Appends an operator; a constant that it has is of `operand_shape`."""
        positive = self.rng.uniform(0.5, 2, operand_shape).astype(F)
        if operator in ("Add", "Sub", "Mul", "Div"):
            inputs = [self.last, self.constant(positive)]
            self.add(operator, inputs[::-1] if first and operator != "Div" else inputs)
        elif operator == "PRelu":
            self.add(operator, [self.last, self.constant(positive)])
        elif operator == "BatchNormalization":
            four = [self.constant(self.rng.uniform(0.5, 2, self.shape[1]).astype(F)) for _ in range(4)]  # fmt: skip
            self.add(operator, [self.last, *four])
        elif operator == "Clip":
            self.add(operator, [self.last, self.constant(F(-0.5)), self.constant(F(3))])
        else:
            self.add(operator)

    def model(self, outputs=()):
        names = [self.last, *outputs]
        made = [helper.make_tensor_value_info(n, 1, self.shape) for n in names]
        return model(self.nodes, [value("x", F, self.x.shape)], made, self.constants, self.opset)


@st.composite
def quantized_gemms(
    draw, alphas, betas, per_channel=None, activations=("none", "Relu", "LeakyRelu", "Clip")
):
    """All that a Gemm of quantized operands is made of; its scales are powers of 2, so that sums are exact in float."""
    case = {
        "sizes": [draw(st.integers(1, 4)) for _ in range(3)],
        "turns": (draw(st.booleans()), draw(st.booleans())),
        "on_left": draw(st.booleans()),
        "types": [draw(st.sampled_from([np.uint8, np.int8])) for _ in range(3)],
        "alpha": draw(alphas),
        "beta": draw(betas),
        "c": draw(st.sampled_from([None, "float", "int", "scales", "run time"])),
        "activation": draw(st.sampled_from(activations)),
        "per_channel": draw(st.booleans()) if per_channel is None else per_channel,
        "seed": draw(st.integers(0, 2**32 - 1)),
    }  # fmt: skip
    m, _, n = case["sizes"]
    case["c_shape"] = draw(st.sampled_from([(), (1,), (n,), (1, n), (1, 1), (m, 1), (m, n)]))
    if case["c"] == "scales":
        case["c_shape"] = draw(st.sampled_from([(n,), (1, n), (m, 1), (m, n)]))
    return case


class Quantized:
    """The model of such a case, its feeds, and what its numbers are; `step` is the scale of both operands."""

    def __init__(self, case, step=2**-6):
        step = F(step)
        self.case = case
        self.rng = rng = np.random.default_rng(case["seed"])
        (m, k, n), turns, on_left = case["sizes"], case["turns"], case["on_left"]
        shapes = [(k, m) if turns[0] else (m, k), (n, k) if turns[1] else (k, n)]
        self.arrays = [self.integers(t, s) for t, s in zip(case["types"], shapes, strict=False)]
        zeros = [int(self.integers(t, ())) for t in case["types"]]
        w = 0 if on_left else 1
        axis = (1 if turns[0] else 0) if on_left else (0 if turns[1] else 1)
        scales = [np.full((), step, F), np.full((), step, F)]
        if case["per_channel"]:
            channels = self.arrays[w].shape[axis]
            scales[w] = step * 2.0 ** -rng.integers(0, 3, channels).astype(F)
            zeros[w] = np.full(channels, zeros[w])
        self.scales, self.zeros, self.y_scale = scales, zeros, F(0.5)
        constants = {"ys": self.y_scale, "yz": case["types"][2](zeros[2])}
        nodes, self.feeds = [], {}
        for i, name in enumerate("ab"):
            zero = np.asarray(zeros[i]).astype(case["types"][i])
            constants |= {f"{name}s": scales[i].astype(F), f"{name}z": zero}
            more = {"axis": axis} if i == w and case["per_channel"] else {}
            names = [name, f"{name}s", f"{name}z"]
            nodes.append(helper.make_node("DequantizeLinear", names, [f"{name}d"], **more))
            (constants if i == w else self.feeds)[name] = self.arrays[i]
        operands = ["ad", "bd"]
        self.c = None
        if case["c"] is not None:
            operands.append("cd")
            self.addend(constants, nodes, step * step)
        attributes = {"alpha": case["alpha"], "beta": case["beta"]}
        nodes.append(helper.make_node("Gemm", operands, ["g"], "n", transA=int(turns[0]), transB=int(turns[1]), **attributes))  # fmt: skip
        last = "g"
        if case["activation"] != "none":
            names = [last]
            if case["activation"] == "Clip":
                constants |= {"low": F(-5), "high": F(20)}
                names += ["low", "high"]
            nodes.append(helper.make_node(case["activation"], names, ["act"], "act"))
            last = "act"
        nodes.append(helper.make_node("QuantizeLinear", [last, "ys", "yz"], ["y"], "q"))
        inputs = [value(name, array.dtype, array.shape) for name, array in self.feeds.items()]
        self.model = model(nodes, inputs, [value("y", case["types"][2], (m, n))], constants)
        self.x = next(array for name, array in self.feeds.items() if name in "ab")

    def integers(self, dtype, shape):
        limits = np.iinfo(dtype)
        return self.rng.integers(limits.min, limits.max + 1, shape).astype(dtype)

    def addend(self, constants, nodes, unit):
        """C: int32 with one or several scales, or float32, constant or not."""
        case, rng = self.case, self.rng
        stored = np.asarray(rng.integers(-30, 30, case["c_shape"]) * 1024, np.int32)
        if case["c"] in ("float", "run time"):
            self.c = np.asarray(stored * unit, F)
            (constants if case["c"] == "float" else self.feeds)["cd"] = self.c
            return
        scale, more = np.full((), unit, F), {}
        if case["c"] == "scales":
            axis = int(rng.integers(0, len(case["c_shape"])))
            scale = (unit * 2.0 ** -rng.integers(0, 3, case["c_shape"][axis])).astype(F)
            more = {"axis": axis}
            along = [1] * len(case["c_shape"])
            along[axis] = -1
            self.c = (stored * scale.reshape(along)).astype(F)
        else:
            self.c = (stored * scale).astype(F)
        constants |= {"c": stored, "cs": scale}
        nodes.append(helper.make_node("DequantizeLinear", ["c", "cs"], ["cd"], **more))

    def real(self):
        """The result before its activation, in float64, which is exact here."""
        values = []
        for i, array in enumerate(self.arrays):
            zero, scale = (
                np.asarray(numbers, np.float64) for numbers in (self.zeros[i], self.scales[i])
            )
            if zero.ndim and array.shape[0] == zero.size and self.channel_axis() == 0:
                zero, scale = zero[:, None], scale[:, None]
            values.append((array.astype(np.int64) - zero) * scale)
        a, b = (v.T if turn else v for v, turn in zip(values, self.case["turns"], strict=True))
        y = self.case["alpha"] * (a @ b)
        if self.c is not None and self.case["beta"] != 0:
            y = y + self.case["beta"] * self.c.astype(np.float64)
        return y

    def channel_axis(self):
        turns = self.case["turns"]
        return (1 if turns[0] else 0) if self.case["on_left"] else (0 if turns[1] else 1)

    def wanted(self):
        """The model's output: every number before its rounding is exact, so that there is one right answer."""
        y = self.real()
        if self.case["activation"] == "Relu":
            y = np.maximum(y, 0)
        elif self.case["activation"] == "Clip":
            y = np.clip(y, -5, 20)
        return requantized(y, F(1) / self.y_scale, self.zeros[2], self.case["types"][2])

    def bias_per_channel(self):
        """Whether C is one constant an output channel: a row where B is constant, a column where A is."""
        if self.c is None or self.case["beta"] == 0:
            return True
        m, _, n = self.case["sizes"]
        whole = np.broadcast_to(self.c, (m, n))
        whole = whole.T if self.case["on_left"] else whole
        return self.case["c"] != "run time" and bool(np.all(whole == whole[0]))
