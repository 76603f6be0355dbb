"""Choosing a provider for each task so that the predicted time is least: algorithms alone, which know neither nodes nor devices.

Time is the sum of what the tasks take on their providers and of what it takes to bring each value once to each provider that reads
it. Where the tasks form a chain, the least sum is found by dynamic programming. Else two providers at a time exchange their
tasks in the best of all ways, which is a minimum cut, until no exchange gains anything; with two providers this is the least sum.

Where branches run at once, time is when the last task ends. Chains are kept together and placed by HEFT (Topcuoglu, Hariri, Wu,
2002, "Performance-effective and low-complexity task scheduling"): in the order of how long the way to the end is, each where it
ends first. The result is the better of that and of the least sum, in this time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.partition.min_cut import INFINITE, Network

__all__ = ["HOST_SIDE", "Choice", "Flow", "Problem", "duration", "least_sum", "least_time", "total"]

HOST_SIDE = ""
"""Where the values of a feed come from and results go to, among the names of providers."""
_TICKS_PER_SECOND = 1e12

Choice: TypeAlias = tuple[str, ...]
"""For each task the name of its provider."""


@dataclasses.dataclass(frozen=True, slots=True)
class Flow:
    """A value: who makes it, who reads it."""

    producer: int | None
    """The task that makes it; None for what is fed."""
    readers: tuple[int, ...]
    """The tasks that read it."""
    size_bytes: float
    """How large it is."""
    is_result: bool = False
    """Whether the host reads it too."""


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """Tasks in topological order, and what flows between them."""

    seconds: Sequence[Mapping[str, float]]
    """For each task what it takes on each provider that can run it; every task has one at least."""
    flows: Sequence[Flow]
    """The values."""
    transfer: Callable[[str, str, Flow], float]
    """The seconds that it takes to bring a value from one provider, or the host, to another."""

    @property
    def providers(self) -> list[str]:
        """All that can run some task."""
        return list(dict.fromkeys(name for seconds in self.seconds for name in seconds))


def total(problem: Problem, choice: Sequence[str]) -> float:
    """Return how long the tasks take one after the other, with the transfers."""
    work = sum(seconds[name] for seconds, name in zip(problem.seconds, choice, strict=True))
    return work + sum(
        problem.transfer(_source(flow, choice), target, flow) for flow in problem.flows for target in _targets(flow, choice)
    )


def _source(flow: Flow, choice: Sequence[str]) -> str:
    return HOST_SIDE if flow.producer is None else choice[flow.producer]


def _targets(flow: Flow, choice: Sequence[str]) -> list[str]:
    wanted = [choice[reader] for reader in flow.readers] + ([HOST_SIDE] if flow.is_result else [])
    return [name for name in dict.fromkeys(wanted) if name != _source(flow, choice)]


def least_sum(problem: Problem, starts: Sequence[Sequence[str]] = ()) -> Choice:
    """Return the choice of the least total: exact for a chain and for two providers, else a least one near the best of the starts.

    Args:
        problem: what to choose for.
        starts: choices to begin with, besides each provider for all that it can run.
    """
    if _is_chain(problem):
        return _least_of_chain(problem)
    begun = [tuple(start) for start in starts] + [_all_on(problem, name) for name in problem.providers]
    pairs = list(itertools.combinations(problem.providers, 2))
    found = [_exchanged(problem, start, pairs) for start in (begun if len(pairs) > 1 else begun[:1])]
    return min(found, key=lambda choice: total(problem, choice), default=())


def _all_on(problem: Problem, name: str) -> Choice:
    return tuple(name if name in seconds else min(seconds, key=seconds.__getitem__) for seconds in problem.seconds)


def _is_chain(problem: Problem) -> bool:
    """Return whether each task reads only what is fed to it alone, and the value of the task before it, which nobody else reads."""
    for flow in problem.flows:
        following = None if flow.producer is None else flow.producer + 1
        if len(flow.readers) > 1 or (following is not None and flow.readers not in ((), (following,))):
            return False
    return True


def _least_of_chain(problem: Problem) -> Choice:
    """Solve by dynamic programming: for each task and provider the least sum up to there, and the provider before."""
    given: list[list[Flow]] = [[] for _ in problem.seconds]
    made: list[list[Flow]] = [[] for _ in problem.seconds]
    for flow in problem.flows:
        if flow.producer is not None:
            made[flow.producer].append(flow)
        elif flow.readers:
            given[flow.readers[0]].append(flow)
    best: dict[str, tuple[float, Choice]] = {HOST_SIDE: (0.0, ())}
    for task, seconds in enumerate(problem.seconds):
        following: dict[str, tuple[float, Choice]] = {}
        for name, own in seconds.items():
            fixed = own + sum(problem.transfer(HOST_SIDE, name, flow) for flow in given[task])
            fixed += sum(problem.transfer(name, HOST_SIDE, flow) for flow in made[task] if flow.is_result)
            between = [flow for flow in made[task - 1] if flow.readers] if task else []
            following[name] = min(
                (before + fixed + sum(problem.transfer(last, name, flow) for flow in between if last != name), (*path, name))
                for last, (before, path) in best.items()
            )
        best = following
    return min(best.values())[1]


def _exchanged(problem: Problem, start: Choice, pairs: Sequence[tuple[str, str]]) -> Choice:
    choice, price = start, total(problem, start)
    gained = True
    while gained:
        gained = False
        for first, second in pairs:
            other = _exchange(problem, choice, first, second)
            new = total(problem, other)
            if new < price * (1 - 1e-9):
                choice, price, gained = other, new, True
    return choice


def _exchange(problem: Problem, choice: Choice, first: str, second: str) -> Choice:
    """Divide the tasks of two providers anew between the two; those of others stay.

    A least cut: the source's side is `first`. A task on one side pays an edge to the other of what it takes there. For each value a
    vertex stands for "somebody reads it on this side", tied to the readers by edges that are never cut.
    """
    network = Network()
    vertices: dict[int, int] = {}
    for task, name in enumerate(choice):
        if name in (first, second):
            vertices[task] = vertex = network.add_vertex()
            seconds = problem.seconds[task]
            network.add_edge(vertex, 1, _ticks(seconds.get(first, math.inf)))
            network.add_edge(0, vertex, _ticks(seconds.get(second, math.inf)))
    for flow in problem.flows:
        _add_flow(network, problem, flow, choice, vertices, first, second)
    side = network.cut()
    return tuple(name if task not in vertices else first if side[vertices[task]] else second for task, name in enumerate(choice))


def _add_flow(
    network: Network, problem: Problem, flow: Flow, choice: Choice, vertices: Mapping[int, int], first: str, second: str
) -> None:
    def price(source: str, target: str) -> int:
        return 0 if source == target else _ticks(problem.transfer(source, target, flow))

    moving = [vertices[reader] for reader in dict.fromkeys(flow.readers) if reader in vertices]
    maker = None if flow.producer is None else vertices.get(flow.producer)
    if maker is not None:
        fixed = {choice[reader] for reader in flow.readers if reader not in vertices} | ({HOST_SIDE} if flow.is_result else set())
        network.add_edge(maker, 1, sum(price(first, target) for target in fixed))
        network.add_edge(0, maker, sum(price(second, target) for target in fixed))
    if not moving:
        return
    source = _source(flow, choice)
    read_by_first, read_by_second = network.add_vertex(), network.add_vertex()
    for vertex in moving:
        network.add_edge(vertex, read_by_first, INFINITE)
        network.add_edge(read_by_second, vertex, INFINITE)
    network.add_edge(read_by_first, 1 if maker is None else maker, price(source if maker is None else second, first))
    network.add_edge(0 if maker is None else maker, read_by_second, price(source if maker is None else first, second))


def _ticks(seconds: float) -> int:
    return INFINITE if math.isinf(seconds) else round(seconds * _TICKS_PER_SECOND)


def duration(problem: Problem, choice: Sequence[str], places: Mapping[str, str]) -> float:
    """Return when the last task ends where branches run at once.

    Args:
        problem: the tasks.
        choice: their providers.
        places: provider -> what it computes on; two of one place take turns.
    """
    fixed = [{name: seconds[name]} for seconds, name in zip(problem.seconds, choice, strict=True)]
    return _heft(dataclasses.replace(problem, seconds=fixed), places)[1]


def least_time(problem: Problem, places: Mapping[str, str], starts: Sequence[Sequence[str]] = ()) -> Choice:
    """Return the choice of the least duration among HEFT's with chains kept together, that of the least sum, and the starts."""
    candidates = [_heft(problem, places)[0], least_sum(problem, starts), *(tuple(start) for start in starts)]
    return min(candidates, key=lambda choice: duration(problem, choice, places))


def _heft(problem: Problem, places: Mapping[str, str]) -> tuple[Choice, float]:
    count = len(problem.seconds)
    reads: list[list[Flow]] = [[] for _ in range(count)]
    made: list[list[Flow]] = [[] for _ in range(count)]
    for flow in problem.flows:
        for reader in dict.fromkeys(flow.readers):
            reads[reader].append(flow)
        if flow.producer is not None:
            made[flow.producer].append(flow)
    groups = _chains(problem, reads, made)
    choice = [HOST_SIDE] * count
    end = [0.0] * count
    present: dict[tuple[int, str], float] = {}
    free: dict[str, float] = {}

    def arrival(flow: Flow, name: str) -> float:
        source = _source(flow, choice)
        made_at = 0.0 if flow.producer is None else end[flow.producer]
        moved = 0.0 if source == name else problem.transfer(source, name, flow)
        return min(present.get((id(flow), name), math.inf), made_at + moved)

    for group in sorted(groups, key=_ranks(problem, groups, made).__getitem__):
        own = set(group)
        entering = [flow for task in group for flow in reads[task] if flow.producer not in own]
        finish: dict[str, float] = {}
        for name in problem.seconds[group[0]]:
            ready = max((arrival(flow, name) for flow in entering), default=0.0)
            work = sum(problem.seconds[task][name] for task in group)
            back = sum(problem.transfer(name, HOST_SIDE, flow) for task in group for flow in made[task] if flow.is_result)
            finish[name] = max(ready, free.get(places.get(name, name), 0.0)) + work + back
        best = min(finish, key=finish.__getitem__)
        for flow in entering:
            present[id(flow), best] = arrival(flow, best)
        for task in group:
            choice[task], end[task] = best, finish[best]
        free[places.get(best, best)] = finish[best]
    return tuple(choice), max(end, default=0.0)


def _chains(problem: Problem, reads: Sequence[Sequence[Flow]], made: Sequence[Sequence[Flow]]) -> list[tuple[int, ...]]:
    """Return maximal runs of tasks that the same providers can run.

    Each task is the only reader of the one before and reads nothing else.
    """
    chains: list[list[int]] = []
    chain_of: dict[int, list[int]] = {}
    for task in range(len(problem.seconds)):
        before = {flow.producer for flow in reads[task]}
        (last,) = before if len(before) == 1 else (None,)
        joins = last is not None and problem.seconds[last].keys() == problem.seconds[task].keys() and chain_of[last][-1] == last
        if joins and last is not None and {reader for flow in made[last] for reader in flow.readers} == {task}:
            chain_of[task] = chain_of[last]
            chain_of[task].append(task)
        else:
            chain_of[task] = [task]
            chains.append(chain_of[task])
    return [tuple(chain) for chain in chains]


def _ranks(problem: Problem, groups: Sequence[tuple[int, ...]], made: Sequence[Sequence[Flow]]) -> dict[tuple[int, ...], float]:
    """Return for each group minus the mean time from its start to the end of all: the order of HEFT, which is topological."""
    group_of = {task: group for group in groups for task in group}
    providers = [*problem.providers, HOST_SIDE]
    pairs = [(source, target) for source in providers for target in providers if source != target]
    ranks: dict[tuple[int, ...], float] = {}
    for group in sorted(groups, key=lambda item: -item[-1]):
        later = 0.0
        for flow in (flow for task in group for flow in made[task]):
            moved = sum(problem.transfer(source, target, flow) for source, target in pairs) / len(pairs)
            later = max([later, *(moved - ranks[group_of[reader]] for reader in flow.readers if group_of[reader] is not group)])
        work = sum(sum(problem.seconds[task].values()) / len(problem.seconds[task]) for task in group)
        ranks[group] = -(work + later) - 1e-12
    return ranks
