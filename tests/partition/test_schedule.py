"""Choosing providers on made-up costs, against every choice there is."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

import pytest

from sardonyx.partition.schedule import HOST_SIDE, Flow, Problem, duration, least_sum, least_time, total

FREE = {"A": "a", "B": "b", "C": "c"}


def _transfer(source: str, target: str, flow: Flow) -> float:
    """C is far away; A lives on the host."""
    far = {"A": 0.0, HOST_SIDE: 0.0, "B": 1.0, "C": 3.0}
    return 0.1 + (far[source] + far[target]) * flow.size_bytes


def _chain(draw: random.Random, providers: str, count: int) -> Problem:
    flows = [Flow(None, (0,), draw.random())]
    flows += [Flow(task, (task + 1,), draw.random()) for task in range(count - 1)]
    flows += [Flow(count - 1, (), draw.random(), is_result=True), Flow(None, (count // 2,), draw.random())]
    return Problem([_costs(draw, providers) for _ in range(count)], flows, _transfer)


def _graph(draw: random.Random, providers: str, count: int) -> Problem:
    flows = [Flow(None, tuple(sorted(draw.sample(range(count), 2))), draw.random())]
    for task in range(count):
        later = range(task + 1, count)
        readers = tuple(sorted(draw.sample(later, min(len(later), draw.randrange(3)))))
        flows.append(Flow(task, readers, draw.random(), is_result=not readers or draw.random() < 0.2))
    return Problem([_costs(draw, providers) for _ in range(count)], flows, _transfer)


def _costs(draw: random.Random, providers: str) -> Mapping[str, float]:
    able = [name for name in providers if draw.random() < 0.8] or [providers[0]]
    return {name: 3 * draw.random() for name in able}


def _best(problem: Problem) -> float:
    return min(total(problem, choice) for choice in itertools.product(*problem.seconds))


@pytest.mark.parametrize("seed", range(20))
def test_a_chain_gets_the_least_sum(seed: int) -> None:
    """By dynamic programming, with three providers."""
    problem = _chain(random.Random(seed), "ABC", 7)
    assert total(problem, least_sum(problem)) == pytest.approx(_best(problem))


@pytest.mark.parametrize("seed", range(20))
def test_two_providers_get_the_least_sum_on_any_graph(seed: int) -> None:
    """By a minimum cut."""
    problem = _graph(random.Random(seed), "AC", 9)
    assert total(problem, least_sum(problem)) == pytest.approx(_best(problem))


def test_three_providers_come_near_the_least_sum() -> None:
    """Over 40 random graphs nearly always the least, and never worse than one provider for all."""
    exact = 0
    for seed in range(40):
        problem = _graph(random.Random(seed), "ABC", 7)
        found, best = total(problem, least_sum(problem)), _best(problem)
        assert found <= 1.1 * best
        exact += found == pytest.approx(best)
    assert exact >= 36


def test_a_value_is_brought_once_to_each_reader() -> None:
    """Two readers of one provider share the copy; the producer's own copy costs nothing."""
    problem = Problem([{"A": 1.0}, {"B": 1.0}, {"B": 1.0}, {"A": 1.0}], [Flow(0, (1, 2, 3), 2.0)], _transfer)
    assert total(problem, "ABBA") == pytest.approx(4 + 0.1 + 2.0)


def test_results_come_back_to_the_host() -> None:
    """What is fed has to get to its provider, too."""
    problem = Problem([{"B": 1.0}], [Flow(None, (0,), 1.0), Flow(0, (), 2.0, is_result=True)], _transfer)
    assert total(problem, "B") == pytest.approx(1 + (0.1 + 1) + (0.1 + 2))


def test_tasks_of_one_place_take_turns_and_others_do_not() -> None:
    """Two branches on two devices take as long as the longer."""
    problem = Problem([{"A": 2.0}, {"B": 3.0}], [], _transfer)
    assert duration(problem, "AB", FREE) == pytest.approx(3)
    assert duration(problem, "AB", {"A": "a", "B": "a"}) == pytest.approx(5)


def test_branches_are_spread_over_places() -> None:
    """Where that ends sooner; a chain stays together."""
    tasks = [{"A": 2.0, "B": 2.1}] * 4
    flows = [Flow(0, (1,), 0.0), Flow(2, (3,), 0.0)]
    problem = Problem(tasks, flows, lambda source, target, flow: 0.0 if target == HOST_SIDE else 0.1)
    choice = least_time(problem, FREE)
    assert choice[0] == choice[1] != choice[2] == choice[3]
    assert duration(problem, choice, FREE) == pytest.approx(4.2)


@pytest.mark.parametrize("seed", range(10))
def test_the_least_time_is_never_over_that_of_one_provider(seed: int) -> None:
    """Nor over that of the start."""
    problem = _graph(random.Random(seed), "ABC", 12)
    start = [next(iter(seconds)) for seconds in problem.seconds]
    found = duration(problem, least_time(problem, FREE, [start]), FREE)
    assert found <= duration(problem, start, FREE) + 1e-9


def test_large_graphs_take_little_time() -> None:
    """A thousand tasks on three providers; the answer is no worse than each alone."""
    problem = _graph(random.Random(1), "ABC", 1000)
    found = total(problem, least_sum(problem))
    for name in "ABC":
        alone = [name if name in seconds else min(seconds, key=seconds.__getitem__) for seconds in problem.seconds]
        assert found <= total(problem, alone) + 1e-9


def test_nothing_to_choose() -> None:
    """No tasks, no choice."""
    assert least_sum(Problem([], [], _transfer)) == ()
    assert least_time(Problem([], [], _transfer), FREE) == ()
