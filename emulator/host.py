"""The host CPU's part of a layer: from the model's input to the IFM region, and from the OFM region back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.image import Image, LayerDescription, Region
from cim.diagnostics import error
from cim.emulator.prepare import Prepared
from cim.emulator.run import Progress, Result, Sink, execute, shown_after
from cim.isa.machine import Machine
from cim.isa.numerics import DTYPES


@dataclass(frozen=True)
class LayerRun:
    """The output of a layer and the runs that made it, one an image of the batch."""

    output: NDArray[Any]
    results: list[Result]


def layer_of(image: Image) -> LayerDescription:
    """The description of the image's layer. Raises `CimError` for a hand-written image without one."""
    if image.config.layer is None:
        raise error(
            "has no layer: there is no input or output that --input and --output could convert",
            where=str(image.path),
            notes=["use --load REGION=FILE.npy and --dump REGION=FILE.npy"],
        )
    return image.config.layer


def batch_size(image: Image, x: NDArray[Any]) -> int:
    """The number of images in `x`.

    A convolution takes any number of images, whatever the model's own; rows are one image, and more
    where the leading dimension is 1. Raises `CimError` that names both shapes and types if `x` is no input
    of the layer.
    """
    layer = layer_of(image)
    dtype = DTYPES[image.config.region("ifm").type]
    shape = tuple(layer.input_shape)
    images = len(shape) > 1 and (layer.layout == "NCHW" or shape[0] == 1)
    batched = images and x.shape[1:] == shape[1:] and len(x) > 0
    if x.dtype != dtype or (x.shape != shape and not batched):
        raise error(
            f"input must be {_shown(shape)} {dtype.name}, not {_shown(x.shape)} {x.dtype.name}",
            where=str(image.path), notes=input_hints(shape, x, dtype.name),
        )  # fmt: skip
    return len(x) if batched else 1


def input_hints(shape: tuple[int, ...], x: NDArray[Any], dtype: str) -> list[str]:
    """What to do about an input of another shape or type."""
    hints = []
    if x.dtype.name != dtype:
        hints.append(f"convert it: numpy.save('x.npy', x.astype('{dtype}'))")
    if shape and shape[0] == 1 and x.shape[1:] != shape[1:]:
        hints.append("the first dimension may have any size, the others may not")
    return hints


def images_of(image: Image, x: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The images of a batch one by one, each with a leading dimension of 1, or all rows. Raises as `batch_size`."""
    layer, count = layer_of(image), batch_size(image, x)
    shape = [1, *layer.input_shape[1:]] if layer.layout == "NCHW" else layer.input_shape
    yield from x.reshape(count, *shape)


def to_ifm(image: Image, x: NDArray[Any]) -> NDArray[Any]:
    """What the host writes to region `ifm` for one input: [Hp][Wp][C], the padding at its zero point.

    `x` is one image, [1, C, H, W] or [1, C, W], or all rows. Raises `CimError` for another shape or type.
    """
    layer = layer_of(image)
    count = batch_size(image, x)
    if count != 1:
        raise error(f"to_ifm takes one image, not {count}", where=str(image.path))
    region = image.config.region("ifm")
    if layer.layout == "ROWS":
        rows = np.ascontiguousarray(x).reshape(-1, 1, x.shape[-1])
    else:
        top, left, bottom, right = layer.pads
        rows = np.pad(
            x.reshape(x.shape[1], -1, x.shape[-1]).transpose(1, 2, 0),
            ((top, bottom), (left, right), (0, 0)),
            constant_values=region.zero_point,
        )
    if list(rows.shape) != region.shape:
        raise error(
            f"region ifm is {_shown(region.shape)}, the layer's padded input {_shown(rows.shape)}",
            where=str(image.path),
        )
    return np.ascontiguousarray(rows)


def from_ofm(image: Image, memory: NDArray[np.uint8]) -> NDArray[Any]:
    """The layer's output for one image in the model's own shape and type, from shared memory."""
    layer = layer_of(image)
    values = read_region(image, memory, image.config.region("ofm"))
    shape = tuple(layer.output_shape)
    if layer.layout == "ROWS":
        return values.reshape(shape)
    _, channels, *size = shape
    vectors = values.reshape(-1, channels)
    return np.ascontiguousarray(vectors.T).reshape(1, channels, *size)


def read_region(image: Image, memory: NDArray[np.uint8], region: Region) -> NDArray[Any]:
    """The elements of a region in its shape. Raises `CimError` if its shape is larger than itself."""
    dtype = DTYPES[region.type]
    size = int(np.prod(region.shape, dtype=np.int64)) * dtype.itemsize
    if size > region.size_bytes:
        raise error(
            f"region {region.name} has {region.size_bytes} bytes, too few for {_shown(region.shape)} "
            f"{dtype.name}",
            where=str(image.path),
        )
    raw = memory[region.address : region.address + size].tobytes()
    return np.frombuffer(raw, dtype=dtype).reshape(region.shape).astype(dtype.newbyteorder("="))


def write_region(
    image: Image, memory: NDArray[np.uint8], region: Region, values: NDArray[Any]
) -> None:
    """Put an array into a region of the same shape and type; `CimError` names both if they differ."""
    dtype = DTYPES[region.type]
    if values.dtype != dtype or list(values.shape) != region.shape:
        raise error(
            f"region {region.name} must be {_shown(region.shape)} {dtype.name}, not "
            f"{_shown(values.shape)} {values.dtype.name}",
            where=str(image.path),
        )
    raw = np.frombuffer(np.ascontiguousarray(values, dtype=dtype).tobytes(), dtype=np.uint8)
    if raw.size > region.size_bytes:
        raise error(
            f"region {region.name} has only {region.size_bytes} bytes", where=str(image.path)
        )
    memory[region.address : region.address + raw.size] = raw


def run_layer(
    prepared: Prepared,
    x: NDArray[Any],
    memory: NDArray[np.uint8] | None = None,
    machine: Machine | None = None,
    max_cycles: int | None = None,
    sink: Sink | None = None,
    progress: Progress | None = None,
) -> LayerRun:
    """Run the layer on `x`, image by image; each starts from `memory` (or the image's own).

    SEQ_NR and buffers are cleared for each. `max_cycles` holds for one image; `sink` gets the trace of the
    first, `progress` the instructions done in all. Raises what `execute` does, and `CimError` for an input
    that does not fit.
    """
    image = prepared.image
    start = image.memory() if memory is None else memory
    region = image.config.region("ifm")
    outputs: list[NDArray[Any]] = []
    results: list[Result] = []
    for one in images_of(image, x):
        own = start.copy()
        write_region(image, own, region, to_ifm(image, one))
        result = execute(
            prepared, own, machine, max_cycles, sink=None if results else sink,
            progress=shown_after(len(results) * len(prepared.program), progress),
        )  # fmt: skip
        outputs.append(from_ofm(image, result.memory))
        results.append(result)
    output = outputs[0] if len(outputs) == 1 else np.concatenate(outputs, axis=0)
    return LayerRun(output, results)


def _shown(shape: Any) -> str:
    return "x".join(str(side) for side in shape) or "a scalar"
