"""A model as comparisons take it: without function calls, types known, nothing drawn at random, and its feed checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.diff.engines import Engine
from sardonyx.dtypes import OnnxValue
from sardonyx.formats.tflite import STATES
from sardonyx.ir import Model, Value
from sardonyx.ir.verify import verify
from sardonyx.ops.infer import infer_graph
from sardonyx.ops.session_operators import session_operators
from sardonyx.optimize.contract import Context
from sardonyx.optimize.edit import RANDOM, clone_model
from sardonyx.optimize.passes.inline_functions import InlineFunctions
from sardonyx.session.custom_operators import lookup_of
from sardonyx.session.feeds import check_feeds
from sardonyx.session.named_values import find_values
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.load import FIRST_WITH_DEFAULTS, fix_dimensions
from sardonyx.session.stages.source import Source

__all__ = ["giving_out", "prepared"]


def prepared(
    given: Any, feed: Mapping[str, OnnxValue], options: SessionOptions | None, plain: Engine
) -> tuple[Model, dict[str, OnnxValue]]:
    """Return the model, with functions inlined and types inferred, and its checked feed."""
    settings = read_settings(SessionOptions() if options is None else options)
    model = Source.of(given).read(settings.load)
    model.metadata = {key: text for key, text in model.metadata.items() if key != STATES}  # one run is compared
    with session_operators(lookup_of(settings)):
        fix_dimensions(model, settings.load)
        verify(model)
        InlineFunctions(names_values=True).run(model, Context())
        infer_graph(model)
    for value in [value for value in model.graph.inputs if value.constant is not None]:
        if value.name in feed and model.ir_version >= FIRST_WITH_DEFAULTS:
            del model.graph.initializers[value.name]
            value.constant = None
        else:
            model.graph.inputs.remove(value)
    checked = check_feeds(model.graph.inputs, {}, feed, model.label)
    values = {value.name: item for value, item in zip(model.graph.inputs, checked, strict=True)}
    return _without_chance(model, values, plain)


def _without_chance(model: Model, values: dict[str, OnnxValue], plain: Engine) -> tuple[Model, dict[str, OnnxValue]]:
    """Make what is drawn at random inputs of the model, with values that are drawn once."""
    graph = model.graph
    for node in [node for node in graph if node.op_type in RANDOM and not node.domain and node.op_type != "Dropout"]:
        part = giving_out(model, [value.name for value in node.outputs])
        needed = {value.name for value in part.graph.inputs}
        results = plain.load(part).run({name: item for name, item in values.items() if name in needed})
        for value, result in zip(node.outputs, results, strict=True):
            drawn = Value(value.name, value.type)
            value.replace_all_uses_with(drawn)
            graph.inputs.append(drawn)
            values[drawn.name] = result
        graph.remove(node)
    return model, values


def giving_out(model: Model, names: Sequence[str]) -> Model:
    """Return a copy of a model that gives out the values of these names only."""
    copy = clone_model(model)
    copy.graph.clear_outputs()
    for value in find_values(copy, names):
        copy.graph.add_output(value)
    return copy
