"""`network.json`: the CIM layers and host subgraphs of a whole model, in the order in which they run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from cim.diagnostics import error
from cim.files import read_bytes
from cim.wording import plain_rule

FORMAT_VERSION = 1


class Tensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named value; `dtype` is NumPy's name."""

    name: str
    dtype: str
    shape: list[int]


class LayerStep(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="layer"
):
    """A CIM layer: its cfg, relative to this file, and the tensors that it reads and writes.

    Of a folded layer it is the cfg of the first turn, and `later_turns` are the others in order: images that run one
    after another in the same shared memory.
    """

    name: str
    cfg: str
    input: str
    output: str
    later_turns: list[str] = []


class HostStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="host"):
    """A subgraph for the host: an ONNX model, relative to this file, and its digest (SHA-256)."""

    model: str
    sha256: str
    inputs: list[str]
    outputs: list[str]


class HostNode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node on the host: why, its multiply-accumulates, and their share (0 to 1) of the whole model's."""

    name: str
    operator: str
    reason: str
    macs: int
    share: float


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of `network.json`. `reference` is the whole model with its shapes fixed, for checking."""

    format: Literal["cim-network"] = "cim-network"
    format_version: int = FORMAT_VERSION
    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    steps: list[LayerStep | HostStep]
    host: list[HostNode]
    macs: int
    reference: str
    reference_sha256: str


def encode_network(network: Network) -> bytes:
    """The text of the file."""
    return msgspec.json.format(msgspec.json.encode(network), indent=1) + b"\n"


def read_network(path: str | Path) -> Network:
    """Read `network.json`. Raises `CimError` for a file that is none, or of another version."""
    try:
        raw = msgspec.json.decode(read_bytes(path))
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise error(f"is not JSON: {problem}", where=str(path)) from None
    if not isinstance(raw, dict) or raw.get("format") != "cim-network":
        raise error(
            'is not a network of cim-cc: it has no "format": "cim-network"', where=str(path)
        )
    if raw.get("format_version") != FORMAT_VERSION:
        found = raw.get("format_version")
        raise error(
            f"network format version is {found}, this toolchain reads {FORMAT_VERSION}",
            where=str(path),
        )
    try:
        return msgspec.convert(raw, Network)
    except msgspec.ValidationError as problem:
        raise error(
            f"is not a valid network: {plain_rule(str(problem))}", where=str(path)
        ) from None
