"""Measuring nodes and partitions by themselves, and copies.

A node, or a partition, is measured as a model of its own, on the values that it gets in a run of the whole model; copies are not
counted. What a node takes as part of a partition is its share of what the partition took, so that fusion is counted. What a
partition takes before any work shows when one small operator runs once, and in a chain.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import SardonyxError
from sardonyx.ir import Graph, Model, Node, TensorType, Value
from sardonyx.partition.assign import Unit
from sardonyx.partition.cut import cut, node_reads
from sardonyx.partition.extract import extract
from sardonyx.partition.profile import Copies, Profile, Sample, key_of, operator_of
from sardonyx.provider import Capability, Memory, Provider
from sardonyx.session.build import build
from sardonyx.session.options import GraphOptimizationLevel, SessionOptions
from sardonyx.session.settings.settings import Settings, read_settings
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source
from sardonyx.trace import event

__all__ = ["Samples", "fastest_us", "in_turns_us", "measure_copies"]

_now = time.perf_counter
"""The clock, in seconds."""

_BUDGET_S = 0.03
"""How long one node is run; a partition five times as long."""
_COPY_BYTES = (1 << 10, 1 << 16, 1 << 20, 1 << 23)
_SMALL_OPERATORS = ("Relu", "Neg", "Sigmoid", "Tanh", "Abs", "Exp", "Identity")
_CHAIN = 5
_LEAST_RUNS = 5
_LEAST_US = 0.05
"""What a node costs at least: none is free."""


class Samples:
    """Nodes and partitions of one model, measured by themselves."""

    def __init__(self, model: Model, providers: Sequence[Provider], values: Mapping[Value, OnnxValue], copies: Profile) -> None:
        self._model, self._providers, self._values, self._copies = model, providers, values, copies
        self._reference, self._settings = providers[-1], _unoptimized()
        self.found: dict[tuple[str, str], Sample] = {}
        self.steps_us: dict[str, float] = {}

    def measure(self, claims: Mapping[str, AbstractSet[Node]], tell: Callable[[str], None]) -> None:
        """Fill `found`."""
        seen: set[str] = set()
        for node in self._model.graph:
            if key_of(node) in seen or not self._can_measure([node]):
                continue
            seen.add(key_of(node))
            tell(f"{operator_of(node)} {node.name}")
            for provider in self._providers:
                if node in claims[provider.name]:
                    self._measure_node(provider, node)
        for provider in self._providers:
            tell(f"partitions on {provider.name}")
            self._measure_partitions(provider, claims)

    def _step_us(self, provider: Provider) -> float:
        """Return what a partition of `provider` takes besides its nodes: a chain of an operator shows the difference."""
        for operator in _SMALL_OPERATORS:
            once_us = self._time_chain(provider, operator, 1)
            often_us = None if once_us is None else self._time_chain(provider, operator, _CHAIN)
            if once_us is not None and often_us is not None:
                node_us = max(0.0, (often_us - once_us) / (_CHAIN - 1))
                return max(0.0, once_us - node_us)
        cheapest_us = min((sample.alone_us for sample in self.found.values() if sample.provider == provider.name), default=0.0)
        return cheapest_us / 2

    def _time_chain(self, provider: Provider, operator: str, count: int) -> float | None:
        kind = TensorType(DataType.FLOAT, (1, 64))
        value = Value("x", kind)
        graph = Graph("chain", [value])
        for number in range(count):
            value = graph.append(Node(operator, [value], 1, version=13, name=f"node{number}")).output
            value.name, value.type = f"value{number}", kind
        graph.add_output(value)
        array = np.ones((1, 64), np.float32)
        return self._time_model(provider, Model(graph, {"": 13}), [array], self._copied_us(provider, [array], [array]), _BUDGET_S)

    def _measure_node(self, provider: Provider, node: Node) -> None:
        taken_us = self._time(provider, [node], [value for value in node.outputs if value.use_count])
        if taken_us is None:
            return
        makes = [_bytes(self._values.get(value)) for value in node.outputs]
        reads = [
            _bytes(value.constant.numpy() if value.constant is not None else self._values.get(value))
            for value in node.inputs
            if value is not None
        ]
        key = key_of(node)
        size_bytes = sum(makes) + sum(reads)
        self.found[provider.name, key] = Sample(provider.name, operator_of(node), key, size_bytes, taken_us, taken_us, tuple(makes))

    def _measure_partitions(self, provider: Provider, claims: Mapping[str, AbstractSet[Node]]) -> None:
        """Replace what nodes take by themselves by their shares of whole partitions."""
        self.steps_us[provider.name] = step_us = self._step_us(provider)
        shares: dict[str, list[float]] = {}
        measured: dict[tuple[str, ...], float | None] = {}
        for nodes, outputs in self._partitions(provider, claims):
            keys = tuple(key_of(node) for node in nodes)
            samples = [self.found.get((provider.name, key)) for key in keys]
            if len(nodes) < 2 or not self._can_measure(nodes) or None in samples:
                continue
            if keys not in measured:
                measured[keys] = self._time(provider, nodes, outputs, 5 * _BUDGET_S)
            whole_us = measured[keys]
            alone = [max(sample.alone_us - step_us, _LEAST_US) for sample in samples if sample is not None]
            if whole_us is not None:
                factor = max(whole_us - step_us, _LEAST_US) / sum(alone)
                for key, taken_us in zip(keys, alone, strict=True):
                    shares.setdefault(key, []).append(factor * taken_us)
        for (name, key), sample in self.found.items():
            if name == provider.name:
                inside_us = statistics.fmean(shares[key]) if key in shares else max(sample.alone_us - step_us, _LEAST_US)
                self.found[name, key] = dataclasses.replace(sample, inside_us=inside_us)

    def _partitions(
        self, provider: Provider, claims: Mapping[str, AbstractSet[Node]]
    ) -> Iterable[tuple[Sequence[Node], Sequence[Value]]]:
        """Return the nodes and outputs of the partitions that a provider gets where it gets all that it claims."""
        mine = claims[provider.name]
        units = {node: Unit(provider if node in mine else self._other(provider), Capability((node,))) for node in self._model.graph}
        parts, _ = cut(self._model.graph, units)
        return [(part.partition.nodes, part.partition.outputs) for part in parts if part.provider is provider]

    def _other(self, provider: Provider) -> Provider:
        return next((other for other in reversed(self._providers) if other is not provider), provider)

    def _can_measure(self, nodes: Sequence[Node]) -> bool:
        for node in nodes:
            reads = [value for value in node_reads(node) if value.constant is None]
            makes = [value for value in node.outputs if value.use_count]
            if node.subgraphs or not all(_is_tensor(value, self._values.get(value)) for value in (*reads, *makes)):
                return False
        return True

    def _time(
        self, provider: Provider, nodes: Sequence[Node], outputs: Sequence[Value], budget_s: float | None = None
    ) -> float | None:
        """Return what `nodes` take on `provider` as a model of their own, without copies, in microseconds.

        None where it does not run.
        """
        model, arguments = extract(self._model, nodes, outputs, self._values)
        copied_us = self._copied_us(provider, arguments, [self._values[value] for value in outputs])
        return self._time_model(provider, model, arguments, copied_us, _BUDGET_S if budget_s is None else budget_s)

    def _copied_us(self, provider: Provider, arguments: Sequence[Array], results: Sequence[Array]) -> float:
        memory = provider.memory.name
        there_us = sum(self._copies.copy_us(memory, array.nbytes, to_host=False) for array in arguments)
        return there_us + sum(self._copies.copy_us(memory, array.nbytes, to_host=True) for array in results)

    def _time_model(
        self, provider: Provider, model: Model, arguments: Sequence[Array], copied_us: float, budget_s: float
    ) -> float | None:
        chosen = [provider] if provider is self._reference else [provider, self._reference]
        try:
            built = build(Source(model), self._settings, ProviderList.of(chosen))
            if any(placement.provider != provider.name for placement in built.placements):
                return None
            return max(_LEAST_US, fastest_us(functools.partial(built.executor.run, arguments), budget_s) - copied_us)
        except SardonyxError as error:
            event("profile.failed", provider=provider.name, model=model.label, error=str(error))
            return None


def _unoptimized() -> Settings:
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    return read_settings(options)


def _is_tensor(value: Value, array: OnnxValue) -> bool:
    return isinstance(array, np.ndarray) and isinstance(value.type, TensorType)


def _bytes(array: OnnxValue) -> float:
    return float(array.nbytes) if isinstance(array, np.ndarray) else 0.0


def measure_copies(memory: Memory) -> Copies:
    """Measure what copies to and from `memory` take, at several sizes."""
    to_host, from_host = [], []
    for size_bytes in _COPY_BYTES:
        array = np.ones(size_bytes // DataType.FLOAT.numpy.itemsize, np.float32)
        tensor = memory.from_host(array)
        from_host.append((float(size_bytes), fastest_us(functools.partial(memory.from_host, array), _BUDGET_S)))
        to_host.append((float(size_bytes), fastest_us(functools.partial(memory.to_host, tensor), _BUDGET_S)))
    return Copies(tuple(to_host), tuple(from_host))


def fastest_us(run: Callable[[], object], budget_s: float) -> float:
    """Return the shortest of the runs that fit in the budget after a first, in microseconds.

    That one alone where it is far over it.
    """
    best = _seconds(run)
    if best > 10 * budget_s:
        return 1e6 * best
    end = _now() + budget_s
    best = min(_seconds(run) for _ in range(_LEAST_RUNS))
    while _now() < end:
        best = min(best, _seconds(run))
    return 1e6 * best


def in_turns_us(runs: Mapping[str, Callable[[], object]], budget_s: float) -> dict[str, float]:
    """Return the shortest time of each, in microseconds, where they take turns, so that what disturbs one disturbs all."""
    best = {name: _seconds(run) for name, run in runs.items()}
    left_s = dict.fromkeys((name for name, first in best.items() if first <= 10 * budget_s), budget_s)
    rounds = 0
    while left_s:
        rounds += 1
        for name in list(left_s):
            taken = _seconds(runs[name])
            best[name] = min(best[name], taken)
            left_s[name] -= taken
            if left_s[name] <= 0 and rounds >= _LEAST_RUNS:
                del left_s[name]
    return {name: 1e6 * taken for name, taken in best.items()}


def _seconds(run: Callable[[], object]) -> float:
    start = _now()
    run()
    return _now() - start
