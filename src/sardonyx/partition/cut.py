"""Cutting an assigned graph into convex partitions.

The units of the graph are scheduled in topological order, one provider at a time: whatever is ready for the present provider is
taken, with all that becomes ready by it, before another provider gets its turn. The units taken in one turn are contiguous in a
topological order, hence convex, and the partitions in their order depend only on earlier ones, hence no cycle lies between
them. What waits for a unit that ends its partition is taken in a later turn. Which provider begins is chosen by trying each and
keeping the fewest partitions. O((nodes + edges) x providers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sardonyx.cancellation import check_cancelled, checked
from sardonyx.errors import EPFail, SardonyxError, blamed
from sardonyx.ir import Graph, Node, Value
from sardonyx.ir.graph import User
from sardonyx.ir.walk import captured_values, nested_graphs
from sardonyx.partition.assign import Unit
from sardonyx.partition.part import Cut
from sardonyx.provider import Capability, Partition

__all__ = ["cut", "node_reads"]


def cut(graph: Graph, units: Mapping[Node, Unit], prefix: str = "") -> tuple[list[Cut], list[Unit]]:
    """Cut `graph` into partitions, in an order in which they can run.

    Args:
        graph: the graph, its nodes in topological order.
        units: for each node its unit; a unit's nodes belong to this graph.
        prefix: what the names of the partitions begin with.

    Returns:
        The partitions, and units that cannot run as one because a path leaves them and comes back; where there are any, no
        partition is returned, and the caller assigns their nodes anew.

    Raises:
        EPFail: a claim asks to read what is computed from its own results.
    """
    check_cancelled()
    order = list(dict.fromkeys(units[node] for node in graph))
    edges = _Edges(graph, units, order)
    starts = list(dict.fromkeys(_seat(unit) for unit in order if not edges.needs[unit]))
    schedules = [_schedule(order, edges, start) for start in starts or [""]]
    best = min(schedules, key=len)
    if sum(map(len, best)) < len(order):
        placed = {unit for turn in best for unit in turn}
        stuck = [unit for unit in order if unit not in placed and unit.capability.fused and len(unit.capability.nodes) > 1]
        if not stuck:
            raise _waits_for_itself(unit for unit in order if unit not in placed and unit.capability.reads)
        return [], stuck[-1:]
    check_cancelled()
    rank = {node: index for index, node in enumerate(graph)}
    asked: dict[Value, set[Unit]] = {}
    for unit in order:
        for value in unit.capability.reads:
            asked.setdefault(value, set()).add(unit)
    return [_partition(graph, turn, rank, asked, f"{prefix}{index}") for index, turn in enumerate(best)], []


def node_reads(node: Node) -> Iterable[Value]:
    """Return the values that `node` reads, with those that its subgraphs capture; each once."""
    found = {value: None for value in node.inputs if value is not None}
    for subgraph in node.subgraphs:
        found.update((value, None) for value in captured_values(subgraph))
    return found


def _waits_for_itself(units: Iterable[Unit]) -> SardonyxError:
    unit = next(iter(units))
    reads = ", ".join(value.name or "an inner value" for value in unit.capability.reads)
    message = (
        f"{unit.provider.name} claims {unit.capability.nodes[0]!r} and wants to read {reads} for it, which is computed from its "
        "result; read only what is there before"
    )
    return blamed(EPFail(message), unit.provider.name)


class _Edges:
    """Which units wait for which, within one graph."""

    def __init__(self, graph: Graph, units: Mapping[Node, Unit], order: Sequence[Unit]) -> None:
        self.needs: dict[Unit, set[Unit]] = {unit: set() for unit in order}
        self.followers: dict[Unit, list[Unit]] = {unit: [] for unit in order}
        for node in graph:
            check_cancelled()
            unit = units[node]
            for value in (*node_reads(node), *unit.capability.reads):
                producer = value.producer
                other = None if producer is None or producer.graph is not graph else units[producer]
                if other is not None and other is not unit and other not in self.needs[unit]:
                    self.needs[unit].add(other)
                    self.followers[other].append(unit)


def _schedule(order: Sequence[Unit], edges: _Edges, start: str) -> list[list[Unit]]:
    waiting = {unit: len(edges.needs[unit]) for unit in order}
    ready: dict[str, list[Unit]] = {start: []}
    for unit in order:
        ready.setdefault(_seat(unit), [])
        if not waiting[unit]:
            ready[_seat(unit)].append(unit)
    turns: list[list[Unit]] = []
    current = start
    while any(ready.values()):
        if not ready[current]:
            current = max(ready, key=lambda name: len(ready[name]))
        turn: list[Unit] = []
        queue = ready[current]
        behind: set[Unit] = set()
        later: list[Unit] = []
        for unit in queue:  # grows while it is walked
            check_cancelled()
            turn.append(unit)
            for follower in edges.followers[unit]:
                waiting[follower] -= 1
                if unit.capability.ends:
                    behind.add(follower)
                if not waiting[follower]:
                    is_later = follower in behind and _seat(follower) == current
                    (later if is_later else ready[_seat(follower)]).append(follower)
        ready[current] = later
        turns.append(turn)
    return turns


def _seat(unit: Unit) -> str:
    """Return the queue that a unit is taken from: its provider's and stream's, or one of its own."""
    return f"{unit.provider.name}/{id(unit)}" if unit.capability.alone else f"{unit.provider.name}:{unit.stream}"


def _partition(graph: Graph, turn: Sequence[Unit], rank: dict[Node, int], asked: dict[Value, set[Unit]], name: str) -> Cut:
    """Return the partition of the units of a turn; `asked` says which units read a value that their nodes do not."""
    provider = turn[0].provider
    nodes = tuple(sorted((node for unit in turn for node in unit.capability.nodes), key=rank.__getitem__))
    inside = {value for node in nodes for value in node.outputs}
    wanted = [value for node in checked(nodes) for value in node_reads(node)] + [
        value for unit in turn for value in unit.capability.reads
    ]
    check_cancelled()
    reads = dict.fromkeys(value for value in wanted if value not in inside)
    readers = _readers_within(nodes)
    own = set(turn)
    check_cancelled()
    outputs = tuple(
        value
        for node in checked(nodes)
        for value in node.outputs
        if any(user not in readers for user, _ in value.uses) or (value in asked and not asked[value] <= own)
    )
    units: tuple[Capability, ...] = tuple(unit.capability for unit in turn)
    return Cut(
        provider,
        Partition(
            name=f"{provider.name}_{name}",
            graph=graph,
            nodes=nodes,
            units=units,
            inputs=tuple(value for value in reads if value.constant is None),
            constants=tuple(value for value in reads if value.constant is not None),
            outputs=outputs,
        ),
    )


def _readers_within(nodes: Iterable[Node]) -> set[User]:
    """Return `nodes`, with the nodes and outputs of their subgraphs at every depth.

    These read values through the node's captures.
    """
    readers: set[User] = set(nodes)
    for node in nodes:
        for subgraph in node.subgraphs:
            for inner in nested_graphs(subgraph):
                readers.add(inner)
                readers.update(inner)
    return readers
