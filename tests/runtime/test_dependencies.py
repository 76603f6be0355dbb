"""Which step of a plan waits for which."""

from __future__ import annotations

from runtime.test_plan import MIXED, make

from sardonyx.runtime.dependencies import find_dependencies

BRANCHES = "graph(x: float[n]) -> (y: float[n]) {\na = Relu(x)\nb = Exp(x)\nc = Neg(a)\nd = Exp(b)\ny = Add(c, d)\n}"


def test_a_chain_has_one_step_at_a_time() -> None:
    """Each waits for the one before, and is farther from the end by one."""
    plan = make(MIXED, {"Relu", "Neg"}, {"Exp"})
    order = find_dependencies(plan)
    count = len(plan.steps)
    assert order.waits == (0, *[1] * (count - 1))
    assert order.ranks == tuple(range(count, 0, -1))
    assert order.ancestors[-1] == (1 << count - 1) - 1
    assert order.width == 1


def test_branches_do_not_wait_for_one_another() -> None:
    """The steps of two branches are ready at the same time."""
    order = find_dependencies(make(BRANCHES, {"Relu", "Neg", "Add"}, {"Exp"}))
    assert order.width > 1
    assert order.waits.count(0) > 1


def test_regions_have_the_same_makers_before_them() -> None:
    """What follows a program that makes its outputs is another region; branches beside it are not."""
    plan = make(MIXED, {"Relu", "Neg"}, {"Exp"})
    regions = find_dependencies(plan).regions
    assert [(region.start, region.steps, region.trivial) for region in regions] == [
        (0, (0,), True),
        (1, (1, 2, 3, 4), False),
        (5, (5, 6, 7), False),
    ]


def test_every_slot_knows_who_fills_and_who_reads_it() -> None:
    """Inputs are filled by nobody, outputs read by nobody, all else is freed."""
    plan = make(BRANCHES, {"Relu", "Neg", "Add"}, {"Exp"})
    order = find_dependencies(plan)
    assert [order.makers[slot] for slot in plan.inputs] == [-1]
    assert [order.readers[slot] for slot in plan.outputs] == [0]
    assert order.freed == set(range(plan.slot_count)) - {*plan.inputs, *plan.outputs}
