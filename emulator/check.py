"""`--check`: outputs against the NumPy reference of each layer, and a network against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.image import Image, digest
from cim.asm.network_file import Network
from cim.diagnostics import CimError, Diagnostic, ExitCode, Note, error
from cim.emulator.errors import SAME_RUN
from cim.emulator.host import layer_of
from cim.files import read_bytes
from cim.isa.reference import reference_output

# f32 sums in another order than the reference, which accumulates in float64.
FLOAT_TOLERANCE = 1e-4
# A network is compared with onnxruntime, which computes quantized layers in float and so differs by one
# step on ties; what such steps may do to an output, relative to its largest value.
NETWORK_TOLERANCE = {"f32": 1e-4, "quantized": 5e-2}
# Of a quantized output, whose values may all be as small as a few steps.
STEPS = 2


class Mismatch(CimError):
    """A comparison that was asked for has failed."""

    exit_code = ExitCode.MISMATCH


def check_layer(image: Image, x: NDArray[Any], y: NDArray[Any]) -> None:
    """Compare a layer's output with the NumPy reference: bit for bit, in mode f32 within 1e-4 relative.

    `x` and `y` may be a batch. Raises `Mismatch` with the first differing index and both values, `CimError`
    for a reference that is not the cfg's.
    """
    layer, config = layer_of(image), image.config
    path = image.path.with_name(layer.reference.path)
    model = read_bytes(path)
    if digest(model) != layer.reference.digest:
        raise error(
            f"SHA-256 is {digest(model)[:16]}…, {image.path.name} names {layer.reference.digest[:16]}…",
            where=str(path),
            notes=[SAME_RUN],
        )
    crossbar = (config.machine.core.outputs, config.machine.core.inputs)
    # Rows are one image for the reference, however many of them; images of a convolution it takes at once.
    whole = layer.layout == "NCHW"
    for index, one in enumerate([x] if whole else x.reshape(-1, *layer.input_shape)):
        try:
            want = reference_output(layer, config.mode, config.ofm, model, one, crossbar)
        except (ValueError, KeyError, IndexError) as problem:
            raise error(
                f"the .layer does not describe its reference: {problem}", where=str(image.path)
            ) from None
        got = y if whole else y.reshape(-1, *layer.output_shape)[index]
        if config.mode == "f32":
            scale = _scale(want)
            bad = _differ(got, want, FLOAT_TOLERANCE * scale)
            rule = f"within {FLOAT_TOLERANCE:g} of the largest value"
        else:
            bad, rule = got != want, "bit for bit"
        if bad.any():
            raise _mismatch(
                f"layer '{layer.name}' differs from the NumPy reference",
                got, want, bad, rule, str(image.path),
            )  # fmt: skip


def check_network(
    network: Network, session: Any, inputs: dict[str, NDArray[Any]], outputs: dict[str, NDArray[Any]],
    quantized: bool, where: str, steps: Mapping[str, float],
) -> None:  # fmt: skip
    """Compare a network's outputs for one image with onnxruntime on the whole model.

    Tolerance: 1e-4 of the output's largest value for a float model; 5e-2 for a quantized one, and at least
    two steps of an output that comes out of a DequantizeLinear (`steps`, by name). Raises `Mismatch`.
    """
    names = [tensor.name for tensor in network.outputs]
    try:
        wanted = session.run(names, inputs)
    except Exception as problem:
        first = str(problem).strip().split("\n")[0]
        raise error(
            f"onnxruntime cannot run the model to compare with: {first}", where=where
        ) from problem
    tolerance = NETWORK_TOLERANCE["quantized" if quantized else "f32"]
    for name, want in zip(names, wanted, strict=True):
        got = outputs[name]
        scale = _scale(want)
        bad = _differ(got, want, max(tolerance * scale, STEPS * steps.get(name, 0.0)))
        if bad.any():
            rule = f"within {tolerance:g} of the largest value"
            if name in steps:
                rule += f" or {STEPS} steps of {steps[name]:g}"
            raise _mismatch(
                f"output '{name}' differs from onnxruntime", got, want, bad, rule, where
            )


def output_steps(model: bytes) -> dict[str, float]:
    """The scale of each output of a model that comes out of a DequantizeLinear with one constant scale."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load_model_from_string(model).graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    outputs = {value.name for value in graph.output}
    steps = {}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[1] in constants:
            scale = numpy_helper.to_array(constants[node.input[1]])
            for name in outputs.intersection(node.output):
                if scale.size == 1:
                    steps[name] = float(scale.reshape(()))
    return steps


def _scale(want: NDArray[Any]) -> float:
    """The largest finite magnitude, which tolerances are relative to."""
    values = np.abs(want.astype(np.float64))
    return max(float(values[np.isfinite(values)].max(initial=0.0)), 1e-30)


def _differ(got: NDArray[Any], want: NDArray[Any], tolerance: float) -> NDArray[np.bool_]:
    """Where two arrays differ by more than the tolerance; NaN equals NaN, infinities themselves."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= tolerance
    return np.asarray(~(near | (a == b) | (np.isnan(a) & np.isnan(b))))


def _mismatch(
    what: str, got: NDArray[Any], want: NDArray[Any], bad: NDArray[np.bool_], rule: str, where: str
) -> Mismatch:
    first = tuple(int(i) for i in np.argwhere(bad)[0])
    notes: Sequence[Note] = (
        Note(f"{int(bad.sum())} of {bad.size} values differ, compared {rule}"),
    )
    message = f"{what}, first at {list(first)}: {got[first]}, must be {want[first]}"
    return Mismatch([Diagnostic(message, where=where, notes=tuple(notes))])
