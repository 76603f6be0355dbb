"""Assignment of nodes to providers, in the user's order of priority.

Each provider is asked in turn what it can run of the nodes that no provider before it took. A fused claim is all or nothing. A
provider that prefers NHWC has its claim converted by the layout step and is asked again, so that it can take the transposes
that were added; a node that was converted and then not claimed is an error that names it.

A node that is placed (see `placement.py`) is offered to its provider only; where it may fall through, to all if that declines it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from sardonyx import errors
from sardonyx.errors import EPFail, blamed
from sardonyx.ir import Graph, Node
from sardonyx.ops.schema import place_of
from sardonyx.optimize.transposes.push import push_transposes
from sardonyx.partition.budget import Accountant
from sardonyx.partition.claims import ask, claimed_nodes
from sardonyx.partition.contexts import context_claim, is_context
from sardonyx.partition.layout import lay_out
from sardonyx.partition.shape_nodes import shape_nodes
from sardonyx.provider import HOST, Capability, Claims, Layout, Provider

__all__ = ["Assignment", "Unit", "Watch", "assign", "dissolve"]

Watch: TypeAlias = Callable[[str], None]
"""What is told that a step of a layout conversion was taken: "converted" or "pushed"."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Nodes that stay together: a fused claim, or one node."""

    provider: Provider
    """Who runs it."""
    capability: Capability
    """The claim that it comes from, cut down to its own nodes."""
    stream: int = 0
    """Units of two streams are never in one partition."""


@dataclasses.dataclass(slots=True)
class Assignment:
    """Who runs each node of one graph, and why others do not."""

    units: dict[Node, Unit] = dataclasses.field(default_factory=dict)
    """Node -> the unit that it is part of."""
    declined: dict[Node, dict[str, str]] = dataclasses.field(default_factory=dict)
    """Node -> provider name -> why that provider, asked earlier, does not run it."""
    orphans: list[Node] = dataclasses.field(default_factory=list)
    """Nodes that no provider claims."""
    placed: dict[Node, str] = dataclasses.field(default_factory=dict)
    """Node -> the name of the one provider that is to run it."""
    loose: Collection[Node] = ()
    """Placed nodes for which the others are asked where their provider declines them."""
    watch: Watch | None = None
    """Told of each step of a layout conversion."""
    accountant: Accountant | None = None
    """Says which claims fit into the memories of their providers."""


def assign(
    graph: Graph,
    providers: Sequence[Provider],
    placed: Mapping[Node, str] | None = None,
    loose: Collection[Node] = (),
    watch: Watch | None = None,
    accountant: Accountant | None = None,
) -> Assignment:
    """Assign each node of `graph` (not of its subgraphs) to the first provider that claims it.

    Args:
        graph: the graph; a provider that prefers NHWC has its claims in it converted.
        providers: in the order in which they are asked.
        placed: for some nodes the name of the one provider that is to run them.
        loose: placed nodes that, where their provider declines them, go to the others, in their order.
        watch: told of each step of a layout conversion, when the graph is as that step left it.
        accountant: says which claims fit into the memories of their providers.

    Raises:
        EPFail: a provider raised, claimed what it was not offered, or dropped a node that was converted for it.
        NotImplemented: a provider declines a node that is placed on it, or is not there to run what it compiled before.
    """
    result = Assignment(placed=dict(placed or {}), loose=loose, watch=watch, accountant=accountant)
    for node in graph:
        if is_context(node):
            result.units[node] = Unit(*context_claim(node, providers))
    _offer(graph, providers, result)
    return result


def dissolve(graph: Graph, unit: Unit, providers: Sequence[Provider], assignment: Assignment) -> None:
    """Take a fused unit apart and offer its nodes to the providers after the one that claimed it."""
    for node in unit.capability.nodes:
        del assignment.units[node]
        reason = f"{unit.capability.name or 'a fused claim'} cannot run as one: a path leaves it and comes back"
        assignment.declined.setdefault(node, {})[unit.provider.name] = reason
    _offer(graph, providers[providers.index(unit.provider) + 1 :], assignment)


def _offer(graph: Graph, providers: Sequence[Provider], result: Assignment) -> None:
    _offer_once(graph, providers, result)
    refused = [node for node in _free(graph, result) if node in result.placed]
    for node in refused:
        if node in result.loose:
            continue
        name = result.placed[node]
        reason = result.declined[node].get(name, "it was asked before")
        raise errors.NotImplemented(
            f"{place_of(node)} is placed on {name}, which does not run it ({reason}); place it elsewhere, or let it fall through"
        )
    if refused:
        for node in refused:
            name = result.placed.pop(node)
            result.declined[node] = {name: result.declined[node].get(name, "it was asked before")}
        _offer_once(graph, providers, result)
    result.orphans = list(_free(graph, result))


def _offer_once(graph: Graph, providers: Sequence[Provider], result: Assignment) -> None:
    for provider in providers:
        nodes = _offered(graph, provider, result)
        if not nodes:
            _note_declined(graph, provider, result, Claims())
            continue
        claims = _without_shape_nodes(provider, graph, ask(provider, graph, nodes), result.placed)
        claims, too_much = _fitting(provider, graph, claims, result)
        if provider.preferred_layout is Layout.NHWC and claims.capabilities:
            claims = _ask_after_layout(provider, graph, claims, result, too_much)
        _take(provider, claims, result)
        _note_declined(graph, provider, result, Claims(declined={**claims.declined, **too_much}))


def _fitting(provider: Provider, graph: Graph, claims: Claims, assignment: Assignment) -> tuple[Claims, Mapping[Node, str]]:
    """The claims that fit into the provider's memory, and why the others do not."""
    if assignment.accountant is None:
        return claims, {}
    held = [unit.capability for unit in dict.fromkeys(assignment.units.values()) if unit.provider is provider]
    return assignment.accountant.fit(provider.name, graph, claims, held)


def _note_declined(graph: Graph, provider: Provider, result: Assignment, claims: Claims) -> None:
    for node in _free(graph, result):
        placed = result.placed.get(node, provider.name)
        default = "not claimed" if placed == provider.name else f"placed on {placed}"
        reason = claims.declined.get(node) or result.declined.get(node, {}).get(provider.name) or default
        result.declined.setdefault(node, {})[provider.name] = reason


def _free(graph: Graph, assignment: Assignment) -> tuple[Node, ...]:
    return tuple(node for node in graph if node not in assignment.units)


def _offered(graph: Graph, provider: Provider, assignment: Assignment) -> tuple[Node, ...]:
    placed = assignment.placed
    return tuple(node for node in _free(graph, assignment) if placed.get(node, provider.name) == provider.name)


def _ask_after_layout(
    provider: Provider, graph: Graph, claims: Claims, assignment: Assignment, too_much: Collection[Node]
) -> Claims:
    claimed = set(claimed_nodes(claims))
    kept = {node for capability in claims.capabilities if capability.keeps_layout for node in capability.nodes}
    converted = lay_out(graph, [node for node in graph if node in claimed and node not in kept])
    if not converted:
        return claims
    watch = assignment.watch or _look_away
    watch("converted")
    push_transposes(graph, claimed)
    watch("pushed")
    offered = tuple(node for node in _offered(graph, provider, assignment) if node not in too_much)
    again = ask(provider, graph, offered, after_layout=True)
    again = _without_shape_nodes(provider, graph, again, assignment.placed)
    still = set(claimed_nodes(again))
    for node in converted:
        if node not in still:
            message = (
                f"{provider.name} prefers NHWC and claimed {node.op_type} node {node.name!r}, which was converted for it, but does "
                "not claim it now; a provider must claim the same operators in its preferred layout"
            )
            raise blamed(EPFail(message), provider.name)
    return again


def _without_shape_nodes(provider: Provider, graph: Graph, claims: Claims, placed: Mapping[Node, str]) -> Claims:
    """The claims of a device, but for single nodes that compute shapes of what the host has and are not placed on it."""
    if provider.memory.name == HOST.name:
        return claims
    fixed = {node for capability in claims.capabilities if capability.fused for node in capability.nodes}
    fixed.update(node for node, name in placed.items() if name == provider.name)
    left = shape_nodes(graph, set(claimed_nodes(claims)) - fixed, fixed)
    kept = [
        capability
        if capability.fused
        else dataclasses.replace(capability, nodes=tuple(node for node in capability.nodes if node not in left))
        for capability in claims.capabilities
    ]
    reasons = dict.fromkeys(left, "a shape computation, which stays on the host")
    return Claims([capability for capability in kept if capability.nodes], {**claims.declined, **reasons})


def _look_away(step: str) -> None:
    """Nobody watches."""


def _take(provider: Provider, claims: Claims, assignment: Assignment) -> None:
    for capability in claims.capabilities:
        if capability.fused:
            _take_fused(provider, capability, assignment)
            continue
        for node in capability.nodes:
            if node not in assignment.units:
                single = dataclasses.replace(capability, nodes=(node,))
                assignment.units[node] = Unit(provider, single)


def _take_fused(provider: Provider, capability: Capability, assignment: Assignment) -> None:
    problem = _problem_of(capability, assignment)
    if problem is not None:
        for node in capability.nodes:
            if node not in assignment.units:
                assignment.declined.setdefault(node, {})[provider.name] = problem
        return
    unit = Unit(provider, capability)
    for node in capability.nodes:
        assignment.units[node] = unit


def _problem_of(capability: Capability, assignment: Assignment) -> str | None:
    name = capability.name or "a fused claim"
    for node in capability.nodes:
        if node in assignment.units:
            return f"{name} overlaps an earlier claim at {node.op_type} node {node.name!r}"
    return None
