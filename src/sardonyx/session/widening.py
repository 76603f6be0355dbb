"""The casts of a session: float16 and bfloat16 that no provider runs as they are, in float32 between casts.

The config entry `session.keep_narrow_floats` set to "1" leaves such nodes to the reference provider, in their own type.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir import Model
from sardonyx.ir.walk import nested_graphs
from sardonyx.partition.casts import Widening, widen
from sardonyx.provider import Provider
from sardonyx.session.options import SessionOptions
from sardonyx.trace import event

__all__ = ["ENTRY", "widen_model"]

ENTRY = "session.keep_narrow_floats"
"""The config entry that turns the casts off."""


def widen_model(model: Model, providers: Sequence[Provider], options: SessionOptions) -> bool:
    """Widen the main graph and every body; whether anything was widened."""
    if options.session_config_entries.get(ENTRY, "0") == "1":
        return False
    widening = Widening()
    count = sum(widen(graph, providers, widening) for graph in list(nested_graphs(model.graph)))
    if count:
        event("partition.widened", model=model.label, nodes=count)
    return count > 0
