"""What holds designs back, and which settings fit the paper, from points that are made up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cim.emulator.summary import BINDINGS
from cim.explore.claims import check_claims
from cim.explore.measure import Point
from cim.explore.past import NEAR, PARALLEL, STATEMENTS, fits, held_back, summary

P_V = 8


def point(scheme, cycles, label="1", crossbar="32x32", bus=4, settings=(), p_v=P_V, **more):
    values = {
        "cores": 2 * p_v, "lower_bound": cycles // 2, "binding": "r", "load_values": 1, "store_values": 1,
        "calls": 1, "data_bytes": 100, "call_bytes": 3, "fetch_bytes": 0, "fullest_channel": "r",
        "fullest_share": 0.5, "mapping": "im2col", "window": "1x1", "mvms": 1, "ifm_values": 1, "cells_used": 1.0,
        "partial_sum_bytes": 0,
    }  # fmt: skip
    return Point(label, scheme, crossbar, bus, settings, p_v, 2, cycles=cycles, **(values | more))


def design(shares, label, crossbar, bus):
    """Runs whose speedups are these shares of the limit, as far as whole cycles allow."""
    base = point("sequential", 8_000_000, label, crossbar, bus)
    return [
        base,
        *(
            point(s, round(base.cycles / P_V / share), label, crossbar, bus)
            for s, share in zip(PARALLEL, shares, strict=True)
        ),
    ]


designs = st.dictionaries(
    st.tuples(
        st.sampled_from(["1", "2", "x"]),
        st.sampled_from(["32x32", "128x128"]),
        st.sampled_from([4, 32]),
    ),
    st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
)


@given(designs)
def test_held_back_are_exactly_the_designs_that_no_scheme_brings_near_the_limit(shares):
    points = [p for key, mine in shares.items() for p in design(mine, *key)]
    rows = held_back(points)
    assert {(r.best.label, r.best.crossbar, r.best.bus_bytes) for r in rows} == {
        key
        for key in shares
        if max(p_share(p, points) for p in points if named(p, key) and p.scheme in PARALLEL) < NEAR
    }
    for row in rows:
        assert row.best.cycles == min(
            p.cycles
            for p in points
            if named(p, (row.best.label, row.best.crossbar, row.best.bus_bytes))
            and p.scheme in PARALLEL
        )
        assert row.binding == BINDINGS["r"]
    told = summary(rows)
    assert len(told) == (1 if rows else 0)
    assert all(sentence.startswith(f"{len(rows)} of {len(rows)}: ") for sentence in told)


def named(p, key):
    return (p.label, p.crossbar, p.bus_bytes) == key


def p_share(p, points):
    (base,) = (
        q
        for q in points
        if q.scheme == "sequential" and named(q, (p.label, p.crossbar, p.bus_bytes))
    )
    return base.cycles / p.cycles / p.p_v


def test_a_chain_of_one_core_is_not_held_back():
    assert held_back([point("sequential", 100, p_v=1), point("ring", 200, p_v=1)]) == []


def test_the_settings_are_held_against_what_the_paper_says():
    def runs(settings, seven, five=15.9, linear_loss=0.01):
        points = []
        for label, p_v, speedup in (
            ("1", 4, 3.99),
            ("4", 8, 7.9),
            ("5", 16, five),
            ("7", 32, seven),
        ):
            mine = {"settings": settings, "p_v": p_v, "label": label}
            points.append(point("sequential", 1_000_000, **mine))
            points.append(point("cyclic", round(1_000_000 / speedup), **mine))
            points.append(point("linear", round(1_000_000 / (speedup - linear_loss)), **mine))
        return points

    settings = [("a=1",), ("a=2",), ("a=3",), ("a=4",)]
    points = [
        *runs(settings[0], 15.5), *runs(settings[1], 31.5), *runs(settings[2], 15.8, linear_loss=-0.01),
        *runs(settings[3], 8, five=8),
    ]  # fmt: skip
    found = fits(points, {"a": settings})
    assert [fit.settings for fit in found] == settings
    assert [fit.holds for fit in found] == [
        (True,) * len(STATEMENTS),
        (True, True, False, False, True),
        (True, True, True, True, False),
        (True, False, True, True, True),
    ]


def test_claims_about_networks_follow_the_points():
    """Each claim about Fig. 6 can hold, and can fail."""

    def networks(small, large, same_width):
        points = []
        for label, crossbar, bus, cores, share in (
            ("a", "32x32", 4, 16, small), ("a", "64x64", 4, 4, small), ("a", "32x32", 64, 512, large),
            ("b", "64x64", 4, 64, 0.99), ("b", "32x32", 4, 256, same_width), ("b", "32x32", 8, 256, 0.99),
        ):  # fmt: skip
            points.append(point("sequential", 8_000_000, label, crossbar, bus, cores=cores))
            cycles = round(1_000_000 / share)
            points.append(point("cyclic", cycles, label, crossbar, bus, cores=cores))
        return points

    table1 = [p for label in ("4", "5") for bus in (4, 32) for side in (32, 64)
              for p in design((0.9, 0.9, 0.9), label, f"{side}x{side}", bus)]  # fmt: skip
    for small, large, same_width in ((0.95, 0.95, 0.5), (0.85, 0.85, 0.98)):
        claims = check_claims(table1, networks(small, large, same_width), [])
        about = {c.claim: c for c in claims if c.section == "V-C"}
        assert len(about) == 3
        assert {c.holds for c in about.values()} == {small > 0.9}
        (narrow,) = (c for c in about.values() if "with 4 bytes" in c.claim)
        assert (
            f"32x32 {small:.1%} (over 90 % up to {16 if small > 0.9 else 0} cores)"
            in narrow.measured
        )
