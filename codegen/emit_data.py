"""The data file of a layer: its regions of shared memory, its bias, and what it computes."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.directives_text import machine_directive, region_directive, value_text
from cim.asm.text_layout import INDENT
from cim.codegen.placed import Placed


def data_lines(placed: Placed, file: str, reference: tuple[str, bytes]) -> Iterator[str]:
    """The lines of the data file; `reference` is the name of the layer's ONNX model and what is in it.

    All turns of a layer have the same regions, and so the same addresses. The first one brings their content.
    """
    layer, align = placed.layer, max(64, placed.machine.bus.width_bytes)
    yield f"# Data of {placed.title()}: regions of shared memory, and what the layer computes."
    yield ""
    yield f'.file "{file}"'
    yield machine_directive(placed.machine)
    yield placed.mode_directive()
    yield ""
    for key, value in _description(placed, *reference).items():
        yield f".layer {key}={value_text(value)}"
    q = layer.quantization
    yield ""
    yield region_directive(
        "ifm", placed.mode.ifm, layer.padded, role="ifm", layout="HWC",
        scale=float(q.x_scale) if q else None, zero_point=q.x_zp if q else 0, align=align,
    )  # fmt: skip
    yield region_directive(
        "ofm", placed.mode.ofm, (layer.outputs, placed.channels), role="ofm", layout="OK",
        scale=float(q.y_scale) if q and q.y_scale is not None else None,
        zero_point=q.y_zp if q else 0, align=align,
    )  # fmt: skip
    if placed.mapping.p_v > 1 and placed.sums == "ps":
        # With attributes an area for each hop, since an address in place cannot say who reads next.
        hops = (placed.mapping.p_v - 1,) if placed.central else ()
        shape = (
            placed.mapping.p_h,
            *hops,
            placed.mapping.vectors,
            placed.stride // placed.sum_bytes,
        )
        layout = "HG,VG,O,K" if placed.central else "HG,O,K"
        yield region_directive(
            "ps", placed.mode.partial_sum, shape, role="partial_sum", layout=layout, align=align
        )
    bias = _bias(placed)
    if bias is not None:
        yield region_directive(
            "bias", placed.mode.partial_sum, bias.shape, role="bias", layout="K", align=align
        )
        if placed.turn.number > 0:
            return
        directive = {"f32": ".float", "i32": ".word", "i8": ".byte"}[placed.mode.partial_sum]
        if not np.isfinite(bias).all():  # the language has no literal for them: as bits
            directive, bias = ".word", bias.view(np.uint32)
        for start in range(0, len(bias), 8):
            values = ", ".join(str(value) for value in bias[start : start + 8])
            yield f"{INDENT}{directive} {values}"


def _bias(placed: Placed) -> NDArray[Any] | None:
    """What each HG's columns add, one HG after another; with im2col the bias itself."""
    bias = placed.requantization.bias
    if bias is None:
        return None
    return np.concatenate([bias[t.channel_ids] for t in placed.mapping.tiles if t.vg == 0])


def _description(placed: Placed, reference_name: str, reference: bytes) -> dict[str, object]:
    layer, window = placed.layer, placed.mapping.window
    mapped = {
        "mapping": placed.mapping.kind,
        "window_height": window.down,
        "window_width": window.right,
    }
    turn = {"turn": placed.turn.number, "turn_ends": placed.turn.ends}
    return {
        "name": layer.name,
        "operator": layer.operator,
        "layout": layer.layout,
        "input_name": layer.input_name,
        "output_name": layer.output_name,
        "input_shape": layer.input_shape,
        "output_shape": layer.output_shape,
        "kernel": layer.weights.shape,
        **({"groups": layer.groups} if layer.groups > 1 else {}),
        "strides": layer.strides,
        "dilations": layer.dilations,
        "pads": layer.pads,
        "activation": layer.activation.kind,
        "alpha": layer.activation.alpha,
        "scheme": placed.schedule.scheme,
        **(mapped if window.outputs > 1 else {}),
        "vertical_groups": placed.mapping.p_v,
        "horizontal_groups": placed.mapping.p_h,
        **(turn if placed.turn.folded else {}),
        "reference": reference_name,
        "reference_sha256": sha256(reference).hexdigest(),
    }
