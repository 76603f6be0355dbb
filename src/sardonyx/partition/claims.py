"""What providers claim of the nodes of a graph: asked once for each phase, checked, and kept in a table.

    phase                       asked about                                            of whom
    functions (before inlining) calls of model-local functions                         all but the last
    widening                    the graph as it is, and a copy with wide floats        all but the last
    prediction                  the graph that a profile is asked about                all
    a file's note               the graph that is saved                                all
    assignment                  what is left for each provider, in turn                each, in `assign.py`

In all phases but the last every provider is asked about every node, so claims overlap; a table is good as long as the graph is not
changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled
from sardonyx.errors import EPFail, SardonyxError, blamed, describe, located
from sardonyx.ir import Graph, Node, Value
from sardonyx.ir.walk import captured_values
from sardonyx.provider import Capability, Claims, GraphView, Provider

__all__ = ["ClaimTable", "ask", "claimed_nodes", "claims_of"]


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimTable:
    """What each provider claims of one graph when every node is to be had."""

    nodes: Mapping[str, AbstractSet[Node]]
    """Provider, in the order in which they are asked -> the nodes that it claims."""

    def claimed(self) -> set[Node]:
        """Return the nodes that any provider claims."""
        return set().union(*self.nodes.values())

    def providers_of(self, node: Node) -> tuple[str, ...]:
        """Return who claims a node, in order."""
        return tuple(name for name, claimed in self.nodes.items() if node in claimed)


def claims_of(graph: Graph, providers: Sequence[Provider], nodes: Sequence[Node] | None = None) -> ClaimTable:
    """Ask each provider once, about `nodes` or all nodes of `graph`; raises EPFail as `ask` does. O(providers x nodes)."""
    offered = tuple(graph if nodes is None else nodes)
    return ClaimTable({provider.name: frozenset(claimed_nodes(ask(provider, graph, offered))) for provider in providers})


def claimed_nodes(claims: Claims) -> Iterable[Node]:
    """Return the nodes of all claims, in their order."""
    return (node for capability in claims.capabilities for node in capability.nodes)


def ask(provider: Provider, graph: Graph, nodes: tuple[Node, ...], *, after_layout: bool = False) -> Claims:
    """Return what `provider` claims of `nodes`; raises EPFail, with its name, where it raises or claims what it was not offered."""
    check_cancelled()
    try:
        before = _state(graph)
        answer: object = provider.capabilities(GraphView(graph, nodes, after_layout))
        claims, problem = _checked(answer, set(nodes), graph)
        check_cancelled()
        if _state(graph) != before:
            problem = "changed the graph when it was asked for its capabilities; the view of it is for reading"
    except SardonyxError as error:
        raise blamed(located(error, f"{provider.name} was asked for its capabilities"), provider.name) from error
    except Exception as error:
        message = f"{provider.name} raised when asked for its capabilities: {describe(error)}"
        raise blamed(EPFail(message), provider.name) from error
    if problem is not None:
        raise blamed(EPFail(f"{provider.name} {problem}"), provider.name)
    return claims


def _state(graph: Graph) -> list[tuple[object, ...]]:
    """Return a fingerprint that shows whether `graph` was changed."""
    return [(node, node.domain, node.op_type, node.version, *node.inputs, None, *node.outputs) for node in graph]


def _checked(answer: object, offered: set[Node], graph: Graph) -> tuple[Claims, str | None]:
    """Return what a provider answered, anything, with sequences and a mapping as they are annotated, and what is wrong with it."""
    if not isinstance(answer, Claims):
        return Claims(), f"answers the question for its capabilities with {answer!r:.200}; it must return Claims"
    declined: object = answer.declined
    if not isinstance(declined, Mapping):
        return Claims(), f"gives the reasons {declined!r:.200} for what it declines; they are a mapping from nodes to texts"
    claimed: list[Capability] = []
    given: Iterable[object] = answer.capabilities
    for capability in given:
        if not isinstance(capability, Capability):
            return Claims(), f"claims {capability!r:.200}; a claim is a Capability"
        listed: tuple[object, object] = (capability.nodes, capability.reads)
        if not all(isinstance(item, Iterable) for item in listed):
            return Claims(), f"claims {capability!r:.200}; nodes and reads are tuples: Capability((node,))"
        check_cancelled()
        if type(capability.nodes) is not tuple or type(capability.reads) is not tuple:
            capability = dataclasses.replace(capability, nodes=tuple(capability.nodes), reads=tuple(capability.reads))
        claimed.append(capability)
    problems = (_problem_of_claim(capability, offered, graph) for capability in claimed)
    return Claims(claimed, answer.declined), next((problem for problem in problems if problem is not None), None)


def _problem_of_claim(capability: Capability, offered: set[Node], graph: Graph) -> str | None:
    check_cancelled()
    strange = [node for node in capability.nodes if node not in offered]
    if strange:
        return f"claims {strange[0]!r}, which it was not offered; claim only nodes of view.nodes"
    if not capability.nodes and capability.fused:
        return f"claims {capability.name or 'a fused unit'} without nodes; a fused claim needs at least one"
    if len(set(capability.nodes)) < len(capability.nodes):
        twice = next(node for node in capability.nodes if capability.nodes.count(node) > 1)
        return f"claims {twice!r} twice in {capability.name or 'one claim'}; name each node once"
    unreadable = [value for value in capability.reads if not _is_readable(value, graph)]
    if unreadable:
        return f"wants to read {unreadable[0]!r} for {capability.nodes[0]!r}, which is no value of its graph"
    return None


def _is_readable(value: object, graph: Graph) -> bool:
    """Return whether nodes of `graph` can read `value`, which may be anything."""
    if not isinstance(value, Value):
        return False
    if value.producer is not None and value.producer.graph is graph:
        return True
    return value.constant is not None or value in graph.inputs or value in captured_values(graph)
