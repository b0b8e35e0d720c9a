"""Writes a mapped and scheduled layer as assembly: one text a core and one for the data.

The text is made for people: a compiled core is a few dozen lines of loops, and says in its first lines which
part of which layer it is.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.directives_text import parameter_lines
from cim.asm.text_layout import INDENT, with_comment
from cim.codegen.emit_data import data_lines
from cim.codegen.layer import Layer
from cim.codegen.mapping import Mapping, Piece, Tile, ifm_pieces, tile_cells
from cim.codegen.parameters import input_offset
from cim.codegen.placed import Placed
from cim.codegen.schedule import CorePlan, Loop, Run, Schedule
from cim.codegen.turns import Turn
from cim.codegen.window import taps
from cim.isa.machine import Machine
from cim.isa.numerics import NumericMode


@dataclass(frozen=True)
class Program:
    """A layer, or a turn of it, as files by name: `texts` are the `.s` files in link order, `weights` what they include."""

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
    name: str, layer: Layer, mode: NumericMode, mapping: Mapping, turn: Turn, schedule: Schedule, machine: Machine,
    reference: tuple[str, bytes],
) -> Program:  # fmt: skip
    """The program of a turn of a layer; `name` is the stem of all files but `reference`, the layer's ONNX model."""
    return _Emitter(layer, mode, mapping, turn, schedule, machine).program(name, reference)


class _Emitter(Placed):
    def program(self, name: str, reference: tuple[str, bytes]) -> Program:
        weights_name = f"{name}.weights.bin"
        texts, parts, at = {}, [], 0
        for tile in self.turn.tiles:
            cells = tile_cells(self.layer, self.mapping.window, tile)
            part = cells.astype(self.mode.cell).tobytes()
            file = f"{name}.core{tile.number:05d}.s"
            lines = self._core(tile, cells, file, f'"{weights_name}", {at}, {len(part)}')
            texts[file] = "\n".join(lines) + "\n"
            parts.append(part)
            at += len(part)
        data_name = f"{name}.data.s"
        texts[data_name] = "\n".join(data_lines(self, data_name, reference)) + "\n"
        return Program(name, texts, (weights_name, b"".join(parts)), reference)

    def _core(self, tile: Tile, cells: NDArray[Any], file: str, weights: str) -> Iterator[str]:
        plan = self.schedule.plans[tile.number]
        yield f"# {self.title()}"
        yield (
            f"# core {tile.number} = C[hg {tile.hg}, vg {tile.vg}] of "
            f"{self.mapping.p_h} x {self.mapping.p_v}, scheme {self.schedule.scheme}"
        )
        yield from self._part(tile)
        yield ""
        yield f'.file "{file}"'
        yield self.mode_directive()
        if self.central:
            yield ".extension attribute_buffer"
        yield f".core {tile.name}, {tile.number}, hg={tile.hg}, vg={tile.vg}"
        yield f".crossbar rows={tile.rows}, columns={tile.columns}"
        yield f"{INDENT}.incbin {weights}"
        yield from self._parameters(tile, cells)
        yield ""
        yield ".text"
        once = not plan.each and not self.central
        if once and plan.predecessor is not None:
            yield with_comment(f"{INDENT}wait 1", f"# until C{tile.hg}_{plan.predecessor} is done")
        pieces = ifm_pieces(self.layer, self.mapping.window, tile)
        for loop in plan.loops:
            yield from self._loop(tile, plan, loop, pieces)
        if once and plan.successor is not None:
            yield f"{INDENT}call C{tile.hg}_{plan.successor}"

    def _part(self, tile: Tile) -> Iterator[str]:
        """Which part of the matrix the core holds, as comments."""
        window = self.mapping.window
        lines, line = taps(self.layer, window)
        c = self.layer.weights.shape[2] * self.layer.groups
        first, last = int(tile.row_ids[0]), int(tile.row_ids[-1])
        names = ("ky", "kx") if window.outputs == 1 else ("y", "x")

        def position(row: int) -> str:
            y, x = divmod(row // c, line.size)
            if window.outputs > 1:
                y, x = int(lines[y]), int(line[x])
            return f"{names[0]} {y}, {names[1]} {x}, c {row % c}"

        copies = f", {window.down} x {window.right} times" if window.outputs > 1 else ""
        what = "kernel" if window.outputs == 1 else "window"
        some = "" if last - first + 1 == tile.rows else f"{tile.rows} of "
        yield f"# output channels {tile.channel}..{tile.channel_end - 1}{copies}"
        yield f"# {what} rows {some}{first}..{last}: ({position(first)}) to ({position(last)})"

    def _parameters(self, tile: Tile, cells: NDArray[Any]) -> Iterator[str]:
        """Parameters that differ from their default; one value where all columns agree."""
        columns = tile.channel_ids
        r = self.requantization
        vectors: dict[str, tuple[NDArray[Any], float]] = {}
        if self.mode.mode != "f32":
            vectors["offset"] = (input_offset(self.layer, cells), 0)
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
        source = f"from C{tile.hg}_{plan.predecessor}"
        target = f"to C{tile.hg}_{plan.successor}"
        if run.first:
            source = "from an earlier turn" if plan.resumes else "first owner"
        if run.last:
            target = "to a later turn" if plan.pauses else "last owner"
        count = run.stop - run.start
        return f"{count} output{'s' if count > 1 else ''}: {source}, {target}"

    def _output(
        self, tile: Tile, plan: CorePlan, run: Run, pieces: list[Piece], wait: str
    ) -> Iterator[str]:
        """The instructions for output vector or window `o`, in the order that the design fixes."""
        n = tile.columns
        position = yield from self._position()
        for piece in pieces:
            address = _sum(f"ifm + {position}", piece.offset * self.ifm_bytes)
            yield f"load ib[{piece.lo}:{piece.hi}], {address}"
        yield "mvm"
        if not run.first and plan.each:
            yield f"wait {wait}"
        if not run.first or plan.resumes:
            read = "take" if self.central and not run.first else "load"
            yield f"{read} pb[0:{n}], {self._sums(tile, tile.vg - 1)}"
            yield "gpeu.add ob, ob, pb"
        elif self.requantization.bias is not None:
            before = tile.channel * tile.copies
            yield f"load pb[0:{n}], {_sum('bias', before * self.sum_bytes)}"
            yield "gpeu.add ob, ob, pb"
        if not run.last:
            if self.central:
                yield f"put {self._sums(tile, tile.vg)}, ob[0:{n}], 1"
            else:
                yield f"store {self._sums(tile, tile.vg)}, ob[0:{n}]"
            if plan.each:
                yield f"call C{tile.hg}_{plan.successor}"
            return
        if plan.pauses:
            yield f"store {self._sums(tile, tile.vg)}, ob[0:{n}]"
            return
        yield from self._finish()
        yield from self._store(tile)

    def _sums(self, tile: Tile, hop: int) -> str:
        """Where the partial sums of output o lie; with attributes those that core `hop` of the chain hands on."""
        areas = tile.hg * (self.mapping.p_v - 1) + hop if self.central else tile.hg
        return _sum(f"{self.sums} + o*{self.stride}", areas * self.mapping.vectors * self.stride)

    def _position(self) -> Generator[str, None, str]:
        """Yields a `.let` where it needs one; returns the text of output o's corner in the IFM, in bytes."""
        layer, window = self.layer, self.mapping.window
        _, width, channels = layer.padded
        out_height, out_width = layer.output_image
        down = layer.strides[0] * width * channels * self.ifm_bytes
        right = layer.strides[1] * channels * self.ifm_bytes
        if window.outputs > 1:
            # The last window of a line ends at the border.
            across = self.mapping.windows[1]
            yield f".let y = min(o/{across}*{window.down}, {out_height - window.down})"
            yield f".let x = min(o%{across}*{window.right}, {out_width - window.right})"
            yield f".let pos = y*{down} + x*{right}"
            return "pos"
        if out_width == 1:
            return f"o*{down}"
        if down == out_width * right:
            return f"o*{right}"
        yield f".let pos = o/{out_width}*{down} + o%{out_width}*{right}"
        return "pos"

    def _store(self, tile: Tile) -> Iterator[str]:
        """Finished values from `rb` to the OFM; of overlapping windows the first stores what both have."""
        step = self.channels * self.ofm_bytes
        own = tile.channel * self.ofm_bytes
        window = self.mapping.window
        if window.outputs == 1:
            yield f"store {_sum(f'ofm + o*{step}', own)}, rb[0:{tile.columns}]"
            return
        height, width = self.layer.output_image
        across = self.mapping.windows[1]
        seen_down = -height % window.down
        seen_right = -width % window.right
        # Neighbouring outputs lie together where the core has all channels.
        ends = sorted({seen_right, window.right} - {0})
        if tile.channels != self.channels:
            ends = list(range(1, window.right + 1))
        for i in range(window.down):
            begin = 0
            for end in ends:
                only = [f"y + {i} >= o/{across}*{window.down}"] if i < seen_down else []
                only += [f"x + {begin} >= o%{across}*{window.right}"] if begin < seen_right else []
                lo, hi = ((i * window.right + j) * tile.channels for j in (begin, end))
                place = f"ofm + y*{width * step} + x*{step}"
                store = f"store {_sum(place, (i * width + begin) * step + own)}, rb[{lo}:{hi}]"
                begin = end
                if not only:
                    yield store
                    continue
                yield f".if {' && '.join(only)}"
                yield f"{INDENT}{store}"
                yield ".endif"

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
        elif kind == "hard_swish":  # ob * min(max(ob / 6 + 0.5, 0), 1)
            yield f"gpeu.mul rb, ob, {_number(1 / 6)}"
            yield "gpeu.add rb, rb, 0.5"
            yield "gpeu.max rb, rb, 0.0"
            yield "gpeu.min rb, rb, 1.0"
            yield "gpeu.mul rb, ob, rb"
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


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else str(np.float32(value))


def _sum(text: str, constant: int) -> str:
    """`text + constant`, without what is not needed."""
    if not text:
        return str(constant)
    if constant == 0:
        return text
    return f"{text} {'+' if constant > 0 else '-'} {abs(constant)}"
