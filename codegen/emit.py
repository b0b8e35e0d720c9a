"""Writes a mapped and scheduled layer as assembly: one text a core and one for the data.

The text is made for people: a compiled core is a few dozen lines of loops, and says in its first lines which
part of which layer it is.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.directives_text import machine_directive, parameter_lines, region_directive, value_text
from cim.asm.text_layout import INDENT, with_comment
from cim.codegen.layer import Layer
from cim.codegen.mapping import Mapping, Piece, Tile, ifm_pieces
from cim.codegen.parameters import Requantization, input_offset, requantization
from cim.codegen.schedule import CorePlan, Loop, Run, Schedule
from cim.isa.machine import Machine
from cim.isa.numerics import DTYPES, NumericMode


@dataclass(frozen=True)
class Program:
    """A layer as files by name: `texts` are the `.s` files in link order, `weights` what they include."""

    name: str
    texts: dict[str, str]
    weights: tuple[str, bytes]
    reference: tuple[str, bytes]

    @property
    def files(self) -> dict[str, bytes]:
        """Everything that `cim-cc -S` writes."""
        texts = {name: text.encode() for name, text in self.texts.items()}
        return {**texts, self.weights[0]: self.weights[1], self.reference[0]: self.reference[1]}


def emit(
    name: str, layer: Layer, mode: NumericMode, mapping: Mapping, schedule: Schedule, machine: Machine,
    reference: bytes,
) -> Program:  # fmt: skip
    """The program of a layer; `reference` is its ONNX model, `name` the stem of all files."""
    return _Emitter(name, layer, mode, mapping, schedule, machine, reference).program()


class _Emitter:
    def __init__(
        self, name: str, layer: Layer, mode: NumericMode, mapping: Mapping, schedule: Schedule,
        machine: Machine, reference: bytes,
    ) -> None:  # fmt: skip
        self.name = name
        self.layer = layer
        self.mode = mode
        self.mapping = mapping
        self.schedule = schedule
        self.machine = machine
        self.reference = reference
        self.requantization: Requantization = requantization(layer, mode.mode)
        self.channels = layer.weights.shape[3]
        self.sum_bytes = DTYPES[mode.partial_sum].itemsize
        self.ifm_bytes = DTYPES[mode.ifm].itemsize
        self.ofm_bytes = DTYPES[mode.ofm].itemsize
        columns = max(tile.columns for tile in mapping.tiles)
        width = machine.bus.width_bytes
        self.stride = -(-columns * self.sum_bytes // width) * width
        # Partial sums use the OFM's own place only where both lie alike.
        same = mode.ofm == mode.partial_sum and self.stride == self.channels * self.ofm_bytes
        self.sums = "ofm" if mapping.p_h == 1 and same else "ps"

    def program(self) -> Program:
        weights_name = f"{self.name}.weights.bin"
        reference_name = f"{self.name}.ref.onnx"
        texts, parts, at = {}, [], 0
        for tile in self.mapping.tiles:
            cells = self.layer.block(tile.row_ids, tile.column_slice)
            part = cells.astype(self.mode.cell).tobytes()
            file = f"{self.name}.core{tile.number:05d}.s"
            lines = self._core(tile, file, f'"{weights_name}", {at}, {len(part)}')
            texts[file] = "\n".join(lines) + "\n"
            parts.append(part)
            at += len(part)
        data_name = f"{self.name}.data.s"
        texts[data_name] = "\n".join(self._data(data_name, reference_name)) + "\n"
        return Program(
            self.name, texts, (weights_name, b"".join(parts)), (reference_name, self.reference)
        )

    # --- the data file -----------------------------------------------------------------------------------

    def _data(self, file: str, reference_name: str) -> Iterator[str]:
        layer, align = self.layer, max(64, self.machine.bus.width_bytes)
        yield f"# Data of {self._title()}: regions of shared memory, and what the layer computes."
        yield ""
        yield f'.file "{file}"'
        yield machine_directive(self.machine)
        yield self._mode_directive()
        yield ""
        for key, value in self._description(reference_name).items():
            yield f".layer {key}={value_text(value)}"
        q = layer.quantization
        yield ""
        yield region_directive(
            "ifm", self.mode.ifm, layer.padded, role="ifm", layout="HWC",
            scale=float(q.x_scale) if q else None, zero_point=q.x_zp if q else 0, align=align,
        )  # fmt: skip
        yield region_directive(
            "ofm", self.mode.ofm, (layer.outputs, self.channels), role="ofm", layout="OK",
            scale=float(q.y_scale) if q and q.y_scale is not None else None,
            zero_point=q.y_zp if q else 0, align=align,
        )  # fmt: skip
        if self.mapping.p_v > 1 and self.sums == "ps":
            shape = (self.mapping.p_h, layer.outputs, self.stride // self.sum_bytes)
            yield region_directive(
                "ps", self.mode.partial_sum, shape, role="partial_sum", layout="HG,O,K", align=align
            )
        bias = self.requantization.bias
        if bias is not None:
            yield region_directive(
                "bias", self.mode.partial_sum, bias.shape, role="bias", layout="K", align=align
            )
            directive = {"f32": ".float", "i32": ".word", "i8": ".byte"}[self.mode.partial_sum]
            if not np.isfinite(bias).all():  # the language has no literal for them: as bits
                directive, bias = ".word", bias.view(np.uint32)
            for start in range(0, len(bias), 8):
                values = ", ".join(str(value) for value in bias[start : start + 8])
                yield f"{INDENT}{directive} {values}"

    def _description(self, reference_name: str) -> dict[str, object]:
        layer = self.layer
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
            "scheme": self.schedule.scheme,
            "vertical_groups": self.mapping.p_v,
            "horizontal_groups": self.mapping.p_h,
            "reference": reference_name,
            "reference_sha256": sha256(self.reference).hexdigest(),
        }

    def _title(self) -> str:
        ky, kx, c, k = self.layer.weights.shape
        height, width = self.layer.output_image
        groups = self.layer.groups
        in_groups = f" in {groups} groups" if groups > 1 else ""
        return (
            f"layer '{_printable(self.layer.name)}' ({self.layer.operator} {ky}x{kx}, {c * groups} to {k} "
            f"channels{in_groups}, {height}x{width} outputs)"
        )

    def _mode_directive(self) -> str:
        return f".mode {self.mode.mode}, ifm={self.mode.ifm}, ofm={self.mode.ofm}"

    # --- a core's file -----------------------------------------------------------------------------------

    def _core(self, tile: Tile, file: str, weights: str) -> Iterator[str]:
        plan = self.schedule.plans[tile.vg]
        _, kx, c, _ = self.layer.weights.shape
        c *= self.layer.groups
        first, last = int(tile.row_ids[0]), int(tile.row_ids[-1])
        all_rows = last - first + 1 == tile.rows

        def position(row: int) -> str:
            return f"ky {row // (kx * c)}, kx {row // c % kx}, c {row % c}"

        yield f"# {self._title()}"
        yield (
            f"# core {tile.number} = C[hg {tile.hg}, vg {tile.vg}] of "
            f"{self.mapping.p_h} x {self.mapping.p_v}, scheme {self.schedule.scheme}"
        )
        yield f"# output channels {tile.column}..{tile.column_end - 1}"
        some = "" if all_rows else f"{tile.rows} of "
        yield f"# kernel rows {some}{first}..{last}: ({position(first)}) to ({position(last)})"
        yield ""
        yield f'.file "{file}"'
        yield self._mode_directive()
        yield f".core {tile.name}, {tile.number}, hg={tile.hg}, vg={tile.vg}"
        yield f".crossbar rows={tile.rows}, columns={tile.columns}"
        yield f"{INDENT}.incbin {weights}"
        yield from self._parameters(tile)
        yield ""
        yield ".text"
        if not plan.each and plan.predecessor is not None:
            yield with_comment(f"{INDENT}wait 1", f"# until C{tile.hg}_{plan.predecessor} is done")
        pieces = ifm_pieces(self.layer, tile)
        for loop in plan.loops:
            yield from self._loop(tile, plan, loop, pieces)
        if not plan.each and plan.successor is not None:
            yield f"{INDENT}call C{tile.hg}_{plan.successor}"

    def _parameters(self, tile: Tile) -> Iterator[str]:
        """Parameters that differ from their default; one value where all columns agree."""
        columns = slice(tile.column, tile.column_end)
        r = self.requantization
        vectors: dict[str, tuple[NDArray[Any], float]] = {}
        if self.mode.mode != "f32":
            vectors["offset"] = (
                input_offset(self.layer, tile.row_ids, columns),
                0,
            )
        if self.mode.mode == "i8n":
            vectors["adc_mul"] = (r.adc_mul[columns], 1)
        vectors["mul_pos"] = (r.mul_pos[columns], 1)
        vectors["mul_neg"] = (r.mul_neg[columns], 1)
        vectors["y_zp"] = (np.array([r.y_zp]), 0)
        for name, (values, default) in vectors.items():
            if np.all(values == default):
                continue
            short = values[:1] if np.all(values == values[0]) else values
            yield from parameter_lines(name, short.tolist())

    def _loop(self, tile: Tile, plan: CorePlan, loop: Loop, pieces: list[Piece]) -> Iterator[str]:
        if loop.count == 1:
            for run in loop.runs:
                yield from self._run(tile, plan, run, pieces, None, "")
            return
        yield with_comment(f".for g, 0, {loop.count}", f"# groups of {loop.output_step} outputs")
        for run in loop.runs:
            yield from self._run(tile, plan, run, pieces, loop, INDENT)
        yield ".endfor"

    def _run(
        self,
        tile: Tile,
        plan: CorePlan,
        run: Run,
        pieces: list[Piece],
        loop: Loop | None,
        indent: str,
    ) -> Iterator[str]:
        group = f"g*{loop.output_step}" if loop is not None else ""
        yield f"{indent}# {self._role(tile, plan, run)}"
        start, stop = _sum(group, run.start), _sum(group, run.stop)
        single = run.stop - run.start == 1
        yield f"{indent}.let o = {start}" if single else f"{indent}.for o, {start}, {stop}"
        inner = indent if single else indent + INDENT
        wait = run.waits + 1 - run.start
        in_group = loop.wait_step - loop.output_step if loop is not None else 0
        value = _sum({0: "o", -1: "o - g"}.get(in_group, f"o + g*({in_group})"), wait)
        for line in self._output(tile, plan, run, pieces, value):
            is_directive = line.startswith(".")
            yield (inner if is_directive else inner or INDENT) + line
        if not single:
            yield f"{indent}.endfor"

    def _role(self, tile: Tile, plan: CorePlan, run: Run) -> str:
        """One sentence on whom the outputs come from and go to."""
        source = f"from C{tile.hg}_{plan.predecessor}" if not run.first else "first owner"
        target = f"to C{tile.hg}_{plan.successor}" if not run.last else "last owner"
        count = run.stop - run.start
        return f"{count} output{'s' if count > 1 else ''}: {source}, {target}"

    def _output(
        self, tile: Tile, plan: CorePlan, run: Run, pieces: list[Piece], wait: str
    ) -> Iterator[str]:
        """The instructions for output vector `o`, in the order that the design fixes."""
        n = tile.columns
        position = yield from self._position()
        for piece in pieces:
            address = _sum(f"ifm + {position}", piece.offset * self.ifm_bytes)
            yield f"load ib[{piece.lo}:{piece.hi}], {address}"
        yield "mvm"
        sums = f"{self.sums} + o*{self.stride}"
        sums = _sum(sums, tile.hg * self.layer.outputs * self.stride)
        if not run.first:
            if plan.each:
                yield f"wait {wait}"
            yield f"load pb[0:{n}], {sums}"
            yield "gpeu.add ob, ob, pb"
        elif self.requantization.bias is not None:
            yield f"load pb[0:{n}], {_sum('bias', tile.column * self.sum_bytes)}"
            yield "gpeu.add ob, ob, pb"
        if not run.last:
            yield f"store {sums}, ob[0:{n}]"
            if plan.each:
                yield f"call C{tile.hg}_{plan.successor}"
            return
        yield from self._finish()
        ofm = _sum(f"ofm + o*{self.channels * self.ofm_bytes}", tile.column * self.ofm_bytes)
        yield f"store {ofm}, rb[0:{n}]"

    def _position(self) -> Generator[str, None, str]:
        """Yields a `.let` where it needs one; returns the text of output o's corner in the IFM, in bytes."""
        layer = self.layer
        _, width, channels = layer.padded
        out_width = layer.output_image[1]
        down = layer.strides[0] * width * channels * self.ifm_bytes
        right = layer.strides[1] * channels * self.ifm_bytes
        if out_width == 1:
            return f"o*{down}"
        if down == out_width * right:
            return f"o*{right}"
        yield f".let pos = o/{out_width}*{down} + o%{out_width}*{right}"
        return "pos"

    def _finish(self) -> Iterator[str]:
        """From the complete sum in `ob` to the OFM's value in `rb`."""
        layer = self.layer
        kind = layer.activation.kind
        source = "ob"
        if layer.quantization is not None and layer.quantization.y_scale is not None:
            yield "gpeu.requant rb, ob"
            source = "rb"
        elif kind in ("relu", "leaky_relu"):
            yield f"gpeu.{'relu' if kind == 'relu' else 'lrelu'} rb, ob"
            source = "rb"
        low, high = self.requantization.clip
        if low is not None:
            yield f"gpeu.max rb, {source}, {_number(low)}"
            source = "rb"
        if high is not None:
            yield f"gpeu.min rb, {source}, {_number(high)}"
            source = "rb"
        if source == "ob":
            yield "gpeu.mov rb, ob"


def _printable(name: str) -> str:
    """A name for a comment: a line end in it must not begin a line of the program."""
    return "".join(char if char.isprintable() else "?" for char in name)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else str(np.float32(value))


def _sum(text: str, constant: int) -> str:
    """`text + constant`, without what is not needed."""
    if not text:
        return str(constant)
    if constant == 0:
        return text
    return f"{text} {'+' if constant > 0 else '-'} {abs(constant)}"
