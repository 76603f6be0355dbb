"""Measured placement: for each node the provider with which the whole graph is predicted to take least time.

A node's cost on a provider is its share of what a partition there took, so that what fusion saves is counted. Bringing a value to
another provider costs a copy where memories differ, and what being at the border of a partition costs the nodes on both sides: half
of what they take more by themselves, where both sides are borders. `schedule.py` looks for the least time; where it gains less than
`LEAST_GAIN` over the best single provider, or was no faster when it was measured, that provider gets all that it can run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Graph, Node, Value
from sardonyx.ir.graph import User
from sardonyx.partition.claims import ClaimTable
from sardonyx.partition.cut import node_reads
from sardonyx.partition.profile import Profile, key_of_graph, value_bytes
from sardonyx.partition.schedule import HOST_SIDE, Choice, Flow, Problem, duration, least_sum, least_time, total
from sardonyx.provider import HOST, Provider

__all__ = ["LEAST_GAIN", "LEAST_MEASURED_GAIN", "MEASURED", "Prediction", "calibrated", "is_worth_it", "predict"]

LEAST_GAIN = 0.05
"""The part of the time that a choice must save over the best single provider to be taken."""
LEAST_MEASURED_GAIN = 0.03
"""The part of the time that it must have saved when it was measured."""
MEASURED = "measured"
"""What a profile calls the time of a graph that was placed by it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Prediction:
    """A choice of providers, and what it is predicted to take."""

    placed: dict[Node, str]
    """Node -> its provider; nodes that nobody was measured on are left to the order of the providers."""
    seconds: float
    """The time of this choice."""
    single: str
    """The provider that is best where it gets all that it can run."""
    single_seconds: float
    """The time of that."""
    is_single: bool
    """Whether the choice is that single provider."""


def predict(
    graph: Graph,
    providers: Sequence[Provider],
    claims: ClaimTable,
    profile: Profile,
    pinned: Mapping[Node, str] | None = None,
    *,
    parallel: bool = False,
) -> Prediction:
    """Choose a provider for each node of `graph` (not of its subgraphs) by what `profile` says.

    Args:
        graph: the optimized graph, before the layout step.
        providers: the session's, in their order.
        claims: theirs of `graph`.
        profile: what was measured.
        pinned: nodes whose provider the user has chosen.
        parallel: whether branches run at once, so that the end of the last counts, not the sum.
    """
    tasks, problem, single = _problem(graph, providers, claims, profile, pinned or {})
    places = {provider.name: provider.memory.name for provider in providers}

    def price(choice: Choice) -> float:
        return duration(problem, choice, places) if parallel else total(problem, choice)

    starts = list(single.values())
    best = least_time(problem, places, starts) if parallel else least_sum(problem, starts)
    known = profile.models.get(key_of_graph(graph), {})
    fastest = _fastest_single({name: price(choice) for name, choice in single.items()}, known)
    prices = price(best), price(single[fastest]) if fastest else 0.0
    is_single = bool(fastest) and (prices[0] > (1 - LEAST_GAIN) * prices[1] or (MEASURED in known and not is_worth_it(known)))
    chosen = single[fastest] if is_single else best
    placed = dict(zip(tasks, chosen, strict=True))
    return Prediction(placed, prices[1] if is_single else prices[0], fastest, prices[1], is_single)


def calibrated(
    graph: Graph, providers: Sequence[Provider], claims: ClaimTable, profile: Profile, times_us: Mapping[str, float]
) -> Profile:
    """Return `profile` with what each provider takes set right by whole runs, where most of such a run is its own.

    Args:
        graph: the graph that was run.
        providers: the session's.
        claims: theirs of `graph`.
        profile: what was measured by pieces.
        times_us: provider -> what a run took with it first.
    """
    _, problem, single = _problem(graph, providers, claims, profile, {})
    factors: dict[str, float] = {}
    for name, choice in single.items():
        whole = total(problem, choice)
        own = sum(seconds[name] for seconds, other in zip(problem.seconds, choice, strict=True) if other == name)
        if name in times_us and own > whole / 2:
            factors[name] = min(4.0, max(0.25, times_us[name] / 1e6 / whole))
    samples = [
        dataclasses.replace(sample, alone_us=factor * sample.alone_us, inside_us=factor * sample.inside_us)
        for sample in profile.samples
        for factor in (factors.get(sample.provider, 1.0),)
    ]
    return dataclasses.replace(profile, samples=tuple(samples))


def _problem(
    graph: Graph, providers: Sequence[Provider], claims: ClaimTable, profile: Profile, pinned: Mapping[Node, str]
) -> tuple[list[Node], Problem, dict[str, Choice]]:
    """Return the nodes that somebody claims, the choice to be made for them, and for each provider the choice that gives it all."""
    order = [provider.name for provider in providers]
    tasks = [node for node in graph if claims.providers_of(node)]
    seconds = [_seconds(node, claims.providers_of(node), profile, pinned) for node in tasks]
    problem = Problem(seconds, _flows(graph, tasks, profile), _Transfers(providers, tasks, profile))
    return tasks, problem, {name: _first_on(problem, name, order) for name in order if claims.nodes[name]}


def _seconds(node: Node, able: Sequence[str], profile: Profile, pinned: Mapping[Node, str]) -> dict[str, float]:
    able = [name for name in able if name == pinned.get(node)] or able
    times = {name: profile.inside_us(name, node) for name in able}
    found = {name: time_us / 1e6 for name, time_us in times.items() if time_us is not None}
    return found or {able[0]: 0.0}


def _first_on(problem: Problem, name: str, order: Sequence[str]) -> Choice:
    ranks = {other: rank for rank, other in enumerate(dict.fromkeys([name, *order]))}
    return tuple(min(seconds, key=ranks.__getitem__) for seconds in problem.seconds)


def _fastest_single(predicted: Mapping[str, float], known: Mapping[str, float]) -> str:
    measured = {name: time_us for name, time_us in known.items() if name in predicted}
    times = measured if len(measured) == len(predicted) else predicted
    return min(times, key=times.__getitem__, default="")


def is_worth_it(times_us: Mapping[str, float]) -> bool:
    """Return whether a graph placed by its profile was measured to be faster than with any provider first, beyond chance."""
    singles = [time_us for name, time_us in times_us.items() if name != MEASURED]
    return not singles or times_us[MEASURED] < (1 - LEAST_MEASURED_GAIN) * min(singles)


def _flows(graph: Graph, tasks: Sequence[Node], profile: Profile) -> list[Flow]:
    number = {node: index for index, node in enumerate(tasks)}
    readers: dict[Value, list[int]] = {}
    for node, index in number.items():
        for value in node_reads(node):
            if value.constant is None:
                readers.setdefault(value, []).append(index)
    flows = [
        Flow(None, tuple(who), value_bytes(value, profile.sizes))
        for value, who in readers.items()
        if value.producer is None or value.producer not in number
    ]
    outputs: set[User] = {graph}
    for node, index in number.items():
        for value, size_bytes in zip(node.outputs, profile.output_bytes(node), strict=True):
            is_result = any(user in outputs for user, _ in value.uses)
            if value in readers or is_result:
                flows.append(Flow(index, tuple(readers.get(value, ())), size_bytes, is_result))
    return flows


class _Transfers:
    """What it takes to bring a value to another provider."""

    def __init__(self, providers: Sequence[Provider], tasks: Sequence[Node], profile: Profile) -> None:
        self._memory = {provider.name: provider.memory.name for provider in providers} | {HOST_SIDE: HOST.name}
        self._tasks, self._profile = tasks, profile
        self._borders: dict[tuple[str, int], float] = {}

    def __call__(self, source: str, target: str, flow: Flow) -> float:
        here, there = self._memory[source], self._memory[target]
        time_us = 0.0
        if HOST_SIDE not in (source, target) and flow.producer is not None:
            time_us += self._border_us(source, flow.producer)
            time_us += max((self._border_us(target, reader) for reader in flow.readers), default=0.0)
        if here != there:
            time_us += 0.0 if here == HOST.name else self._profile.copy_us(here, flow.size_bytes, to_host=True)
            time_us += 0.0 if there == HOST.name else self._profile.copy_us(there, flow.size_bytes, to_host=False)
        return time_us / 1e6

    def _border_us(self, provider: str, task: int) -> float:
        """Return what one border of a partition next to this node costs.

        At least half of what a partition costs before any work.
        """
        key = provider, task
        if key not in self._borders:
            step_us = self._profile.steps_us.get(provider, 0.0)
            saved_us = self._profile.saved_us(provider, self._tasks[task])
            self._borders[key] = self._profile.border_factor * max(step_us, saved_us) / 2
        return self._borders[key]
