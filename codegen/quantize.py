"""Static quantization of a float model to int8 by onnxruntime's quantizer, from a few inputs to calibrate with."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import version_converter

from cim.codegen.onnx_graph import STANDARD_DOMAINS, Graph
from cim.codegen.onnx_load import only_moved
from cim.diagnostics import error

OPSET = 13  # since then a DequantizeLinear has scales per channel
Arrays = Mapping[str, NDArray[Any]]
QUANTIZED = re.compile(
    r"(com\.microsoft\.)?(QLinear.*|QGemm)|(Dynamic|De)?[Qq]uantizeLinear|.*Integer"
)


def read_calibration(path: str | Path) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """An array for a model's one input from a `.npy`, or arrays by input from a `.npz`. Raises `CimError`."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except OSError as problem:
        raise error(f"cannot read: {problem.strerror or problem}", where=str(path)) from None
    except ValueError as problem:
        raise error(f"is not a .npy or .npz file: {problem}", where=str(path)) from None


def quantized(graph: Graph, calibration: NDArray[Any] | Arrays) -> onnx.ModelProto:
    """The model with QuantizeLinear and DequantizeLinear: uint8 activations, int8 weights per channel.

    `calibration` has one input or more along its leading axis, for each input of the model. Raises `CimError` for
    arrays that do not fit the inputs, a model that is quantized already, and what the quantizer refuses.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.onnx_model import ONNXModel
    from onnxruntime.quantization.shape_inference import quant_pre_process

    found = next(
        (n for n in graph.nodes if "Linear" in n.operator or "Integer" in n.operator), None
    )
    if found is not None:
        raise error(
            f"is quantized already: it has {found.operator} '{found.name}'", where=graph.path
        )
    reader = _Reader(list(_feeds(graph, calibration)))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("float.onnx", "prepared.onnx", "int8.onnx")]
        model = only_moved(graph).named_model()  # a bias or activation behind a Squeeze too
        try:
            if any(o.domain in STANDARD_DOMAINS and o.version < OPSET for o in model.opset_import):
                model = version_converter.convert_version(model, OPSET)
            ONNXModel(model).clean_initializers()  # onnxruntime warns of each that is not used
            onnx.save(model, str(paths[0]))
            quant_pre_process(str(paths[0]), str(paths[1]), skip_symbolic_shape=True)
            quantize_static(
                str(paths[1]), str(paths[2]), reader, quant_format=QuantFormat.QDQ, per_channel=True,
                activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
            )  # fmt: skip
            made = onnx.load(str(paths[2]))
        except Exception as problem:
            lines = str(problem).strip().splitlines() or [type(problem).__name__]
            raise error(
                f"onnxruntime cannot quantize it: {lines[0]}", where=graph.path
            ) from problem
    made.graph.name = graph.path
    return made


def _feeds(graph: Graph, calibration: NDArray[Any] | Arrays) -> Iterator[dict[str, NDArray[Any]]]:
    """The inputs of one run after another."""
    if isinstance(calibration, Mapping):
        arrays = dict(calibration)
    elif len(graph.inputs) == 1:
        arrays = {graph.inputs[0]: calibration}
    else:
        raise error(
            f"the model has {len(graph.inputs)} inputs: calibrate with arrays by name ({', '.join(graph.inputs)})",
            where=graph.path, notes=['numpy.savez("calib.npz", NAME=array, ...)'],
        )  # fmt: skip
    counts: list[int] = []
    for name in graph.inputs:
        if name not in arrays:
            raise error(f"nothing to calibrate input '{name}' with", where=graph.path)
        known, array = graph.type(name), np.asarray(arrays[name])
        shape = known.shape or (1,)
        fits = array.shape[1:] == shape[1:] and len(array) and len(array) % shape[0] == 0
        if array.dtype != known.dtype or not fits:
            raise error(
                f"input '{name}' is calibrated with {'x'.join(map(str, array.shape))} {array.dtype}, must be one or more times "
                f"{'x'.join(map(str, shape))} {known.dtype} along the first axis", where=graph.path,
            )  # fmt: skip
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise error(
                f"what input '{name}' is calibrated with has NaN or infinity", where=graph.path
            )
        counts.append(len(array) // shape[0])
    for index in range(min(counts, default=0)):
        yield {
            name: np.ascontiguousarray(np.array_split(arrays[name], count)[index])
            for name, count in zip(graph.inputs, counts, strict=True)
        }


class _Reader:
    """What the quantizer takes its inputs from."""

    def __init__(self, feeds: list[dict[str, NDArray[Any]]]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        """The next inputs, None at the end."""
        return next(self._feeds, None)
