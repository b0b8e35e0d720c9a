"""Images made in memory from encoded words: what the tests of the emulator run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from cim.asm.image import (
    BIN_HEADER,
    BIN_MAGIC,
    FORMAT_VERSION,
    Config,
    CoreConfig,
    Image,
    LayerDescription,
    Location,
    Region,
    Segment,
    digest,
    encode_config,
)  # fmt: skip
from cim.isa.encoding import encode, immediate_bits
from cim.isa.load import load_isa
from cim.isa.machine import Machine, load_machine

CODES = {name: buffer.code for name, buffer in load_isa().buffers.items()}


@lru_cache(maxsize=1 << 16)
def word(name: str, *operands: int | str) -> int:
    """One instruction by its name in the spec; operands in the spec's order, buffers by name."""
    instruction = load_isa().instructions[name]
    values = [CODES[o] if isinstance(o, str) else o for o in operands]
    return int(encode(instruction, dict(zip(instruction.operands, values, strict=True))))


def load(buffer: str, lo: int, hi: int, address: int) -> int:
    return word("load", buffer, lo, hi, address)


def store(address: int, buffer: str, lo: int, hi: int) -> int:
    return word("store", address, buffer, lo, hi)


def mvm() -> int:
    return word("mvm")


def call(core: int) -> int:
    return word("call", core)


def wait(value: int) -> int:
    return word("wait", value)


def gpeu(op: str, *operands: int | str) -> int:
    return word(f"gpeu.{op}", *operands)


def immediate(op: str, dst: str, a: str, value: float, length: int, mode: str = "i8") -> int:
    return word(f"gpeu.{op}.imm", dst, a, immediate_bits(value, mode), length)


@dataclass
class Core:
    """A core of a test image."""

    words: Sequence[int] = ()
    weights: NDArray[Any] | None = None
    parameters: dict[str, NDArray[Any]] = field(default_factory=dict)
    number: int | None = None
    name: str = ""
    file: str = "test.s"


class _Bin:
    def __init__(self) -> None:
        self.content = BIN_HEADER.pack(BIN_MAGIC, FORMAT_VERSION, 0)

    def add(self, data: bytes) -> Segment:
        self.content += b"\0" * (-len(self.content) % 8)
        segment = Segment(len(self.content), len(data))
        self.content += data
        return segment


def region(
    name: str,
    address: int,
    type_: str,
    shape: list[int],
    zero_point: int = 0,
    size: int | None = None,
) -> Region:
    width = 1 if type_ in ("i8", "u8") else 4
    return Region(
        name, name, address, int(np.prod(shape)) * width if size is None else size, type_,  # type: ignore[arg-type]
        shape, "", None, zero_point, None,
    )  # fmt: skip


def make_image(
    cores: Sequence[Core], memory_bytes: int = 4096, mode: str = "i8", ifm: str = "i8", ofm: str = "i8",
    machine: Machine | None = None, settings: Sequence[str] = (), regions: Sequence[Region] = (),
    layer: LayerDescription | None = None, path: Path = Path("test.cfg"), contents: dict[str, bytes] | None = None,
    extensions: Sequence[str] = (),
) -> Image:  # fmt: skip
    """An image whose programs lie at the end of memory; instruction k of a core is line k + 1 of its file."""
    bin_ = _Bin()
    locations: list[Location] = []
    configs = []
    # Programs lie behind the data.
    address = memory_bytes
    for position, core in enumerate(cores):
        words = np.array(core.words, dtype="<u8")
        first = len(locations)
        locations += [Location(core.file, index + 1) for index in range(len(words))]
        rows, columns = core.weights.shape if core.weights is not None else (0, 0)
        number = position if core.number is None else core.number
        configs.append(
            CoreConfig(
                number=number, name=core.name or f"{number}", hg=0, vg=position, rows=rows, columns=columns,
                address=address, program=bin_.add(words.tobytes()),
                lines=bin_.add(np.arange(first, len(locations), dtype="<u4").tobytes()),
                weights=None if core.weights is None else bin_.add(core.weights.tobytes()),
                parameters={
                    name: bin_.add(np.asarray(v).tobytes()) for name, v in core.parameters.items()
                },
            )
        )  # fmt: skip
        address += words.nbytes
    filled = [
        msgspec.structs.replace(one, content=bin_.add(contents[one.name]))
        if contents and one.name in contents
        else one
        for one in regions
    ]
    config = Config(
        isa="cim", isa_version="1.0", extensions=list(extensions), machine=machine or load_machine("default", settings),
        mode=mode, ifm=ifm, ofm=ofm, memory_bytes=address, bin_name="test.bin",  # type: ignore[arg-type]
        bin_size=len(bin_.content), bin_sha256=digest(bin_.content), regions=filled,
        cores=configs, locations=locations, layer=layer,
    )  # fmt: skip
    return Image(config, bin_.content, path)


def write_image(image: Image) -> Path:
    """The cfg and bin of an image, at its path."""
    image.path.parent.mkdir(parents=True, exist_ok=True)
    image.path.write_bytes(encode_config(image.config))
    image.path.with_name(image.config.bin_name).write_bytes(image.content)
    return image.path
