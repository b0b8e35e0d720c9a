"""Which parts the chains of a layer in several turns fall into, counted core by core."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim.codegen.mapping import map_layer
from cim.codegen.turns import turns_of
from cim.isa.reference_turns import chain_parts
from tests.codegen.models import describe, imported, only_layer, operator


def layer_of(groups, channels, outputs):
    shape = (groups * outputs, channels, 2, 1)
    made = operator(
        "Conv", (1, groups * channels, 4, 3), {"w": np.ones(shape, np.float32)}, group=groups
    )
    return only_layer(imported(made))


@given(
    st.integers(1, 3), st.integers(1, 5), st.integers(1, 7), st.integers(1, 4), st.integers(1, 4), st.integers(1, 12)
)  # fmt: skip
def test_parts_are_the_tiles_of_the_turns(groups, channels, outputs, columns, rows, available):
    layer = layer_of(groups, channels, outputs)
    mapping = map_layer(layer, columns, rows)
    turns = turns_of(mapping, available)
    ends = list(turns[0].ends)
    cfg = describe(layer, "linear", mapping.p_v, mapping.p_h, ends)
    found = np.full((mapping.p_v, layer.weights.shape[3]), -1)
    for of_group, parts in chain_parts(cfg, columns):
        assert [part[0] for part in parts[1:]] == [part[1] for part in parts[:-1]]
        for place, (first, end) in enumerate(parts):
            found[first:end, of_group] = place
    assert found.min() == 0
    for turn in turns:
        for tile in turn.tiles:
            # Its part of the chain comes after as many as there are turns before with cores of its chain.
            before = [t for t in turns[: turn.number] if any(o.hg == tile.hg for o in t.tiles)]
            assert np.all(found[tile.vg, tile.channel_slice] == len(before))


@pytest.mark.parametrize("ends", [[3], [5, 3, 6], [3, 3, 6], [6, 9]])
def test_turns_that_are_not_those_of_the_cores(ends):
    layer = layer_of(1, 3, 4)
    with pytest.raises(ValueError, match="are not those of 3 x 2 cores"):
        list(chain_parts(describe(layer, "linear", 3, 2, ends), 2))


def test_a_window_that_no_crossbar_holds():
    layer = layer_of(1, 3, 4)
    cfg = msgspec.structs.replace(describe(layer, "linear", 3, 2, [5, 6]), window_width=3)
    with pytest.raises(ValueError, match="a window of 1 x 3 outputs does not fit crossbars with 2"):
        list(chain_parts(cfg, 2))


def test_a_crossbar_that_makes_other_horizontal_groups():
    layer = layer_of(1, 3, 4)
    with pytest.raises(
        ValueError, match="4 channels on crossbars with 3 outputs make 2 horizontal"
    ):
        list(chain_parts(describe(layer, "linear", 3, 4, [5, 12]), 3))
