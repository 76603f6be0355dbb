"""Bindings of regions: memory is shared by what no order has in use at one time."""

from __future__ import annotations

import pytest
from support.branches import SlowDevice, branching_text, plan_of

from sardonyx.provider import HOST, TensorSpec
from sardonyx.runtime.bind import size_bytes
from sardonyx.runtime.bind_regions import region_binder
from sardonyx.runtime.dependencies import find_dependencies
from sardonyx.runtime.plan import Plan, ProgramStep


def _devices() -> list[SlowDevice]:
    return [SlowDevice("A", ["Relu"]), SlowDevice("B", ["Neg"]), SlowDevice("C", ["Add"]), SlowDevice("D", ["Mul"])]


def _places(plan: Plan) -> dict[int, tuple[int, int]]:
    """For each slot in the arena of the first bound region where it begins and ends, for vectors of 1,000 elements."""
    order = find_dependencies(plan)
    region = max(order.regions, key=lambda item: len(item.steps))
    binding = region_binder(plan, order).find(region, ((1000,),) * len(region.entries))
    found = {}
    for index, sizes in zip(region.steps, binding.steps, strict=True):
        step = plan.steps[index]
        if sizes is None or not isinstance(step, ProgramStep):
            continue
        for slot, offset, spec in zip(step.outputs, sizes.offsets, sizes.bound.outputs, strict=True):
            if offset is not None and isinstance(spec, TensorSpec):
                found[slot] = offset, offset + size_bytes(spec)
    return found


def test_a_chain_needs_two_places() -> None:
    """What comes after the last reader of a tensor, in any order, may take its place."""
    text = "graph(x: float[n]) -> (y: float[n]) {\na = Relu(x)\nb = Neg(a)\nc = Relu(b)\nd = Neg(c)\ny = Relu(d)\n}"
    plan = plan_of(text, *_devices())
    assert len(set(_places(plan).values())) == 2


def test_what_is_given_out_lies_elsewhere() -> None:
    """Also where a step of the region reads it."""
    providers = _devices()
    for provider in providers:
        provider.memory = HOST
    plan = plan_of("graph(x: float[n]) -> (a: float[n], y: float[n]) {\na = Relu(x)\nb = Neg(a)\ny = Relu(b)\n}", *providers)
    places = _places(plan)
    assert len(places) == 1
    assert not places.keys() & set(plan.outputs)


def test_branches_have_places_of_their_own() -> None:
    """The plan's order would let them share: one branch is over before the other begins."""
    left_branch, right_branch = "a = Relu(x)\nb = Neg(a)\nc = Relu(b)\n", "d = Neg(x)\ne = Relu(d)\nf = Neg(e)\n"
    plan = plan_of(f"graph(x: float[n]) -> (y: float[n]) {{\n{left_branch}{right_branch}y = Add(c, f)\n}}", *_devices())
    order, places = find_dependencies(plan), _places(plan)
    for left, right in ((left, right) for left in places for right in places if left < right):
        first, second = order.makers[left], order.makers[right]
        if not (order.ancestors[first] >> second | order.ancestors[second] >> first) & 1:
            assert places[left][1] <= places[right][0] or places[right][1] <= places[left][0]


@pytest.mark.parametrize("seed", range(10))
def test_tensors_share_bytes_only_where_all_orders_keep_them_apart(seed: int) -> None:
    """Of two that overlap, all that touch one come before the other is made."""
    plan = plan_of(branching_text(seed, 40), *_devices())
    order, places = find_dependencies(plan), _places(plan)

    def is_before(left: int, right: int) -> bool:
        users = order.readers[left] | 1 << order.makers[left]
        return not users & ~order.ancestors[order.makers[right]]

    for left, right in ((left, right) for left in places for right in places if left < right):
        if places[left][0] < places[right][1] and places[right][0] < places[left][1]:
            assert is_before(left, right) or is_before(right, left)
