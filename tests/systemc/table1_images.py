"""The layers of Table I as images with a random input, for any crossbar and bus."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from systemc_model import with_content

from cim.asm.image import Image
from cim.codegen.driver import compile_model
from cim.emulator.host import to_ifm
from cim.isa.machine import load_machine

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/table1"))

import make_layer

LAYERS = {row.layer: row for row in make_layer.read_table()}


def table1_image(layer: int, side: int, width: int, folder: Path, *settings: str) -> Image:
    """A layer on the paper's machine with crossbars of side x side and a bus of `width` bytes."""
    row = LAYERS[layer]
    path = folder / "layer.onnx"
    path.write_bytes(make_layer.make_layer(row).SerializeToString())
    keys = [f"core.crossbar={side}x{side}", f"bus.width_bytes={width}", *settings]
    (compiled,) = compile_model(path, load_machine("pelke23", keys)).layers
    image = compiled.image()
    shape = (1, row.in_channels, row.input_h, row.input_w)
    x = np.random.default_rng(layer).integers(0, 256, shape).astype(np.uint8)
    return with_content(image, "ifm", to_ifm(image, x).tobytes())
