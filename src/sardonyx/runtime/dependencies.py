"""Which step of a plan waits for which, for executors that do not keep to the plan's order.

A region is the set of steps that have the same ancestors among the programs that make their outputs. The shapes of all its steps
are known as soon as those ancestors have run, which each of its steps waits for anyway: so a region is bound as a whole, when its
first step is ready, and nothing waits for the binding.
"""

from __future__ import annotations

import collections

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.runtime.plan import Plan, ProgramStep, Step, needs_no_shapes

__all__ = ["BindingRegion", "Dependencies", "find_dependencies", "reads_of", "writes_of"]


@dataclasses.dataclass(frozen=True, slots=True)
class BindingRegion:
    """Steps that are bound as a whole."""

    start: int
    """Index of the first step, which names the region."""
    steps: tuple[int, ...]
    """Indices of all, in the plan's order."""
    entries: tuple[int, ...]
    """Slots that they read and that come from elsewhere."""
    trivial: bool
    """Whether it is one program that makes its own outputs, so that shapes need not be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class Dependencies:
    """The order that must be kept; immutable."""

    waits: tuple[int, ...]
    """For each step how many steps it waits for directly."""
    followers: tuple[tuple[int, ...], ...]
    """For each step those that wait for it directly."""
    ancestors: tuple[int, ...]
    """For each step the set of those before it, as bits by their index."""
    ranks: tuple[int, ...]
    """For each step how many steps are on the longest way from it to the end."""
    makers: tuple[int, ...]
    """For each slot the step that fills it; -1 for inputs, captures and constants."""
    readers: tuple[int, ...]
    """For each slot the set of steps that read it, as bits by their index."""
    freed: frozenset[int]
    """Slots that are let go of after the last of their readers."""
    regions: tuple[BindingRegion, ...]
    """The regions, covering all steps."""
    region_of: tuple[int, ...]
    """For each step its region, by its place in `regions`."""
    width: int
    """How many steps have the same distance from the inputs, at most: how many are worth running at a time."""


def find_dependencies(plan: Plan) -> Dependencies:
    """Find them; O(steps + edges), with sets as wide as the number of steps."""
    steps = plan.steps
    makers = _makers(plan)
    needs = [tuple(dict.fromkeys(makers[slot] for slot in reads_of(step) if makers[slot] >= 0)) for step in steps]
    ancestors = _ancestors(needs)
    followers: list[list[int]] = [[] for _ in steps]
    for index, before in enumerate(needs):
        for other in before:
            followers[other].append(index)
    readers = [0] * plan.slot_count
    for index, step in enumerate(steps):
        for slot in reads_of(step):
            readers[slot] |= 1 << index
    regions, region_of = _regions(plan, ancestors)
    return Dependencies(
        waits=tuple(map(len, needs)),
        followers=tuple(map(tuple, followers)),
        ancestors=ancestors,
        ranks=_ranks(followers),
        makers=makers,
        readers=tuple(readers),
        freed=frozenset(slot for step in steps for slot in step.frees),
        regions=regions,
        region_of=region_of,
        width=_width(needs),
    )


def reads_of(step: Step) -> tuple[int, ...]:
    """Return the slots that a step reads."""
    return step.inputs if isinstance(step, ProgramStep) else (step.source,)


def writes_of(step: Step) -> tuple[int, ...]:
    """Return the slots that a step fills."""
    return step.outputs if isinstance(step, ProgramStep) else (step.target,)


def _makers(plan: Plan) -> tuple[int, ...]:
    makers = [-1] * plan.slot_count
    for index, step in enumerate(plan.steps):
        for slot in writes_of(step):
            makers[slot] = index
    return tuple(makers)


def _ancestors(needs: list[tuple[int, ...]]) -> tuple[int, ...]:
    found: list[int] = []
    for before in needs:
        mask = 0
        for other in before:
            mask |= found[other] | 1 << other
        found.append(mask)
    return tuple(found)


def _ranks(followers: list[list[int]]) -> tuple[int, ...]:
    ranks = [1] * len(followers)
    for index in reversed(range(len(followers))):
        ranks[index] = 1 + max((ranks[other] for other in followers[index]), default=0)
    return tuple(ranks)


def _width(needs: list[tuple[int, ...]]) -> int:
    depths: list[int] = []
    for before in needs:
        depths.append(1 + max((depths[other] for other in before), default=0))
    return max(collections.Counter(depths).values(), default=0)


def _regions(plan: Plan, ancestors: tuple[int, ...]) -> tuple[tuple[BindingRegion, ...], tuple[int, ...]]:
    makers = sum(1 << index for index, step in enumerate(plan.steps) if _makes_outputs(step))
    groups: dict[int, list[int]] = {}
    for index in range(len(plan.steps)):
        groups.setdefault(ancestors[index] & makers, []).append(index)
    place = {steps[0]: number for number, steps in enumerate(groups.values())}
    region_of = tuple(place[groups[mask & makers][0]] for mask in ancestors)
    return tuple(_region(plan, steps) for steps in groups.values()), region_of


def _region(plan: Plan, indices: list[int]) -> BindingRegion:
    made = {slot for index in indices for slot in writes_of(plan.steps[index])}
    entries = dict.fromkeys(slot for index in indices for slot in reads_of(plan.steps[index]) if slot not in made)
    trivial = len(indices) == 1 and needs_no_shapes(plan.steps[indices[0]])
    return BindingRegion(indices[0], tuple(indices), tuple(entries), trivial)


def _makes_outputs(step: Step) -> bool:
    return isinstance(step, ProgramStep) and step.program.makes_outputs
