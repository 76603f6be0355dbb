"""Binding of regions: memory may be shared by two tensors only where every order of the steps keeps them apart.

a ─► b ─► c        c may take the place of a: it is made after b, the last reader of a, in any order
  └► d             d may not: it may run before b has
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from sardonyx.arena import place_apart
from sardonyx.runtime.bind import Binder, Binding, Shapes, Tenant, bind_steps
from sardonyx.runtime.dependencies import BindingRegion, Dependencies
from sardonyx.runtime.plan import Plan
from sardonyx.runtime.result_memory import ResultMemory

__all__ = ["region_binder"]


def region_binder(
    plan: Plan, order: Dependencies, results: ResultMemory | None = None, capacity: int = 64
) -> Binder[BindingRegion]:
    """Return the bindings of the regions of `plan`, whose large results lie in `results`, or in memory that nobody keeps."""
    return Binder(functools.partial(_bind_region, plan, order, results or ResultMemory(0)), capacity)


def _bind_region(plan: Plan, order: Dependencies, results: ResultMemory, region: BindingRegion, shapes: Shapes) -> Binding:
    inside = sum(1 << index for index in region.steps)
    given_out = set(plan.outputs)

    def is_local(slot: int) -> bool:
        return slot not in given_out and not order.readers[slot] & ~inside

    def place_by_order(tenants: Sequence[Tenant]) -> tuple[list[int], int]:
        used = [1 << tenant.step | (0 if tenant.slot is None else order.readers[tenant.slot]) for tenant in tenants]
        before = [order.ancestors[tenant.step] for tenant in tenants]
        places = range(len(tenants))
        apart = [sum(1 << other for other in places if _may_overlap(index, other, used, before)) for index in places]
        return place_apart([tenant.size_bytes for tenant in tenants], apart)

    return bind_steps(plan, region.steps, dict(zip(region.entries, shapes, strict=True)), is_local, place_by_order, results)


def _may_overlap(left: int, right: int, used: Sequence[int], before: Sequence[int]) -> bool:
    """Return whether some order has both in use at a time: neither is done with, by all of its steps, before the other is made."""
    return bool(used[left] & ~before[right]) and bool(used[right] & ~before[left])
