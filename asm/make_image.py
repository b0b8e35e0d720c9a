"""The image of parts that are laid out and relocated: the bin's content and the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from cim.asm.capacity import CorePart, RegionPart
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
)
from cim.asm.objects import Object
from cim.diagnostics import error
from cim.isa.interpreter import PARAMETERS
from cim.isa.machine import Machine
from cim.isa.model import Isa
from cim.isa.numerics import DTYPES, NumericMode
from cim.wording import plain_rule


@dataclass
class ImageMaker:
    """All that goes into an image; `path` is the cfg's."""

    isa: Isa
    machine: Machine
    mode: NumericMode
    objects: list[Object]
    cores: list[CorePart]
    regions: list[RegionPart]
    path: Path

    def image(self, memory_bytes: int) -> Image:
        """The image of `memory_bytes` of shared memory."""
        content = bytearray(BIN_HEADER.pack(BIN_MAGIC, FORMAT_VERSION, 0))

        def add(data: bytes) -> Segment:
            content.extend(bytes(-len(content) % 8))
            segment = Segment(len(content), len(data))
            content.extend(data)
            return segment

        locations: dict[Location, int] = {}
        cores = [self._core_config(core, add, locations) for core in self.cores]
        regions = [self._region_config(region, add) for region in self.regions]
        config = Config(
            isa=self.isa.name,
            isa_version=self.isa.version,
            extensions=sorted({e for o in self.objects for e in o.attributes.extensions}),
            machine=self.machine,
            mode=self.mode.mode,  # type: ignore[arg-type]  # NumericMode has checked them
            ifm=self.mode.ifm,  # type: ignore[arg-type]
            ofm=self.mode.ofm,  # type: ignore[arg-type]
            memory_bytes=memory_bytes,
            bin_name=self.path.with_suffix(".bin").name,
            bin_size=len(content),
            bin_sha256=digest(bytes(content)),
            regions=regions,
            cores=cores,
            locations=list(locations),
            layer=self._layer(),
        )
        return Image(config, bytes(content), self.path)

    def _core_config(self, core: CorePart, add: Any, locations: dict[Location, int]) -> CoreConfig:
        own = core.obj.attributes.locations
        # In the order of their first use, whatever the order of the object's own locations.
        used, first = np.unique(core.text.lines, return_index=True)
        renumber = np.zeros(int(used.max()) + 1 if used.size else 1, dtype="<u4")
        for index in used[np.argsort(first)]:
            renumber[index] = locations.setdefault(own[int(index)], len(locations))
        a = core.attributes
        parameters = {}
        for name in sorted(a.parameters):
            values = np.asarray(a.parameters[name], dtype=np.float64)
            vector = np.broadcast_to(values, (a.columns,)).astype(DTYPES[PARAMETERS[name][0]])
            parameters[name] = add(vector.tobytes())
        return CoreConfig(
            number=a.number,
            name=a.name,
            hg=a.hg,
            vg=a.vg,
            rows=a.rows,
            columns=a.columns,
            address=core.address,
            program=add(core.words.tobytes()),
            lines=add(renumber[core.text.lines].tobytes()),
            weights=add(core.crossbar.data.tobytes()) if core.crossbar is not None else None,
            parameters=parameters,
            entry=core.entry,
        )

    def _region_config(self, region: RegionPart, add: Any) -> Region:
        content = None
        if region.has_content():
            content = add(region.content.tobytes())
        a = region.attributes
        return Region(
            name=a.name,
            role=a.role,
            address=region.address,
            size_bytes=region.size,
            type=a.type,
            shape=a.shape,
            layout=a.layout,
            scale=a.scale,
            zero_point=a.zero_point,
            content=content,
        )

    def _layer(self) -> LayerDescription | None:
        given = [o for o in self.objects if o.attributes.layer]
        if not given:
            return None
        if len(given) > 1:
            raise error(f"{given[0].name} has a .layer too", where=given[1].name)
        raw = dict(given[0].attributes.layer)
        raw["reference"] = {
            "path": raw.pop("reference", None),
            "digest": raw.pop("reference_sha256", None),
        }
        try:
            return msgspec.convert(raw, LayerDescription)
        except msgspec.ValidationError as problem:
            raise error(
                f".layer is not complete: {plain_rule(str(problem))}", where=given[0].name
            ) from None
