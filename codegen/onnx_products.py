"""MatMul, MatMulInteger and QLinearMatMul in every form, as products x W with one matrix W each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_rewrite import Replacement


@dataclass(frozen=True)
class Slots:
    """The input numbers of the two operands, and of the scale and zero point of each (-1: none)."""

    left: int
    right: int
    left_numbers: tuple[int, int]
    right_numbers: tuple[int, int]


SLOTS = {
    "MatMul": Slots(0, 1, (-1, -1), (-1, -1)),
    "MatMulInteger": Slots(0, 1, (-1, 2), (-1, 3)),
    "QLinearMatMul": Slots(0, 3, (1, 2), (4, 5)),
}


@dataclass(frozen=True)
class Operands:
    """A product with one constant operand, and what makes the node: inputs by number, the rest as given."""

    operator: str
    x: str
    weights: NDArray[Any]
    on_left: bool
    inputs: dict[int, str]
    output: str


def product(graph: Graph, node: Node) -> Replacement | None:
    """Replaces a product whose constant is on the left, is no single matrix, or meets a vector."""
    made = Replacement(graph, node)
    operands = _operands(graph, node) or _dequantized(graph, node, made)
    if operands is None:
        return None
    x_shape, element = graph.type(operands.x).shape, graph.type(operands.x).dtype
    w_shape = operands.weights.shape
    if element is None or (element != np.float32 and operands.operator == "MatMul"):
        return None
    if x_shape is None or not x_shape or not w_shape or 0 in (*x_shape, *w_shape):
        return None
    plain = not operands.on_left and len(w_shape) == 2 and len(x_shape) >= 2
    shape = matmul_shape(*((w_shape, x_shape) if operands.on_left else (x_shape, w_shape)))
    if plain or shape is None:
        return None
    return made if _Product(made, operands).write(x_shape, shape) else None


def _operands(graph: Graph, node: Node) -> Operands | None:
    slots = SLOTS[node.operator]
    left, right = node.input(slots.left), node.input(slots.right)
    if graph.is_constant(left) == graph.is_constant(right):
        return None
    on_left = graph.is_constant(left)
    weights = graph.constant(left if on_left else right)
    assert weights is not None
    inputs = {i: name for i, name in enumerate(node.proto.input) if name}
    return Operands(
        node.operator, right if on_left else left, weights, on_left, inputs, node.outputs[0]
    )


def _dequantized(graph: Graph, node: Node, made: Replacement) -> Operands | None:
    """A MatMul of two DequantizeLinear, one of a constant, before a QuantizeLinear: a QLinearMatMul."""
    after = graph.sole_consumer(node.outputs[0])
    left, right = (graph.producer.get(node.input(i)) for i in (0, 1))
    if node.operator != "MatMul" or left is None or right is None or after is None:
        return None
    operators = (left.operator, right.operator, after.operator)
    if operators != ("DequantizeLinear", "DequantizeLinear", "QuantizeLinear"):
        return None
    if not all(graph.is_constant(name) for name in after.proto.input[1:] if name):
        return None  # which may be made later
    on_left = graph.is_constant(left.input(0))
    if on_left == graph.is_constant(right.input(0)):
        return None
    constant = left if on_left else right
    weights, scale = graph.constant(constant.input(0)), graph.constant(constant.input(1))
    assert weights is not None
    # The scales of the constant must lie along its rows (left) or columns (right).
    last = -2 if on_left else -1
    along = constant.attribute("axis", 1) in (last, last + weights.ndim)
    if scale is None or (scale.size > 1 and not along):
        return None
    inputs: dict[int, str] = {}
    for first, source, target in (
        (0, left, left.input(0)), (3, right, right.input(0)), (5, after, after.outputs[0]),
    ):  # fmt: skip
        element = graph.type(target).dtype
        if element is None or element.itemsize != 1 or source.attribute("block_size", 0):
            return None
        if source is not after:
            inputs[first] = source.input(0)
        inputs[first + 1] = source.input(1)
        inputs[first + 2] = source.input(2) or made.constant(np.zeros((), element), "zero_point")
    made.also.append(after)
    x = (right if on_left else left).input(0)
    return Operands("QLinearMatMul", x, weights, on_left, inputs, after.outputs[0])


def matmul_shape(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of a product as NumPy and ONNX define it; None where there is none."""
    a = (1, *left) if len(left) == 1 else left
    b = (*right, 1) if len(right) == 1 else right
    if a[-1] != b[-2]:
        return None
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        return None
    return batch + (a[-2:-1] if len(left) > 1 else ()) + (b[-1:] if len(right) > 1 else ())


class _Product:
    """Writes x @ w, w being the constant turned to the right: [..., M, K] @ [..., K, N]."""

    def __init__(self, made: Replacement, operands: Operands) -> None:
        self.made = made
        self.operands = operands
        slots = SLOTS[operands.operator]
        by_side = (slots.left_numbers, slots.right_numbers)
        self.x_numbers = by_side[1 if operands.on_left else 0]
        self.w_numbers = by_side[0 if operands.on_left else 1]
        w = operands.weights
        if operands.on_left:
            w = np.swapaxes(w.reshape(1, -1) if w.ndim == 1 else w, -1, -2)
        self.w = w.reshape(-1, 1) if w.ndim == 1 else w

    def write(self, x_shape: tuple[int, ...], shape: tuple[int, ...]) -> bool:
        """Whether it could be written; `shape` is that of the result."""
        made, x, on_left = self.made, self.operands.x, self.operands.on_left
        if len(x_shape) == 1:
            x_shape = (1, *x_shape)
            x = made.reshape(x, x_shape)
        elif on_left:
            x, x_shape = self._transposed(x, x_shape)
        if self.w.ndim > len(x_shape) and self._matrices() > 1:
            x_shape = (1,) * (self.w.ndim - len(x_shape)) + x_shape
            x = made.reshape(x, x_shape)
        self.w = self.w.reshape((1,) * (len(x_shape) - self.w.ndim) + self.w.shape)
        done = (
            self._one(x, (), made.node.name)
            if self._matrices() == 1
            else self._batch(x, x_shape, ())
        )
        if done is None:
            return False
        batch = (
            x_shape[:-2]
            if self._matrices() == 1
            else np.broadcast_shapes(x_shape[:-2], self.w.shape[:-2])
        )
        found: tuple[int, ...] = (*batch, x_shape[-2], self.w.shape[-1])
        if on_left:
            done, found = self._transposed(done, found)
        if found != shape:
            done = made.reshape(done, shape)
        made.end(done, self.operands.output)
        return True

    def _matrices(self) -> int:
        return int(np.prod(self.w.shape[:-2], dtype=np.int64))

    def _transposed(self, value: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        rank = len(shape)
        order = [*range(rank - 2), rank - 1, rank - 2]
        return self.made.add("Transpose", [value], perm=order), (*shape[:-2], shape[-1], shape[-2])

    def _batch(self, x: str, x_shape: tuple[int, ...], index: tuple[int, ...]) -> str | None:
        """The products of one entry `index` of the leading axes, joined along the others."""
        made, axis = self.made, len(index)
        if axis == self.w.ndim - 2:
            name = made.graph.unused(f"{made.node.name}/{'_'.join(map(str, index))}")
            return self._one(x, index, name)
        parts = []
        for entry in range(self.w.shape[axis]):
            piece = x
            if x_shape[axis] > 1 and self.w.shape[axis] > 1:
                at = made.constant(np.array([entry], np.int64), "entry")
                piece = made.add("Gather", [x, at], axis=axis)
            done = self._batch(piece, x_shape, (*index, entry))
            if done is None:
                return None
            parts.append(done)
        return parts[0] if len(parts) == 1 else made.add("Concat", parts, axis=axis)

    def _one(self, x: str, index: tuple[int, ...], name: str) -> str | None:
        """The product with one matrix."""
        operands, slots = self.operands, SLOTS[self.operands.operator]
        matrix = self.w[index] if index else self.w
        inputs = dict(operands.inputs)
        inputs[slots.left] = x
        inputs[slots.right] = self.made.constant(matrix.reshape(self.w.shape[-2:]), "matrix")
        for side, numbers in ((slots.left_numbers, self.x_numbers), (slots.right_numbers, self.w_numbers)):  # fmt: skip
            for target, source in zip(side, numbers, strict=True):
                given = operands.inputs.get(source, "")
                own = self._own_numbers(given, index) if side == slots.right_numbers else given
                if own is None:
                    return None
                inputs[target] = own
        inputs.pop(-1, None)
        names = [inputs.get(i, "") for i in range(max(i for i, n in inputs.items() if n) + 1)]
        return self.made.add(operands.operator, names, name=name)

    def _own_numbers(self, name: str, index: tuple[int, ...]) -> str | None:
        """Scale or zero point of one matrix; None where they do not lie along its columns."""
        array = self.made.graph.constant(name) if name else None
        if array is None or array.size == 1:
            return name
        columns = self.w.shape[-1]
        flat = array if array.ndim == 1 else array.reshape(*array.shape[:-2], -1)
        try:
            every = np.broadcast_to(flat, (*self.w.shape[:-2], columns))
        except ValueError:
            return None
        own = every[index] if index else every.reshape(-1, columns)[0]
        return self.made.constant(own.reshape(columns), "numbers")
