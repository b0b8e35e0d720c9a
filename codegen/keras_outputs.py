"""The outputs of a converted Keras model get the names and the order that Keras has for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import onnx

from cim.codegen.onnx_graph import names_in, subgraphs


def name_outputs(graph: onnx.GraphProto, structure: Any, own_names: list[str]) -> None:
    """Renames the outputs of `graph`, which are those of `structure`, flat and dicts by sorted key, in place.

    A dict has its keys, in an order where output_10 is behind output_2; anything else `own_names`, where there is one for
    each output. One that comes again gets a number. An output whose name another value has stays what it is.
    """
    keyed = isinstance(structure, Mapping) and len(structure) == len(graph.output)
    names = sorted(structure) if keyed else own_names
    if len(names) != len(graph.output):
        return
    current = [value.name for value in graph.output]
    taken = set(names_in(graph))
    wanted = zip(current, _numbered(names), strict=True)
    _rename(graph, {old: name for old, name in wanted if name not in taken})
    if keyed:
        pairs = sorted(zip(names, graph.output, strict=True), key=lambda pair: _natural(pair[0]))
        ordered = [onnx.ValueInfoProto.FromString(v.SerializeToString()) for _, v in pairs]
        del graph.output[:]
        graph.output.extend(ordered)


def _numbered(names: list[str]) -> list[str]:
    """The names, with _1, _2 and so on behind those that were there before."""
    made: list[str] = []
    for name in names:
        number, unique = 0, name
        while unique in made or (number and unique in names):
            number += 1
            unique = f"{name}_{number}"
        made.append(unique)
    return made


def _natural(name: str) -> list[tuple[int, str]]:
    """A sort key that takes digits as numbers."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Gives values other names, in the subgraphs of nodes too."""
    for value in (*graph.output, *graph.value_info):
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        for places in (node.input, node.output):
            for place, name in enumerate(places):
                places[place] = names.get(name, name)
        for inner in subgraphs(node):
            _rename(inner, names)
