"""JSON schemas of the files that tools exchange, from the models that validate them.

`python -m cim.emulator.schemas [FOLDER]` writes them, by default into `spec/schema` beside this
package.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from cim import console
from cim.asm import image, network_file
from cim.emulator.network_stats import NetworkStats
from cim.emulator.stats import Stats
from cim.files import write_all

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).resolve().parents[1] / "spec" / "schema"


# File name: the model, the format version of its files (None: it has none), title and description.
_FILES: dict[str, tuple[type[msgspec.Struct], int | None, str, str]] = {
    "cfg.schema.json": (
        image.Config,
        image.FORMAT_VERSION,
        "CIM image configuration",
        "NAME.cfg of cim-ld and cim-cc: what the host must know of NAME.bin; see spec/image.md.",
    ),
    "network.schema.json": (
        network_file.Network,
        network_file.FORMAT_VERSION,
        "CIM network",
        "network.json of cim-cc: layers and host subgraphs of a model; see spec/image.md.",
    ),
    "stats.schema.json": (
        Stats,
        None,
        "CIM statistics of a layer",
        "What cim-emu FILE.cfg --stats writes; spec/timing.md defines what is counted.",
    ),
    "network-stats.schema.json": (
        NetworkStats,
        None,
        "CIM statistics of a network",
        "What cim-emu network.json --stats writes: sums, then each layer and the host.",
    ),
}


def schemas() -> dict[str, bytes]:
    """The schemas by file name."""
    return {name: _schema(*entry) for name, entry in _FILES.items()}


def _schema(
    model: type[msgspec.Struct], version: int | None, title: str, description: str
) -> bytes:
    (made,), definitions = msgspec.json.schema_components([model])
    root = definitions.pop(model.__name__)
    assert made == {"$ref": f"#/$defs/{model.__name__}"}
    for part in (root, *definitions.values()):
        _close(part)
    if version is not None:
        # Readers refuse a file without them, although the models have them as defaults.
        root["properties"]["format_version"] = {"const": version}
        root["required"] = ["format", "format_version", *root["required"]]
    content = {"$schema": DIALECT, **root, "title": title, "description": description}
    if definitions:
        content["$defs"] = dict(sorted(definitions.items()))
    return msgspec.json.format(msgspec.json.encode(_plain(content)), indent=1) + b"\n"


def _close(part: dict[str, Any]) -> None:
    """Refuse what the model does not name; models that are only written do not say so."""
    if "properties" in part:
        part.setdefault("additionalProperties", False)
    if "prefixItems" in part:
        part.setdefault("items", False)


def _plain(value: Any) -> Any:
    """Without `discriminator`, a word of OpenAPI's that JSON Schema does not have."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key != "discriminator"}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def main(argv: Sequence[str] | None = None) -> int:
    """Write the schemas into a folder; returns the exit code."""
    parser = console.parser("python -m cim.emulator.schemas", "Writes the JSON schemas.")
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", type=Path, default=FOLDER,
        help="where to (default: spec/schema)",
    )  # fmt: skip
    arguments = parser.parse_args(argv)
    return console.run("cim.emulator.schemas", lambda: _write(arguments))


def _write(arguments: argparse.Namespace) -> int:
    write_all({arguments.folder / name: content for name, content in schemas().items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
