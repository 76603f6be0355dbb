"""Assignment of nodes to providers, in the user's order of priority.

Each provider is asked in turn what it can run of the nodes that no provider before it took. A fused claim is all or nothing. A
provider that prefers NHWC has its claim converted by the layout step and is asked again, so that it can take the transposes
that were added; a node that was converted and then not claimed is an error that names it.

A node that is placed (see `placement.py`) is offered to its provider only; where it may fall through, to all if that declines it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from sardonyx import errors
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled
from sardonyx.errors import EPFail, blamed
from sardonyx.ir import Graph, Node
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.schema import place_of
from sardonyx.optimize.transposes.push import push_transposes
from sardonyx.partition.budget import Accountant
from sardonyx.partition.claims import ask, claimed_nodes, claims_of
from sardonyx.partition.contexts import context_claim, is_context
from sardonyx.partition.layout import lay_out
from sardonyx.partition.shape_nodes import shape_nodes
from sardonyx.provider import HOST, Capability, Claims, Layout, Provider

__all__ = ["Assignment", "Terms", "Unit", "Watch", "assign", "dissolve"]

Watch: TypeAlias = Callable[[str], None]
"""A callback for the steps of a layout conversion: "converted" or "pushed"."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Nodes that stay together: a fused claim, or one node."""

    provider: Provider
    """Who runs it."""
    capability: Capability
    """The claim that it comes from, cut down to its own nodes."""
    stream: int = 0
    """Units of two streams are never in one partition."""


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """On which terms providers get the nodes of one graph."""

    placed: Mapping[Node, str] = dataclasses.field(default_factory=dict)
    """Node -> the name of the one provider that is to run it."""
    loose: Collection[Node] = ()
    """Placed nodes that, where their provider declines them, go to the others, in their order."""
    watch: Watch | None = None
    """Called after each step of a layout conversion, when the graph is as that step left it."""
    accountant: Accountant | None = None
    """Says which claims fit into the memories of their providers."""
    placed_in: Callable[[Graph], Mapping[Node, str]] | None = None
    """For a graph inside a node which of its nodes are placed, and on which provider."""


@dataclasses.dataclass(frozen=True, slots=True)
class Assignment:
    """Who runs each node of one graph, and why others do not."""

    units: Mapping[Node, Unit]
    """Node -> the unit that it is part of."""
    declined: Mapping[Node, Mapping[str, str]]
    """Node -> provider name -> why that provider, asked earlier, does not run it."""
    orphans: tuple[Node, ...]
    """Nodes that no provider claims."""
    terms: Terms
    """On which terms the providers were asked."""


def assign(graph: Graph, providers: Sequence[Provider], terms: Terms | None = None) -> Assignment:
    """Assign each node of `graph` (not of its subgraphs) to the first provider that claims it.

    Args:
        graph: the graph; a provider that prefers NHWC has its claims in it converted.
        providers: in the order in which they are asked.
        terms: what besides their order decides.

    Raises:
        EPFail: a provider raised, claimed what it was not offered, or dropped a node that was converted for it.
        NotImplemented: a provider declines a node that is placed on it, or is not there to run what it compiled before.
    """
    units = {node: Unit(*context_claim(node, providers)) for node in graph if is_context(node)}
    return _Assigner(graph, Assignment(units, {}, (), terms or Terms())).offer(providers)


def dissolve(graph: Graph, unit: Unit, providers: Sequence[Provider], assignment: Assignment) -> Assignment:
    """Return the assignment with a fused unit taken apart, its nodes offered to the providers after the one that claimed it."""
    reason = f"{unit.capability.name or 'a fused claim'} cannot run as one: a path leaves it and comes back"
    apart = set(unit.capability.nodes)
    units = {node: other for node, other in assignment.units.items() if node not in apart}
    declined = {**assignment.declined}
    declined.update((node, {**declined.get(node, {}), unit.provider.name: reason}) for node in apart)
    left = dataclasses.replace(assignment, units=units, declined=declined)
    return _Assigner(graph, left).offer(providers[providers.index(unit.provider) + 1 :])


class _Assigner:
    """Goes on from one assignment of a graph to the next."""

    def __init__(self, graph: Graph, begun: Assignment) -> None:
        self._graph, self._terms = graph, begun.terms
        self._units = dict(begun.units)
        self._declined = {node: dict(reasons) for node, reasons in begun.declined.items()}
        self._placed = dict(begun.terms.placed)

    def offer(self, providers: Sequence[Provider]) -> Assignment:
        """Offer what is free to `providers`, and placed nodes that may fall through, once refused, to all of them."""
        self._offer_once(providers)
        refused = [node for node in self._free() if node in self._placed]
        for node in refused:
            name = self._placed[node]
            reason = self._declined[node].get(name, "it was asked before")
            if node not in self._terms.loose:
                raise errors.NotImplemented(
                    f"{place_of(node)} is placed on {name}, which does not run it ({reason}); place it elsewhere, or let it fall "
                    "through"
                )
            self._declined[node] = {name: reason}
            del self._placed[node]
        if refused:
            self._offer_once(providers)
        return Assignment(self._units, self._declined, self._free(), dataclasses.replace(self._terms, placed=self._placed))

    def _offer_once(self, providers: Sequence[Provider]) -> None:
        for place, provider in enumerate(providers):
            nodes = self._offered(provider)
            declined = self._claim(provider, nodes, providers[:place]) if nodes else {}
            self._note_declined(provider, declined)

    def _claim(self, provider: Provider, nodes: tuple[Node, ...], before: Sequence[Provider]) -> Mapping[Node, str]:
        """Let a provider take of `nodes` what it claims and has memory for; why it does not take the others.

        Bodies in which providers that were asked before have parts are not its own.
        """
        claims = self._asked(provider, nodes, before)
        claims, too_much = self._fitting(provider, claims)
        if provider.preferred_layout is Layout.NHWC and claims.capabilities:
            claims = self._ask_after_layout(provider, claims, too_much, before)
        for capability in claims.capabilities:
            check_cancelled()
            self._take(provider, capability)
        return {**claims.declined, **too_much}

    def _asked(
        self, provider: Provider, nodes: tuple[Node, ...], before: Sequence[Provider], *, after_layout: bool = False
    ) -> Claims:
        claims = ask(provider, self._graph, nodes, after_layout=after_layout)
        claims = _without_shape_nodes(provider, self._graph, claims, self._placed)
        kept: list[Capability] = []
        reasons: dict[Node, str] = {}
        for claim in claims.capabilities:
            if claim.owns_bodies and self._is_shared(provider, claim, before):
                reasons.update(dict.fromkeys(claim.nodes, "its body has parts for other providers"))
            else:
                kept.append(claim)
        return Claims(kept, {**claims.declined, **reasons})

    def _is_shared(self, provider: Provider, claim: Capability, before: Sequence[Provider]) -> bool:
        """Return whether something in the bodies of a claim is placed on another provider, or claimed by one asked before."""
        graphs = (graph for node in claim.nodes for body in node.subgraphs for graph in nested_graphs(body))
        for graph in graphs:
            placed = {} if self._terms.placed_in is None else self._terms.placed_in(graph)
            if any(name != provider.name for name in placed.values()) or claims_of(graph, before).claimed():
                return True
        return False

    def _fitting(self, provider: Provider, claims: Claims) -> tuple[Claims, Mapping[Node, str]]:
        """Return the claims that fit into the provider's memory, and why the others do not."""
        if self._terms.accountant is None:
            return claims, {}
        held = [unit.capability for unit in dict.fromkeys(self._units.values()) if unit.provider is provider]
        return self._terms.accountant.fit(provider.name, self._graph, claims, held)

    def _ask_after_layout(
        self, provider: Provider, claims: Claims, too_much: Collection[Node], before: Sequence[Provider]
    ) -> Claims:
        claimed = set(claimed_nodes(claims))
        kept = {node for capability in claims.capabilities if capability.keeps_layout for node in capability.nodes}
        converted = lay_out(self._graph, [node for node in self._graph if node in claimed and node not in kept])
        if not converted:
            return claims
        watch = self._terms.watch or _look_away
        watch("converted")
        push_transposes(self._graph, claimed)
        watch("pushed")
        offered = tuple(node for node in self._offered(provider) if node not in too_much)
        again = self._asked(provider, offered, before, after_layout=True)
        still = set(claimed_nodes(again))
        for node in converted:
            if node not in still:
                message = (
                    f"{provider.name} prefers NHWC and claimed {node.op_type} node {node.name!r}, which was converted for it, but "
                    "does not claim it now; a provider must claim the same operators in its preferred layout"
                )
                raise blamed(EPFail(message), provider.name)
        return again

    def _take(self, provider: Provider, capability: Capability) -> None:
        """Give a provider the nodes of a claim that are free; a fused one as a whole, or not at all."""
        free = [node for node in capability.nodes if node not in self._units]
        if not capability.fused:
            for node in free:
                own = capability if len(capability.nodes) == 1 else dataclasses.replace(capability, nodes=(node,))
                self._units[node] = Unit(provider, own)
            return
        taken = next((node for node in capability.nodes if node in self._units), None)
        if taken is None:
            self._units.update(dict.fromkeys(capability.nodes, Unit(provider, capability)))
            return
        name = capability.name or "a fused claim"
        problem = f"{name} overlaps an earlier claim at {taken.op_type} node {taken.name!r}"
        for node in free:
            self._declined.setdefault(node, {})[provider.name] = problem

    def _note_declined(self, provider: Provider, reasons: Mapping[Node, str]) -> None:
        for node in self._free():
            check_cancelled()
            placed = self._placed.get(node, provider.name)
            default = "not claimed" if placed == provider.name else f"placed on {placed}"
            known = self._declined.setdefault(node, {})
            known[provider.name] = reasons.get(node) or known.get(provider.name) or default

    def _free(self) -> tuple[Node, ...]:
        return tuple(node for node in self._graph if node not in self._units)

    def _offered(self, provider: Provider) -> tuple[Node, ...]:
        return tuple(node for node in self._free() if self._placed.get(node, provider.name) == provider.name)


def _without_shape_nodes(provider: Provider, graph: Graph, claims: Claims, placed: Mapping[Node, str]) -> Claims:
    """Return the claims of a device, but for single nodes that compute shapes of what the host has and are not placed on it."""
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
    """Ignore the report."""
