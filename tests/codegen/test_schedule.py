"""The schemes: every output once on every core, handed on in the right order, without a deadlock."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim.codegen.schedule import SCHEMES, Schedule, make_schedule

sizes = {
    "scheme": st.sampled_from(SCHEMES),
    "outputs": st.integers(1, 60),
    "p_v": st.integers(1, 12),
}


def play(schedule: Schedule) -> dict[int, list[int]]:
    """Run the plans with counters only; the owners of each output in order. Fails on a deadlock."""
    steps = [plan.expand() for plan in schedule.plans]
    at = [0] * len(steps)
    seq_nr = [0] * len(steps)
    owners: dict[int, list[int]] = {o: [] for o in range(schedule.outputs)}
    moved = True
    while moved:
        moved = False
        for plan, own in zip(schedule.plans, steps, strict=True):
            v = plan.vg
            while at[v] < len(own.output):
                i = at[v]
                once = not plan.each and not plan.central
                before = plan.predecessor is not None and once
                if seq_nr[v] < (1 if before else own.wait[i]):
                    break
                output = int(own.output[i])
                ahead = owners[output][-1:] == [plan.predecessor]
                if plan.central and not own.first[i] and not ahead:
                    break  # the memory has not got it
                assert own.first[i] == (not owners[output])
                owners[output].append(v)
                assert own.last[i] == (len(owners[output]) == len(steps))
                at[v] += 1
                moved = True
                done = at[v] == len(own.output)
                called = done if once else plan.each and not own.last[i]
                if plan.successor is not None and called:
                    seq_nr[plan.successor] += 1
    assert at == [len(own.output) for own in steps], "deadlock"
    return owners


@given(**sizes)
def test_every_core_owns_every_output_once_in_chain_order(
    scheme: str, outputs: int, p_v: int
) -> None:
    owners = play(make_schedule(scheme, outputs, p_v))
    for output, chain in owners.items():
        if scheme in ("sequential", "linear", "central"):
            assert chain == list(range(p_v))
            continue
        if scheme == "cyclic":
            first = output % p_v
        else:
            first = max(v for v in range(p_v) if v * outputs // p_v <= output)
        assert chain == [(first - k) % p_v for k in range(p_v)]


@given(**sizes)
def test_calls_as_the_formulas_say(scheme: str, outputs: int, p_v: int) -> None:
    per_chain = {"sequential": p_v - 1, "central": 0}.get(scheme, outputs * (p_v - 1))
    assert make_schedule(scheme, outputs, p_v).calls == per_chain


@given(**sizes)
def test_waits_equal_calls_where_cores_hand_on_each_output(
    scheme: str, outputs: int, p_v: int
) -> None:
    schedule = make_schedule(scheme, outputs, p_v)
    waits = sum(int((plan.expand().wait > 0).sum()) for plan in schedule.plans)
    assert waits == (0 if scheme in ("sequential", "central") else schedule.calls)


@given(outputs=st.integers(1, 60), p_v=st.integers(1, 12))
def test_ring_shares_first_and_last_ownership_evenly(outputs: int, p_v: int) -> None:
    steps = [plan.expand() for plan in make_schedule("ring", outputs, p_v).plans]
    for kind in ("first", "last"):
        counts = [int(getattr(own, kind).sum()) for own in steps]
        assert sum(counts) == outputs
        assert max(counts) - min(counts) <= 1


def test_the_example_of_the_paper() -> None:
    """Fig. 4: three conflicting cores, twelve outputs."""
    cyclic = make_schedule("cyclic", 12, 3)
    assert cyclic.plans[1].expand().output.tolist() == [1, 2, 0, 4, 5, 3, 7, 8, 6, 10, 11, 9]
    assert [plan.successor for plan in cyclic.plans] == [2, 0, 1]
    linear = make_schedule("linear", 12, 3)
    assert all(np.array_equal(plan.expand().output, np.arange(12)) for plan in linear.plans)
    assert [plan.successor for plan in linear.plans] == [1, 2, None]
    assert linear.calls == 12 * 2


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_single_core_has_nobody_to_wait_for(scheme: str) -> None:
    (plan,) = make_schedule(scheme, 5, 1).plans
    steps = plan.expand()
    assert plan.successor is None
    assert plan.predecessor is None
    assert steps.first.all()
    assert steps.last.all()
