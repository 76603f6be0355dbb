"""Models written in any format."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from pathlib import Path

from sardonyx.errors import Fail, InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.formats import models, onnx
from sardonyx.formats.model_format import Loss
from sardonyx.formats.ort.operators import OperatorFacts, default_attribute, facts_of
from sardonyx.formats.registry import format_for_path
from sardonyx.ir import Attribute, Graph, Model, Node, Tensor
from sardonyx.ir.walk import all_graphs, all_nodes
from sardonyx.ops.infer import infer_graph
from sardonyx.ops.schemas import ParameterOption, ParameterSchema, find_schema
from sardonyx.optimize.contract import Context
from sardonyx.optimize.edit import take_over
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS
from sardonyx.providers.reference.provider import ReferenceProvider, evaluate
from sardonyx.session.function_bodies import expand
from sardonyx.session.placement.peer_kernels import WITHOUT_KERNELS, PeerKernels
from sardonyx.session.widening import widen_model

__all__ = ["save_model"]

_ONNX, _ORT, _PACKAGE = "ONNX", "ORT", "NNPackage"
_STANDARD = (_ONNX, _ORT, _PACKAGE)
"""Formats whose operators are those of ONNX."""
_KNOWN_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft")
_MOST_NAMED, _MOST_ROUNDS = 5, 8


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
    if data_name and chosen.name != _ONNX:
        raise InvalidArgument(f"weights can be in a file beside a model in ONNX's format only, not in {chosen.name}")
    foreign = [] if chosen.name not in _STANDARD else [*_foreign(model), *_of_other_versions(model)]
    if chosen.name == _ONNX:
        onnx.save(model, path, data_name=data_name, least_bytes=least_bytes)
        return tuple(foreign)
    if chosen.name == _PACKAGE:
        return (*foreign, *models.save(model, path, chosen.name))
    losses = [Loss(f"function {domain}.{called}", "its calls are replaced by its body") for domain, called, _ in model.functions]
    INLINE_FUNCTIONS.run(model, Context())
    for graph in all_graphs(model):
        _store_constants(graph)
    infer_graph(model)
    if chosen.name != _ORT:
        return (*losses, *models.save(model, path, chosen.name))
    _expand_operators(model)
    with without_fork():
        from sardonyx.formats.ort.write import write  # which few models need

    try:
        return (*losses, *foreign, *write(model, path, _described))
    except OSError as error:
        raise Fail(f"the model cannot be saved as {str(path)!r}: {error.strerror or error}") from error


def _foreign(model: Model) -> Iterator[Loss]:
    """Return the operators that other engines do not know."""
    names = collections.Counter(
        f"{node.domain}.{node.op_type}"
        for node in all_nodes(model)
        if node.domain not in _KNOWN_DOMAINS and (node.domain, node.op_type, node.overload) not in model.functions
    )
    for name, count in sorted(names.items()):
        yield Loss(f"{count} of {name}", "other engines need an operator of that name; sardonyx runs it")


def _of_other_versions(model: Model) -> Iterator[Loss]:
    """Return nodes that mean something else under the operator sets that the file will say, as models of a package may."""
    found = []
    for node in all_nodes(model):
        imported = model.opset_imports.get(node.domain)
        if imported is not None and node.domain in _KNOWN_DOMAINS:
            here = find_schema(node.domain, node.op_type, node.version)
            if here is not None and here != find_schema(node.domain, node.op_type, imported):
                found.append(f"{node.op_type} of opset {node.version}")
    for what, count in collections.Counter(found).most_common(_MOST_NAMED):
        yield Loss(f"{count} of {what}", "the file reads it under a later operator set, since it holds models of several")


def _expand_operators(model: Model) -> None:
    """Put function bodies and float32 in the place of what ONNX Runtime has no kernels for, as it does before it saves."""
    for _ in range(_MOST_ROUNDS):
        nodes = [node for node in all_nodes(model) if not node.domain and node.op_type in WITHOUT_KERNELS]
        if not nodes or not expand(model, nodes):
            break
    for graph in all_graphs(model):
        _store_constants(graph)
    infer_graph(model)
    if widen_model(model, (PeerKernels(), ReferenceProvider())):
        infer_graph(model)


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
