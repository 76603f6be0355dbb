"""Models written in any format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sardonyx.errors import Fail
from sardonyx.forks import without_fork
from sardonyx.formats import models, onnx
from sardonyx.formats.model_format import Loss
from sardonyx.formats.ort.operators import OperatorFacts, default_attribute, facts_of
from sardonyx.formats.registry import format_for_path
from sardonyx.ir import Attribute, Graph, Model, Node, Tensor
from sardonyx.ir.walk import all_graphs
from sardonyx.ops.infer import infer_graph
from sardonyx.ops.schemas import ParameterOption, ParameterSchema, find_schema
from sardonyx.optimize.contract import Context
from sardonyx.optimize.edit import take_over
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS
from sardonyx.providers.reference.provider import evaluate

__all__ = ["save_model"]

_ONNX, _ORT = "ONNX", "ORT"


def save_model(model: Model, path: Path, name: str = "", *, data_name: str = "", least_bytes: int = 4096) -> Sequence[Loss]:
    """Write a model, all or nothing; returns what its format does not hold.

    For a format other than ONNX functions are inlined and types inferred first, in the model itself.

    Args:
        model: the model.
        path: where it goes.
        name: the format; where empty, the suffix of the path decides.
        data_name: the name of a file beside it that its weights go to, in ONNX's format.
        least_bytes: how large a tensor in that file is at least.

    Raises:
        InvalidArgument: the format is not known, or cannot be written.
        NotImplemented: the format cannot express the model.
        Fail: the system does not let us write.
    """
    chosen = format_for_path(path, name)
    if chosen.name == _ONNX:
        onnx.save(model, path, data_name=data_name, least_bytes=least_bytes)
        return ()
    losses = [Loss(f"function {domain}.{called}", "its calls are replaced by its body") for domain, called, _ in model.functions]
    INLINE_FUNCTIONS.run(model, Context())
    for graph in all_graphs(model):
        _store_constants(graph)
    infer_graph(model)
    if chosen.name != _ORT:
        return (*losses, *models.save(model, path, chosen.name))
    with without_fork():
        from sardonyx.formats.ort.write import write  # which few models need

    try:
        return (*losses, *write(model, path, _described))
    except OSError as error:
        raise Fail(f"the model cannot be saved as {str(path)!r}: {error.strerror or error}") from error


def _store_constants(graph: Graph) -> None:
    """Make initializers of Constant nodes, which formats other than ONNX lack."""
    for node in list(graph):
        if node.op_type == "Constant" and not node.domain:
            (array,) = evaluate(node, [])
            value = graph.add_initializer(Tensor.from_array(array), node.output.name)
            take_over(node.output, value, node.version)
            graph.remove(node)


def _described(node: Node) -> OperatorFacts:
    """Return what ONNX Runtime's format says of an operator, of its own domains too."""
    facts = facts_of(node)
    schema = None if facts.inputs or facts.outputs else find_schema(node.domain, node.op_type, node.version)
    if schema is None:
        return facts

    def types(parameters: Sequence[ParameterSchema]) -> tuple[tuple[str, bool], ...]:
        named = ((item, item.type if item.type in schema.type_constraints else item.name) for item in parameters)
        return tuple((name, item.option is ParameterOption.VARIADIC) for item, name in named)

    defaults = [item for item in schema.attributes.values() if item.default is not None and item.default != ()]
    return OperatorFacts(
        schema.since_version,
        types(schema.inputs),
        types(schema.outputs),
        tuple(default_attribute(item.name, Attribute(item.kind, item.default)) for item in defaults),
    )
