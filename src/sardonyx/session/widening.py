"""The casts of a session: float16 and bfloat16 that no provider runs as they are, in float32 between casts."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir import Model
from sardonyx.ir.walk import nested_graphs
from sardonyx.partition.casts import Widening, widen
from sardonyx.provider import Provider
from sardonyx.trace import event

__all__ = ["widen_model"]


def widen_model(model: Model, providers: Sequence[Provider], widened_for: str = "") -> bool:
    """Widen the main graph and every body; whether anything was widened.

    Args:
        model: what to widen, in place.
        providers: in the order in which they are asked; the last runs everything.
        widened_for: the one provider that is asked, besides the last; where none of that name is there, all are.
    """
    only = [provider for provider in providers[:-1] if provider.name == widened_for]
    asked = [*only, providers[-1]] if only else providers
    widening = Widening()
    count = sum(widen(graph, asked, widening) for graph in list(nested_graphs(model.graph)))
    if count:
        event("partition.widened", model=model.label, nodes=count)
    return count > 0
