"""Reading an ONNX file: checked, with its external data, input shapes fixed, the rest inferred."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

import onnx
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from onnx import checker, external_data_helper, inliner, shape_inference

from cim.codegen.onnx_custom import add_custom_types
from cim.codegen.onnx_fold import drop_identities, fold_constants
from cim.codegen.onnx_forms import MOVES, REWRITERS
from cim.codegen.onnx_graph import STANDARD_DOMAINS, Graph, fixed_shape
from cim.codegen.onnx_reasons import ON_HOST, Why
from cim.codegen.onnx_rewrite import Rewriter, rewritten
from cim.codegen.onnx_twice import share_products
from cim.diagnostics import CimError, Diagnostic, Note, did_you_mean, error
from cim.files import read_bytes

OLDEST_OPSET = 7
FIRST_IR_WITH_FREE_INITIALIZERS = 4


def load_graph(
    source: str | os.PathLike[str] | onnx.ModelProto,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    host: Collection[str] = (),
) -> Graph:
    """Read a model from its file, or take one that is in memory, which stays as it is.

    `host` names matrix operators that stay on the host. `dims` gives values to symbolic dimensions,
    `input_shapes` whole shapes to inputs. A symbolic first dimension that neither fixes is 1. Raises `CimError`
    for a file that cannot be read, is no ONNX, has another opset, lacks its external data or fails the ONNX
    checker, for names that the model does not have or that are no matrix operator's, and for every dimension
    that is still unknown.
    """
    if isinstance(source, onnx.ModelProto):
        name = source.graph.name or "model"
        copied = onnx.ModelProto()
        copied.CopyFrom(source)
        model = checked_model(copied, name, ".")
    else:
        name = str(source)
        model = parse_model(read_bytes(name), name, str(Path(name).resolve().parent))
    return build_graph(model, name, dims or {}, input_shapes or {}, host)


def build_graph(
    model: onnx.ModelProto,
    path: str,
    dims: Mapping[str, int],
    input_shapes: Mapping[str, tuple[int, ...]],
    host: Collection[str] = (),
) -> Graph:
    """The graph of a checked model, which is changed; `path` names it in messages.

    Raises `CimError` as `load_graph` does for shapes, and for a name in `host` that is no matrix operator's.
    """
    _drop_constant_inputs(model)
    model = _infer(_fix_shapes(model, path, dims, input_shapes), path)
    while fold_constants(model):  # a folded Reshape shape lets inference reach further
        model = _infer(model, path)
    drop_identities(model)
    share_products(model)
    graph = Graph(model, path, dict.fromkeys(host, ON_HOST))
    _require_nodes(graph)
    return _rewritten(graph)


def _rewritten(graph: Graph) -> Graph:
    return _rewritten_by(REWRITERS, _rewritten_by(MOVES, graph))


def _rewritten_by(rewriters: dict[str, Rewriter], graph: Graph) -> Graph:
    return rewritten(graph, rewriters, lambda changed: _infer(changed, graph.path))


def only_moved(graph: Graph) -> Graph:
    """The graph as it was given, with nodes moved but not rewritten, as a graph that is given like that."""
    moved = _rewritten_by(MOVES, Graph(graph.given, graph.path, graph.host))
    return Graph(moved.model, graph.path, graph.host)


def with_more_on_host(graph: Graph, host: Mapping[str, Why]) -> Graph:
    """The graph with further nodes left as the model has them; `host` says why each is."""
    return _rewritten(Graph(graph.given, graph.path, {**graph.host, **host}))


def _require_nodes(graph: Graph) -> None:
    """Every name in `host` must be a matrix operator's; other nodes follow their layer, or run on the host anyway."""
    operators = {node.name: node.operator for node in graph.nodes}
    problems = []
    for name in sorted(graph.host):
        if name not in operators:
            wrong = f"the model has no such node{did_you_mean(name, operators)}"
        elif operators[name] not in REWRITERS:
            wrong = f"a {operators[name]}, must be a matrix operator: {', '.join(REWRITERS)}"
        else:
            continue
        problems.append(Diagnostic(f"--host names '{name}', {wrong}", where=graph.path))
    if problems:
        raise CimError(problems)


def parse_model(content: bytes, path: str, folder: str) -> onnx.ModelProto:
    """A checked model from the bytes of a file; its external data is looked for in `folder`."""
    try:
        model = onnx.load_model_from_string(content)
    except DecodeError:
        raise error("is not an ONNX model", where=path) from None
    return checked_model(model, path, folder)


def checked_model(model: onnx.ModelProto, path: str, folder: str) -> onnx.ModelProto:
    """A model, which is changed, after all checks; its external data is looked for in `folder`."""
    if not model.HasField("graph") or not model.ir_version:
        raise error("is not an ONNX model: it holds no graph", where=path)
    if not model.graph.output:
        raise error("it has no outputs, so that there is nothing to compute", where=path)
    bad = _text_that_is_no_utf8(model)
    if bad is not None:
        raise error(f"it holds text that is not UTF-8: {bad!r}", where=path)
    _check_opset(model, path)
    try:
        external_data_helper.load_external_data_for_model(model, folder)
    except (checker.ValidationError, OSError, ValueError) as problem:
        raise error(
            f"its external data cannot be read: {_first_line(problem)}",
            where=path,
            notes=["external data is looked for beside the model"],
        ) from problem
    _check(model, path)
    if model.functions:
        model = inliner.inline_local_functions(model)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                raise error(
                    f"attribute '{attribute.name}' of {node.op_type} '{node.name}' is that of a function, "
                    f"'{attribute.ref_attr_name}', must be a value outside of one",
                    where=path,
                )
    return model


def _text_that_is_no_utf8(message: Message) -> bytes | None:
    """The first text in a message or in what it holds that protobuf could only give as bytes."""
    for described, value in message.ListFields():
        if described.name == "doc_string":
            continue
        if described.type == FieldDescriptor.TYPE_STRING:
            texts = [value] if isinstance(value, str | bytes) else value
            bad = next((text for text in texts if isinstance(text, bytes)), None)
        elif described.type == FieldDescriptor.TYPE_MESSAGE:
            parts = [value] if isinstance(value, Message) else value
            found = (_text_that_is_no_utf8(part) for part in parts)
            bad = next((text for text in found if text is not None), None)
        else:
            continue
        if bad is not None:
            return bytes(bad)
    return None


def _drop_constant_inputs(model: onnx.ModelProto) -> None:
    """A graph input with an initializer is a constant."""
    graph = model.graph
    names = {tensor.name for tensor in graph.initializer}
    kept = [value for value in graph.input if value.name not in names]
    del graph.input[:]
    graph.input.extend(kept)
    model.ir_version = max(model.ir_version, FIRST_IR_WITH_FREE_INITIALIZERS)


def _check_opset(model: onnx.ModelProto, path: str) -> None:
    newest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in STANDARD_DOMAINS and not OLDEST_OPSET <= opset.version <= newest:
            raise error(
                f"its opset is {opset.version}; {OLDEST_OPSET} to {newest} are supported",
                where=path,
                notes=["onnx.version_converter converts between opsets"],
            )


def _check(model: onnx.ModelProto, path: str) -> None:
    """The ONNX checker, except that a graph output may leave out its shape."""
    shapeless = [
        value.type.tensor_type
        for value in model.graph.output
        if value.type.WhichOneof("value") == "tensor_type"
        and not value.type.tensor_type.HasField("shape")
    ]
    for tensor in shapeless:
        tensor.shape.SetInParent()
    try:
        checker.check_model(model)
    except (checker.ValidationError, ValueError) as problem:
        raise error(f"the ONNX checker rejects it: {_first_line(problem)}", where=path) from problem
    for tensor in shapeless:
        tensor.ClearField("shape")


def _fix_shapes(
    model: onnx.ModelProto,
    path: str,
    dims: Mapping[str, int],
    input_shapes: Mapping[str, tuple[int, ...]],
) -> onnx.ModelProto:
    inputs = {value.name: value for value in model.graph.input}
    symbols = {d.dim_param for v in inputs.values() for d in v.type.tensor_type.shape.dim}
    problems = [
        _unknown("--input-shape", name, inputs, "input")
        for name in input_shapes
        if name not in inputs
    ]
    problems += [
        _unknown("--dim", name, symbols - {""}, "symbolic dimension")
        for name in dims
        if name not in symbols
    ]
    for name, value in inputs.items():
        if value.type.WhichOneof("value") == "tensor_type":
            problems += _fix_input(value, dims, input_shapes.get(name))
    if problems:
        raise CimError(
            Diagnostic(message, where=path, notes=tuple(Note(note) for note in notes))
            for message, notes in problems
        )
    return model


Problem = tuple[str, list[str]]


def _unknown(flag: str, name: str, known: Mapping[str, object] | set[str], what: str) -> Problem:
    names = ", ".join(sorted(known)) or "none"
    return f"{flag} names '{name}', the model has no such {what}{did_you_mean(name, known)}", [
        f"its {what}s are: {names}"
    ]


def _fix_input(
    value: onnx.ValueInfoProto, dims: Mapping[str, int], given: tuple[int, ...] | None
) -> list[Problem]:
    """Give every dimension of an input a value; what is wrong or still unknown."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        if given is None:
            fix = f"fix it with --input-shape {value.name}=1x3x224x224 (its own numbers)"
            return [(f"input '{value.name}' has no shape", [fix])]
        for _ in given:
            tensor.shape.dim.add()
    declared = [_spell(d) for d in tensor.shape.dim]
    shown = "x".join(declared)
    if given is not None and len(given) != len(declared):
        asked = "x".join(map(str, given))
        return [(f"--input-shape gives '{value.name}' as {asked}, the model has it as {shown}", [])]
    problems: list[Problem] = []
    for axis, dim in enumerate(tensor.shape.dim):
        known = dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None
        size = given[axis] if given is not None else known
        if size is None:
            size = dims.get(dim.dim_param, 1 if axis == 0 else None)
        if size is None:
            named = dim.dim_param.isidentifier()  # a name like ? may stand for different sizes
            by_name = f"--dim {dim.dim_param}=VALUE or " if named else ""
            problems.append(
                (
                    f"dimension {axis} of input '{value.name}' ({shown}) has no size",
                    [f"fix it with {by_name}--input-shape {value.name}={shown} with numbers in it"],
                )
            )
        elif size < 1:
            problems.append(
                (f"dimension {axis} of input '{value.name}' is {size}, must be >= 1", [])
            )
        elif known is not None and size != known:
            problems.append(
                (
                    f"dimension {axis} of '{value.name}' is {known}, --input-shape gives {size}",
                    [],
                )
            )
        else:
            dim.dim_value = size
    return problems


def _spell(dim: onnx.TensorShapeProto.Dimension) -> str:
    if dim.HasField("dim_value") and dim.dim_value > 0:
        return str(dim.dim_value)
    return dim.dim_param or "?"


def _infer(model: onnx.ModelProto, path: str) -> onnx.ModelProto:
    """Shapes from the fixed inputs onwards.

    What the file says about values in between may date from other input sizes. It is only used for
    a value that inference does not reach.
    """
    graph = model.graph
    declared = {value.name: value for value in (*graph.value_info, *graph.output)}
    declared = {
        name: onnx.ValueInfoProto.FromString(v.SerializeToString()) for name, v in declared.items()
    }
    del graph.value_info[:]
    for output in graph.output:
        if output.type.WhichOneof("value") == "tensor_type":
            output.type.tensor_type.ClearField("shape")
    model = _inferred(model, path)
    found = {v.name for v in model.graph.value_info if fixed_shape(v) is not None}
    missing = {
        name: value
        for name, value in declared.items()
        if name not in found and fixed_shape(value) is not None
    }
    outputs = {value.name for value in model.graph.output}
    for output in model.graph.output:
        if output.name in missing and fixed_shape(output) is None:
            output.CopyFrom(missing[output.name])
    known = [v for v in model.graph.value_info if v.name not in missing]
    del model.graph.value_info[:]
    model.graph.value_info.extend(known)
    model.graph.value_info.extend(v for name, v in missing.items() if name not in outputs)
    model = _inferred(model, path) if missing else model
    return _inferred(model, path) if add_custom_types(model) else model


def _inferred(model: onnx.ModelProto, path: str) -> onnx.ModelProto:
    try:
        return shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except (shape_inference.InferenceError, ValueError) as problem:
        raise error(f"its shapes do not fit: {_first_line(problem)}", where=path) from problem


def _first_line(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines()
    return lines[0] if lines else type(problem).__name__
