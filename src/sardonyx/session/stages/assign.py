"""From an optimized model to partitions: who runs each node of each graph, and where values are copied between memories."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sardonyx import errors
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidGraph, SardonyxError, UnknownOperator, locating
from sardonyx.ir import Graph, Model, Node, Value
from sardonyx.ir.walk import captured_values
from sardonyx.ops.schema import place_of
from sardonyx.ops.schemas import find_schema, unknown_operator
from sardonyx.partition.assign import Assignment, Terms, Watch, assign, dissolve
from sardonyx.partition.budget import Accountant
from sardonyx.partition.claims import claims_of
from sardonyx.partition.cut import cut
from sardonyx.partition.explain import Placement, body_paths, explain
from sardonyx.partition.measured import predict
from sardonyx.partition.part import Cut
from sardonyx.partition.pins import Pins
from sardonyx.partition.placement import placed_nodes
from sardonyx.partition.profile import Profile, key_of_graph
from sardonyx.partition.transfers import Stage, Transfer, entering_transfers, insert_transfers
from sardonyx.provider import Provider
from sardonyx.session.function_bodies import expand
from sardonyx.session.memory.limits import accountant_for
from sardonyx.session.placement.node_streams import split_streams
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.layout_steps import layout_watch
from sardonyx.session.stages.owned_model import OwnedModel
from sardonyx.session.stages.prepare import Prepared
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.trace import event

__all__ = ["Assigned", "AssignedGraph", "assign_model"]


@dataclasses.dataclass(frozen=True, slots=True)
class AssignedGraph:
    """A graph that is cut into partitions, with the bodies that its nodes hold."""

    graph: Graph
    """The graph."""
    captures: tuple[Value, ...]
    """Values of outer graphs that it reads."""
    entering: tuple[Transfer, ...]
    """Copies of captures to devices."""
    stages: tuple[Stage, ...]
    """Partitions, and copies between them, in an order in which they can run."""
    bodies: tuple[AssignedGraph, ...]
    """The graphs inside it that providers do not run themselves."""
    placements: tuple[Placement, ...]
    """Who runs each of its nodes, and why others do not; those of the bodies are their own."""

    def walk(self) -> Iterator[AssignedGraph]:
        """Yield this graph and those inside it, outer before inner."""
        yield self
        for body in self.bodies:
            yield from body.walk()

    @property
    def copy_count(self) -> int:
        """How many values are copied between memories."""
        return len(self.entering) + sum(isinstance(stage, Transfer) for stage in self.stages)


@dataclasses.dataclass(frozen=True, slots=True)
class Assigned:
    """A model whose nodes have their providers."""

    model: OwnedModel
    """The model."""
    main: AssignedGraph
    """Its main graph."""

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Who runs each node of all graphs."""
        return tuple(place for graph in self.main.walk() for place in graph.placements)


@dataclasses.dataclass(frozen=True, slots=True)
class _Rules:
    """What decides who runs the nodes of one model."""

    providers: tuple[Provider, ...]
    """Who is asked, in this order."""
    names: Sequence[str]
    """All providers of the session, which nodes may be placed on."""
    excluded: Mapping[str, str]
    """Those that are not asked, and why, as reports say it."""
    pins: Pins
    """What is placed by hand."""
    chosen: Mapping[Node, str]
    """Node of the main graph -> the provider that a profile chose."""
    streams_file: str
    """A file that divides the main graph into streams; "" for none."""
    accountant: Accountant | None
    """Says which claims fit into the memories of their providers."""
    watch: Watch | None
    """Called after each step of a layout conversion."""


def assign_model(prepared: Prepared, settings: Settings, providers: ProviderList, profile: Profile | None = None) -> Assigned:
    """Assign the nodes of a model to providers, and cut its graphs into partitions.

    Args:
        prepared: whose model is taken over.
        settings: of the session.
        providers: of the session.
        profile: what was measured, where that decides what the user leaves open.

    Raises:
        SardonyxError: no provider runs a node, or one failed when it was asked.
    """
    model = prepared.model.take("assign_model")
    with locating(f"model {model.label}"):
        rules = _rules(model, settings, providers)
        if profile is not None:
            parallel = settings.execution.executor == "parallel"
            rules = _follow_profile(model, rules, profile, parallel=parallel)
        main = _assign_graph(model, model.graph, (), model.graph.name or "graph", rules)
    return Assigned(OwnedModel(model), main)


def _rules(model: Model, settings: Settings, providers: ProviderList) -> _Rules:
    folder = settings.placement.layout_folder
    return _Rules(
        providers=tuple(providers.able),
        names=providers.names,
        excluded={name: f"left out: {reason}" for name, reason in providers.excluded.items()},
        pins=settings.placement.pins,
        chosen={},
        streams_file=settings.placement.streams_file,
        accountant=accountant_for(model, settings.memory, providers.all),
        watch=None if folder is None else layout_watch(model, folder),
    )


def _follow_profile(model: Model, rules: _Rules, profile: Profile, *, parallel: bool) -> _Rules:
    """Return the rules with what a profile says of the main graph.

    In bodies the best single provider is asked before the others.
    """
    graph = model.graph
    if not profile.knows(rules.names, tuple(graph)):
        warnings.warn(
            f"the placement profile has no operator of model {model.label} on {', '.join(rules.names)}: nodes go by "
            "the order of the providers; measure this model by `sardonyx profile --placement`",
            UserWarning,
            stacklevel=2,
        )
    claims = claims_of(graph, rules.providers)
    prediction = predict(graph, rules.providers, claims, profile, _pinned(graph, rules), parallel=parallel)
    event(
        "placement.measured",
        graph=graph.name,
        graph_key=key_of_graph(graph),
        nodes=dict(collections.Counter(prediction.placed.values())),
        seconds=prediction.seconds,
        single=prediction.single,
        single_seconds=prediction.single_seconds,
    )
    order = sorted(rules.providers, key=lambda provider: provider.name != prediction.single)
    return dataclasses.replace(rules, providers=tuple(order), chosen={} if prediction.is_single else prediction.placed)


def _assign_graph(model: Model, graph: Graph, captures: tuple[Value, ...], label: str, rules: _Rules) -> AssignedGraph:
    cuts, declined = _partition(model, graph, label, rules)
    bodies = [
        _assign_graph(model, body, tuple(value for value in captured_values(body) if value.constant is None), path, rules)
        for body, path in _bodies(cuts, label)
    ]
    entering = entering_transfers(cuts, captures)
    return AssignedGraph(
        graph,
        captures,
        tuple(entering),
        tuple(insert_transfers(graph, cuts, entering)),
        tuple(bodies),
        tuple(explain(graph, label, cuts, declined)),
    )


def _bodies(cuts: Sequence[Cut], label: str) -> Iterator[tuple[Graph, str]]:
    """Yield the subgraphs that are planned for their nodes, each with the path that reports call it by."""
    units = (unit for part in cuts for unit in part.partition.units if not unit.owns_bodies)
    for node in (node for unit in units for node in unit.nodes):
        yield from body_paths(node, label)


def _partition(model: Model, graph: Graph, label: str, rules: _Rules) -> tuple[list[Cut], dict[Node, dict[str, str]]]:
    """Return the partitions of a graph, and for each node why providers that were asked before do not run it."""
    assignment = _assign(graph, rules)
    while assignment.orphans and expand(model, assignment.orphans):
        assignment = _assign(graph, rules)
    if assignment.orphans:
        raise _no_provider(assignment.orphans[0], assignment.declined.get(assignment.orphans[0], {}))
    if rules.streams_file and graph is model.graph:
        units = split_streams(graph, assignment.units, Path(rules.streams_file))
        assignment = dataclasses.replace(assignment, units=units)
    cuts, broken = cut(graph, assignment.units, f"{label}_")
    while broken:
        for unit in broken:
            assignment = dissolve(graph, unit, rules.providers, assignment)
        cuts, broken = cut(graph, assignment.units, f"{label}_")
    return cuts, {node: {**rules.excluded, **assignment.declined.get(node, {})} for node in graph}


def _assign(graph: Graph, rules: _Rules) -> Assignment:
    pinned = _pinned(graph, rules)
    chosen = {node: name for node, name in rules.chosen.items() if node.graph is graph}
    loose = chosen.keys() - (() if rules.pins.fall_through else pinned.keys())
    if rules.pins.fall_through:
        loose |= pinned.keys()
    terms = Terms(chosen | pinned, loose, rules.watch, rules.accountant, lambda body: _pinned(body, rules))
    return assign(graph, rules.providers, terms)


def _pinned(graph: Graph, rules: _Rules) -> dict[Node, str]:
    placed = placed_nodes(graph, rules.pins, rules.names)
    return {node: name for node, name in placed.items() if name not in rules.excluded}


def _no_provider(node: Node, declined: Mapping[str, str]) -> SardonyxError:
    if find_schema(node.domain, node.op_type, node.version) is None:
        kind = InvalidGraph if node.domain in ("", "ai.onnx.ml") else UnknownOperator
        return kind(f"{place_of(node)}: {unknown_operator(node.domain, node.op_type, node.version)}")
    reasons = "; ".join(f"{name}: {reason}" for name, reason in declined.items())
    return errors.NotImplemented(f"{place_of(node)}: no provider runs it ({reasons}); give a provider that does")
