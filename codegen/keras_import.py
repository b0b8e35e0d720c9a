"""Keras models, files and in memory, and SavedModel folders as ONNX models. TensorFlow is imported here alone, late."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from cim.codegen.keras_outputs import name_outputs
from cim.diagnostics import CimError, Diagnostic, Note, error

FILES = (".keras", ".h5", ".hdf5")
OPSET = 17
EXTRA = "pip install 'cim-toolchain[tensorflow]'"
Shapes = Mapping[str, tuple[int, ...]]


def is_keras(source: object) -> bool:
    """Whether it is a Keras model, a file of one, or a SavedModel folder. Imports nothing."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return path.suffix in FILES or (path / "saved_model.pb").exists()
    return any(
        kind.__module__.split(".")[0] in ("keras", "tf_keras") for kind in type(source).__mro__
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing on stderr, unless CIM_DEBUG is set.

    TensorFlow's libraries write of missing GPUs and the like straight to it, whatever their settings are.
    """
    kept = None if os.environ.get("CIM_DEBUG") else _copy_of_stderr()
    if kept is None:
        yield
        return
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _copy_of_stderr() -> int | None:
    """Another file descriptor of stderr, which is flushed; None for a process without stderr."""
    try:
        if sys.stderr is None:
            return None
        sys.stderr.flush()
        return os.dup(2)
    except (OSError, ValueError):  # ValueError: the file object is closed
        return None


@quiet()
def keras_to_onnx(source: Any, input_shapes: Shapes) -> onnx.ModelProto:
    """The ONNX model of a Keras model as it is after training, with inputs and outputs in its own layout.

    `input_shapes` fix inputs of unknown size by name; an unknown first dimension is 1. Raises `CimError` where
    TensorFlow is not installed, the model cannot be read or converted, or a size is unknown.
    """
    where = str(source) if isinstance(source, str | os.PathLike) else str(source.name)
    if isinstance(source, str | os.PathLike) and not Path(source).exists():
        raise error(
            "cannot read: No such file or directory", where=where
        )  # before seconds of imports
    try:
        import tensorflow as tf
        import tf2onnx
    except ImportError as problem:
        raise error(
            f"is a Keras or TensorFlow model, and {problem.name} is not installed",
            where=where,
            notes=[EXTRA],
        ) from None
    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)  # its errors are in ours
    call, inputs, own_names = _function(tf, source, where)

    def listed(*values: Any) -> Any:
        return [
            call(*values)
        ]  # of a dict tf2onnx takes the keys, and stumbles over that of an input

    signature = _signature(tf, inputs, input_shapes, where)
    function = tf.function(listed, input_signature=signature)
    try:
        if _compiled_by_xla(function):
            function = tf.function(listed, input_signature=signature)
            with _functions_inlined(tf):
                function.get_concrete_function()
        made, _ = tf2onnx.convert.from_function(
            function, input_signature=signature, opset=OPSET, custom_rewriter=[_numbers_as_vectors],
            custom_op_handlers={"Erfc": (_erfc, [])},
        )  # fmt: skip
    except Exception as problem:
        raise error(f"tf2onnx cannot convert it: {_first_line(problem)}", where=where) from problem
    _check_operators(made, where)
    _bind_captured(tf, function, made)
    (outputs,) = function.get_concrete_function().structured_outputs
    name_outputs(made.graph, outputs, own_names)
    made.graph.name = where
    return made


def _check_operators(made: onnx.ModelProto, where: str) -> None:
    """Raises `CimError` where tf2onnx has left an operator of TensorFlow as it was."""
    nodes = [node for node in made.graph.node if not node.domain]
    left = sorted({node.op_type for node in nodes if not onnx.defs.has(node.op_type)})
    if not left:
        return
    first = next(node.name for node in nodes if node.op_type == left[0])
    notes = ["use operators that ONNX has; they need not be ones that the cores can run"]
    if left[0].endswith("PartitionedCall"):
        notes = [
            "Keras compiles convolutions with groups by XLA, and a SavedModel keeps them compiled",
            "give the .keras file or the model in memory instead",
        ]
    raise error(
        f"tf2onnx leaves TensorFlow's {', '.join(left)} as it is, first '{first}', which ONNX does not have",
        where=where, notes=notes,
    )  # fmt: skip


def _erfc(graph: Any, node: Any, name: str, _arguments: Any) -> None:
    """Erfc, of which TensorFlow makes the GELU, as 1 - Erf, in tf2onnx's graph."""
    shape, dtype = graph.get_shape(node.output[0]), graph.get_dtype(node.output[0])
    one = np.ones(1, helper.tensor_dtype_to_np_dtype(dtype))
    inputs, outputs = list(node.input), list(node.output)
    graph.remove_node(name)
    erf = graph.make_node("Erf", inputs, shapes=[shape], dtypes=[dtype])
    ones = graph.make_const(f"{name}/one", one)
    graph.make_node(
        "Sub", [ones.output[0], erf.output[0]], outputs=outputs, shapes=[shape], dtypes=[dtype], name=name
    )  # fmt: skip


def _bind_captured(tf: Any, function: Any, made: onnx.ModelProto) -> None:
    """Makes constants of the tensors that a function holds beside its variables, as the mean of a Normalization.

    tf2onnx makes inputs of them.
    """
    held = {
        inside.name: outside.numpy()
        for outside, inside in function.get_concrete_function().graph.captures
        if outside.dtype != tf.resource
    }
    for value in [value for value in made.graph.input if value.name in held]:
        made.graph.initializer.append(numpy_helper.from_array(held[value.name], value.name))
        made.graph.input.remove(value)


def _numbers_as_vectors(graph: Any, nodes: Any) -> Any:
    """Gives constant numbers in sums a dimension, in tf2onnx's graph.

    A number without one, as in the `x + 3` of a hard swish behind a convolution, makes tf2onnx give up moving its
    Transposes, all of them.
    """
    for node in (node for node in nodes if node.type in ("Add", "AddV2")):
        for place, source in enumerate(node.inputs):
            number = source.output[0]
            if source.is_const() and graph.get_rank(number) == 0 and graph.get_rank(node.output[0]):
                array = source.get_tensor_value(as_list=False).reshape(1)
                vector = graph.make_const(f"{node.name}/vector_{place}", array)
                graph.replace_input(node, number, vector.output[0], place)
    return graph.get_nodes()


def _compiled_by_xla(function: Any) -> bool:
    """Whether XLA compiles any part of it, which tf2onnx cannot look into."""
    library = function.get_concrete_function().graph.as_graph_def().library
    return any(inner.attr["_XlaMustCompile"].b for inner in library.function)


@contextmanager
def _functions_inlined(tf: Any) -> Iterator[None]:
    """While it lasts, the functions that a traced one calls are traced as part of it.

    Keras has its convolutions with groups in a function for XLA. Only for models that need it: a function that
    branches on values must be traced on its own.
    """
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


def _function(
    tf: Any, source: Any, where: str
) -> tuple[Any, list[tuple[str, Any, Any]], list[str]]:
    """What to call with the inputs; name, shape (None: unknown) and type of each; names of the outputs, if they have any."""
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        loaded = _read(lambda: tf.saved_model.load(str(source)), where)
        served = getattr(loaded, "signatures", {}).get("serving_default")
        if served is None:
            raise error("the SavedModel has no signature 'serving_default'", where=where)
        specs = served.structured_input_signature[1]
        names = list(specs)

        def call(*values: Any) -> Any:
            _ = loaded  # which holds the variables
            return served(**dict(zip(names, values, strict=True)))

        return call, [(n, _dims(specs[n].shape), specs[n].dtype) for n in names], []
    model = source
    if isinstance(source, str | os.PathLike):
        import keras

        model = _read(lambda: keras.models.load_model(str(source), compile=False), where)
    try:
        tensors = list(model.inputs or ())
    except (AttributeError, ValueError):
        tensors = []
    if not tensors:
        raise error("the model has no inputs yet: build it first, as with model.build((1, 28, 28, 1))", where=where)  # fmt: skip

    def run(*values: Any) -> Any:
        return model(values[0] if len(values) == 1 else list(values), training=False)

    # A Sequential has no names of its own: its output is the last layer's.
    own_names = list(
        getattr(model, "output_names", None) or [layer.name for layer in model.layers[-1:]]
    )
    return run, [(t.name, _dims(t.shape), t.dtype) for t in tensors], own_names


def _dims(shape: Any) -> tuple[int | None, ...] | None:
    return None if getattr(shape, "rank", 0) is None else tuple(shape)


def _read(load: Any, where: str) -> Any:
    try:
        return load()
    except Exception as problem:
        raise error(f"cannot be read: {_first_line(problem)}", where=where) from problem


def _signature(tf: Any, inputs: Any, given: Shapes, where: str) -> list[Any]:
    """The inputs with every size known. Raises `CimError` for all that are not, and for unknown names."""
    names = [name for name, _, _ in inputs]
    problems = [
        Diagnostic(f"--input-shape names '{name}', the model has no such input", where=where, notes=(Note(f"its inputs are: {', '.join(names)}"),))
        for name in given
        if name not in names
    ]  # fmt: skip
    made = []
    for name, shape, dtype in inputs:
        declared = shape
        fixed: tuple[int | None, ...] | None = given.get(name)
        if fixed is None and declared is not None:
            fixed = tuple(1 if i == 0 and size is None else size for i, size in enumerate(declared))
        shown = "unknown" if declared is None else "x".join("?" if size is None else str(size) for size in declared)  # fmt: skip
        if fixed is None or None in fixed:
            note = Note(f"fix it with --input-shape {name}=1x224x224x3 (its own numbers)")
            problems.append(Diagnostic(f"the shape of input '{name}' is {shown}", where=where, notes=(note,)))  # fmt: skip
        elif declared is not None and not _fits(fixed, declared):
            asked = "x".join(map(str, fixed))
            problems.append(Diagnostic(f"--input-shape gives '{name}' as {asked}, the model has it as {shown}", where=where))  # fmt: skip
        else:
            made.append(tf.TensorSpec(fixed, dtype, name=name))
    if problems:
        raise CimError(problems)
    return made


def _fits(fixed: tuple[int | None, ...], declared: tuple[int | None, ...]) -> bool:
    return len(fixed) == len(declared) and all(
        size is None or size == own for own, size in zip(fixed, declared, strict=True)
    )


def _first_line(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines()
    return lines[0] if lines else type(problem).__name__
