"""Measuring what placement needs: nodes and partitions by themselves, copies, and whole runs.

At the end the placement that the profile leads to is measured beside the single providers, so that a session which finds it slower
than the best of them takes that one.

Where a model has narrow floats, one provider may run them as they are and another be faster in float32: the model is measured as it
is widened for all providers, and as it is for each by itself; the profile is of the form with the shortest run, and names it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Model, Value
from sardonyx.ir.walk import all_graphs
from sardonyx.partition.casts import NARROW
from sardonyx.partition.claims import claims_of
from sardonyx.partition.measured import MEASURED, calibrated, is_worth_it, predict
from sardonyx.partition.profile import Profile, key_of_graph
from sardonyx.partition.schedule import Choice
from sardonyx.provider import HOST, Provider
from sardonyx.runtime.executor import Executor
from sardonyx.session.feeds import check_feeds, symbol_sizes
from sardonyx.session.options import SessionOptions
from sardonyx.session.placement.samples import Samples, in_turns_us, measure_copies
from sardonyx.session.settings.settings import Settings, read_settings
from sardonyx.session.stages.assign import assign_model
from sardonyx.session.stages.compile import compile_model
from sardonyx.session.stages.load import load
from sardonyx.session.stages.owned_model import OwnedModel
from sardonyx.session.stages.prepare import Prepared, prepare
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source

__all__ = ["profile_placement"]

_RUN_BUDGET_S = 1.0
"""How long the whole model is run on each provider."""
_BORDER_FACTORS = (1.0, 2.0, 4.0)


def profile_placement(
    source: object,
    options: SessionOptions,
    providers: Sequence[Provider],
    feed: Mapping[str, OnnxValue],
    progress: Callable[[str], None] | None = None,
) -> Profile:
    """Measure a model.

    Args:
        source: a path, bytes or a ModelProto, which is loaded more than once.
        options: the session's; what they place by hand is measured elsewhere too.
        providers: the session's, in their order.
        feed: the inputs to measure with, as for a run.
        progress: is called with the name of what is measured next.

    Raises:
        InvalidArgument: `source` can be read once only, or the feed does not fit the model.
        SardonyxError: the model does not run on these providers.
    """
    if isinstance(source, Model) or hasattr(source, "read"):
        raise InvalidArgument("measuring loads the model more than once: give a path, bytes or a ModelProto")
    tell = progress if progress is not None else _tell_nobody
    settings = read_settings(options)
    work = _Profiling(Source.of(source), settings, providers)
    best = _profile(work, feed, tell)
    for provider in providers[:-1] if work.has_narrow_floats() else ():
        other = _Profiling(Source.of(source), settings, providers, provider.name)
        if other.key() not in best.models:
            best = min(best, _profile(other, feed, tell), key=_shortest_run)
    return best


def _shortest_run(profile: Profile) -> float:
    return min(min(times.values()) for times in profile.models.values())


def _profile(work: _Profiling, feed: Mapping[str, OnnxValue], tell: Callable[[str], None]) -> Profile:
    providers = work.providers
    tell("values")
    model, values, sizes = work.values(feed)
    claims = claims_of(model.graph, providers).nodes
    tell("copies")
    memories = {provider.memory.name: provider.memory for provider in providers if provider.memory.name != HOST.name}
    copies = {name: measure_copies(memory) for name, memory in memories.items()}
    samples = Samples(model, providers, values, Profile(copies=copies))
    samples.measure(claims, tell)
    profile = Profile(
        samples=tuple(samples.found.values()), steps_us=samples.steps_us, copies=copies, sizes=sizes, widened_for=work.widened_for
    )
    tell("runs")
    return work.runs(feed, [provider for provider in providers if claims[provider.name]], profile)


def _tell_nobody(label: str) -> None:
    """Take no notice."""


class _Profiling:
    """The model, loaded anew for each use, its narrow floats widened for one provider or for all."""

    def __init__(self, source: Source, settings: Settings, providers: Sequence[Provider], widened_for: str = "") -> None:
        self._source, self._settings, self.providers, self.widened_for = source, settings, list(providers), widened_for

    def _prepared(self) -> Prepared:
        loaded = load(self._source, self._settings.load)
        return prepare(loaded, self._settings, ProviderList.of(self.providers), self.widened_for)

    def _executor(self, prepared: Prepared, providers: Sequence[Provider], profile: Profile | None) -> Executor:
        assigned = assign_model(prepared, self._settings, ProviderList.of(providers), profile)
        return compile_model(assigned, self._settings, prepared.defaults).executor

    def has_narrow_floats(self) -> bool:
        """Return whether another choice of what is widened may make another model."""
        model = self._prepared().model.view()
        values = (value for graph in all_graphs(model) for node in graph for value in (*node.inputs, *node.outputs))
        return any(value is not None and value.dtype in NARROW for value in values)

    def key(self) -> str:
        """Return the profile's key of the main graph."""
        return key_of_graph(self._prepared().model.view().graph)

    def values(self, feed: Mapping[str, OnnxValue]) -> tuple[Model, dict[Value, OnnxValue], dict[str, int]]:
        """Return a prepared model, what each value of its main graph is for `feed`, and the sizes of its symbols."""
        prepared = self._prepared()
        watched = prepared.model.take("values")
        graph = watched.graph
        given = check_feeds(graph.inputs, prepared.defaults, feed, watched.label)
        places = [(row, column) for row, node in enumerate(graph) for column, value in enumerate(node.outputs) if value.use_count]
        nodes = list(graph)
        first = len(graph.outputs)
        for row, column in places:
            graph.add_output(nodes[row].outputs[column])
        watching = dataclasses.replace(prepared, model=OwnedModel(watched))
        results = self._executor(watching, self.providers, None).run(given)[first:]
        model = self._prepared().model.view()
        same = list(model.graph)
        values = dict(zip(model.graph.inputs, given, strict=True))
        values.update({same[row].outputs[column]: result for (row, column), result in zip(places, results, strict=True)})
        return model, values, symbol_sizes(model.graph.inputs, given)

    def runs(self, feed: Mapping[str, OnnxValue], singles: Sequence[Provider], profile: Profile) -> Profile:
        """Time whole runs, and let `profile` say what they took.

        First with each provider first, by which what was measured by pieces is set right. Then as the profile places the nodes;
        where that is slower than the best single provider, again with borders between partitions counted twice and four times.
        """
        prepared = self._prepared()
        model = prepared.model.view()
        given = check_feeds(model.graph.inputs, prepared.defaults, feed, model.label)
        claims = claims_of(model.graph, self.providers)
        sessions = {first.name: self._session([first, *self._others(first)], None) for first in singles}
        runs = {name: functools.partial(session.run, given) for name, session in sessions.items()}
        times = in_turns_us(runs, _RUN_BUDGET_S)
        key, tried, slower = key_of_graph(model.graph), set[Choice](), dict[str, float]()
        profile = calibrated(model.graph, self.providers, claims, profile, times)
        for factor in _BORDER_FACTORS:
            profile = dataclasses.replace(profile, border_factor=factor, models={key: times})
            prediction = predict(model.graph, self.providers, claims, profile)
            choice = tuple(prediction.placed.values())
            if prediction.is_single or choice in tried:
                continue
            tried.add(choice)
            mixture = self._session(self.providers, profile)
            taken = in_turns_us(_best_of(runs, times) | {MEASURED: functools.partial(mixture.run, given)}, _RUN_BUDGET_S)
            if is_worth_it(taken):
                return dataclasses.replace(profile, models={key: times | taken})
            slower = taken
        return dataclasses.replace(profile, models={key: times | slower})

    def _others(self, first: Provider) -> list[Provider]:
        return [provider for provider in self.providers if provider is not first]

    def _session(self, providers: Sequence[Provider], profile: Profile | None) -> Executor:
        return self._executor(self._prepared(), providers, profile)


def _best_of(runs: Mapping[str, Callable[[], object]], times: Mapping[str, float]) -> dict[str, Callable[[], object]]:
    """Return the runs that took less than twice the shortest: one of these is the one to beat."""
    shortest = min(times.values())
    return {name: run for name, run in runs.items() if times[name] < 2 * shortest}
