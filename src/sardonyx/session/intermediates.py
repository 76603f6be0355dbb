"""The values of a model between its inputs and outputs, which a run computes by name."""

from __future__ import annotations

from sardonyx.errors import locating
from sardonyx.ops.infer import infer_graph
from sardonyx.ops.session_operators import session_operators
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.inline_functions import InlineFunctions
from sardonyx.session.custom_operators import lookup_of
from sardonyx.session.named_values import made_values
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.load import fix_dimensions
from sardonyx.session.stages.source import Source
from sardonyx.session.values import NodeArg, node_arg

__all__ = ["list_intermediates"]


def list_intermediates(source: Source, settings: Settings) -> list[NodeArg]:
    """Return what `find_values` finds besides inputs, outputs and initializers, with inferred types, in the order of the nodes.

    Args:
        source: where the model comes from.
        settings: of the session, of which dimensions that are fixed count.

    Raises:
        Fail: the model was read before, and one of its files has changed since.
        SardonyxError: the model cannot be loaded, or is invalid.
    """
    source.check()
    model = source.read(settings.load)
    try:
        with locating(f"model {model.label}"), session_operators(lookup_of(settings)):
            fix_dimensions(model, settings.load, settings.optimize.disabled)
            InlineFunctions(names_values=True).run(model, Context())
            infer_graph(model)
            outputs = {value.name for value in model.graph.outputs}
            return [node_arg(value) for value in made_values(model) if value.name not in outputs]
    finally:
        model.dismantle()
