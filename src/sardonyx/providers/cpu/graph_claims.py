"""What the CPU provider claims of a graph: what can be compiled, where values at hand show all sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import CHECKED_EACH, check_cancelled, checked
from sardonyx.dtypes import DataType
from sardonyx.errors import EPFail
from sardonyx.ir import Expr, Graph, Node, TensorType, Value
from sardonyx.ir.shape import symbols_in
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.normalize import GroupNormalization
from sardonyx.provider import Capability, Claims, GraphView
from sardonyx.providers.cpu.claims import Claimed, NodeClaim, claim_node, find_claim
from sardonyx.providers.cpu.operands import given
from sardonyx.providers.cpu.size_claims import Elements, SizesClaim, symbols_of
from sardonyx.providers.cpu.size_values import size_values
from sardonyx.providers.cpu.value_sizes import says_sizes

__all__ = ["claim_again", "claim_nodes", "noted_sizes"]

_CONVERTED = ("", "com.microsoft")
"""The domains of operators that are claimed in NHWC."""


def claim_nodes(view: GraphView, *, prefers_nhwc: bool) -> Claims:
    """Claim what can be compiled: known types and ranks, and sizes that follow from the shapes of values at hand.

    Args:
        view: the graph, and the nodes that are still to be had.
        prefers_nhwc: whether nodes may be claimed on the condition that they are converted to NHWC.
    """
    witnesses, sizes = _witnesses(view.graph), size_values(view.graph)
    layout_follows = prefers_nhwc and not view.after_layout
    claims: list[Capability] = []
    declined: dict[Node, str] = {}
    for node in view.nodes:
        check_cancelled()
        claim = _sizes_claim(node, sizes.get(node), witnesses) or _claim(node, witnesses, layout_follows=layout_follows)
        if isinstance(claim, str):
            declined[node] = claim
        else:
            claims.append(claim)
    return Claims(_in_one_layout(claims) if layout_follows else claims, declined)


def noted_sizes(claim: Capability) -> tuple[Elements, ...] | None:
    """Return the sizes that a node was claimed as; None for a claim as what it does, which follows from the node."""
    return claim.elements if isinstance(claim, SizesClaim) else None


def claim_again(claim: Capability, noted: tuple[Elements, ...] | None) -> Capability:
    """Return the claim of a node as the sizes noted, or as what it does; raises EPFail where that cannot be compiled."""
    (node,) = claim.nodes
    if noted is not None:
        return SizesClaim((node,), reads=claim.reads, elements=noted)
    found = claim_node(node)
    if isinstance(found, str):
        raise EPFail(f"{node.place} was claimed before, but cannot be compiled: {found}")
    return NodeClaim(
        (node,),
        reads=claim.reads,
        keeps_layout=claim.keeps_layout,
        ends=found.is_counted,
        claimed=found,
        owns_bodies=claim.owns_bodies,
        alone=claim.alone,
    )


def _witnesses(graph: Graph) -> dict[str, Value]:
    """Return for each symbol the first value whose shape shows its size."""
    found: dict[str, Value] = {}
    captured = (value for node in graph for value in node.inputs if value is not None)
    made = (value for node in graph for value in node.outputs)
    for number, value in enumerate((*graph.inputs, *captured, *made)):
        if not number % CHECKED_EACH:
            check_cancelled()
        for dim in value.shape or ():
            if isinstance(dim, Expr) and dim.name is not None and isinstance(value.type, TensorType):
                found.setdefault(dim.name, value)
    return found


def _sizes_claim(node: Node, elements: tuple[Elements, ...] | None, witnesses: Mapping[str, Value]) -> SizesClaim | None:
    """Return a claim of a node as the sizes that it makes, where values at hand show all that they depend on."""
    names = symbols_of(elements or ())
    if elements is None or not witnesses.keys() >= set(names):
        return None
    return SizesClaim((node,), reads=tuple(dict.fromkeys(witnesses[name] for name in names)), elements=elements)


def _claim(node: Node, witnesses: Mapping[str, Value], *, layout_follows: bool) -> Capability | str:
    """Return a claim of a node as what it does, or why it is left to others."""
    found, converts = _found(node)
    if isinstance(found, str):
        return found
    capacities: Collection[str] = getattr(found.spec, "capacities", ())
    results = () if found.is_counted or capacities else node.outputs
    known = _symbols((*node.inputs, *_values_in(node.subgraphs), *results))
    names = [name for name in (*known, *getattr(found.spec, "symbols", ())) if name not in capacities]
    missing = [name for name in names if name not in witnesses or witnesses[name].producer is node]
    if missing and (converts or not says_sizes(node, missing)):
        return f"the size {missing[0]} is known only when the model runs"
    reads = tuple(dict.fromkeys(witnesses[name] for name in names if name not in missing))
    if not converts:
        return NodeClaim(
            (node,),
            reads=reads,
            keeps_layout=_keeps_layout(node),
            ends=found.is_counted,
            claimed=found,
            owns_bodies=bool(node.subgraphs),
            alone=bool(capacities or missing),
        )
    if any(value.use_count for value in node.outputs[1:]):
        return f"{node.op_type} with more than one output is not converted to NHWC"
    if not layout_follows:
        return f"{node.op_type} is compiled in NHWC only, and this node stays in NCHW"
    return NodeClaim((node,), reads=reads)


def _values_in(bodies: Iterable[Graph]) -> Iterable[Value | None]:
    """Yield the values that bodies give, and those of their nodes."""
    for body in bodies:
        yield from body.outputs
        for graph in nested_graphs(body):
            for node in graph:
                yield from node.inputs
                yield from node.outputs


def _found(node: Node) -> tuple[Claimed | str, bool]:
    """Return how a node is lowered, or why it is not, and whether that is so only once it has been converted to NHWC."""
    own = claim_node(node)
    find = find_claim(NHWC_DOMAIN, node.op_type) if node.domain in _CONVERTED and isinstance(own, str) else None
    if find is None:
        return own, False
    converted, is_only = find(node), find_claim(node.domain, node.op_type) is None
    return (own, False) if isinstance(converted, str) and not is_only else (converted, True)


def _in_one_layout(claims: Sequence[Capability]) -> Sequence[Capability]:
    """Return the claims; where no node must be converted to NHWC, none is: to transpose data takes longer than it saves."""
    if any(isinstance(claim, NodeClaim) and claim.claimed is None for claim in claims):
        return claims
    return [dataclasses.replace(claim, keeps_layout=True) if isinstance(claim, NodeClaim) else claim for claim in checked(claims)]


def _keeps_layout(node: Node) -> bool:
    """Return whether a node stays in NCHW: without a kernel in NHWC, groups with a scale for each group alone, and reshaped rows.

    An instance normalization of what a Reshape made normalizes groups that are no channels of an image. A pool whose indices are
    read has them in NCHW.
    """
    if find_claim(NHWC_DOMAIN, node.op_type) is None or given(node.inputs[0]).dtype is DataType.DOUBLE:
        return True
    if node.op_type == "MaxPool":
        return any(value.use_count for value in node.outputs[1:])
    if node.op_type == "InstanceNormalization":
        data = node.inputs[0]
        return data is not None and data.producer is not None and data.producer.op_type == "Reshape"
    return node.op_type == "GroupNormalization" and not GroupNormalization.of(node).scales_channels


def _symbols(values: Iterable[Value | None]) -> Collection[str]:
    shapes = (value.shape or () for value in values if value is not None)
    return dict.fromkeys(name for shape in shapes for dim in shape for name in sorted(symbols_in(dim)))
