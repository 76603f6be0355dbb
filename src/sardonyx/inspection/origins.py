"""Which nodes of the graph before optimization each node behind it stands for.

Rewrites keep the names of the values that they compute anew, so a node behind stands for what lay before between the values that it
makes and the nearest values that are still there:

    before   x ─ Div ─ a ─ Erf ─ b ─ Add ─ c ─ Mul ─ y        behind   x ─ Gelu ─ y        Gelu: Div, Erf, Add, Mul
"""

from __future__ import annotations

from sardonyx.inspection.graph_facts import Facts

__all__ = ["sources_of"]

_MOST = 200


def sources_of(before: Facts, after: Facts) -> list[list[int]]:
    """Return for each node of `after` the numbers of the nodes of `before` that it stands for, in their order.

    At most 200 are listed for one. Nodes that are under no node behind, such as folded ones, are in no list.
    """
    makers = {before["values"][value]["name"]: index for index, node in enumerate(before["nodes"]) for value in node["outs"]}
    names = {node["name"]: index for index, node in enumerate(before["nodes"])}
    kept = {after["values"][value]["name"] for node in after["nodes"] for value in node["outs"]} - {""}
    return [_sources(node, before, after, makers, kept) or _same(node, names) for node in after["nodes"]]


def _same(node: Facts, names: dict[str, int]) -> list[int]:
    return [names[node["name"]]] if node["name"] in names else []


def _sources(node: Facts, before: Facts, after: Facts, makers: dict[str, int], kept: set[str]) -> list[int]:
    found: set[int] = set()
    waiting = [makers[name] for value in node["outs"] if (name := after["values"][value]["name"]) in makers]
    while waiting and len(found) < _MOST:
        index = waiting.pop()
        if index in found:
            continue
        found.add(index)
        reads = (before["values"][value]["name"] for value in before["nodes"][index]["ins"])
        waiting += [makers[name] for name in reads if name in makers and name not in kept]
    return sorted(found)
