"""Small changes of models, with the names of `onnxruntime.tools.onnx_model_utils`; graphs are onnx.GraphProto, changed in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from sardonyx.errors import InvalidArgument
from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.protos import Message
from sardonyx.ir import TensorType
from sardonyx.ops.infer import infer_graph
from sardonyx.session.enums import GraphOptimizationLevel
from sardonyx.session.optimization import optimize_file
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import read_settings
from sardonyx.tools.models import Given, graphs_of

__all__ = [
    "fix_output_shapes",
    "get_opsets_imported",
    "get_optimization_level",
    "get_producer_consumer_maps",
    "is_fixed_size_tensor",
    "iterate_graph_per_graph_func",
    "iterate_graph_per_node_func",
    "make_dim_param_fixed",
    "make_input_shape_fixed",
    "optimize_model",
    "remove_invalid_dim_values",
    "update_onnx_opset",
]

_LEVELS: Mapping[str, GraphOptimizationLevel] = {
    "disable": GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "layout": GraphOptimizationLevel.ORT_ENABLE_LAYOUT,
    "all": GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def iterate_graph_per_node_func(graph: Message, per_node_func: Callable[..., object], **func_args: object) -> None:
    """Call a function with each node of a graph and of the graphs inside."""
    for node in [node for inner in graphs_of(graph) for node in inner.node]:
        per_node_func(node, **func_args)


def iterate_graph_per_graph_func(graph: Message, per_graph_func: Callable[..., object], **func_args: object) -> None:
    """Call a function with a graph and each of the graphs inside."""
    for inner in list(graphs_of(graph)):
        per_graph_func(inner, **func_args)


def get_opsets_imported(model: Message) -> dict[str, int]:
    """Return the version that a model imports of each domain; ai.onnx is called so."""
    return {item.domain or "ai.onnx": int(item.version) for item in model.opset_import}


def get_optimization_level(level: str) -> GraphOptimizationLevel:
    """Return the level of a text: disable, basic, extended, layout or all; raises InvalidArgument for another."""
    if level not in _LEVELS:
        raise InvalidArgument(f"a level is one of {', '.join(_LEVELS)}, got {level!r}")
    return _LEVELS[level]


def make_dim_param_fixed(graph: Message, param_name: str, value: int) -> None:
    """Give a symbolic dimension a size, in inputs, outputs and declared values of a graph and of the graphs inside.

    Sizes that were declared negative, which means nothing, are left open.

    Raises:
        InvalidArgument: the size is not positive.
    """
    _check_size(value, f"the dimension {param_name!r}")
    for inner in graphs_of(graph):
        _fix(inner, {param_name: value})


def make_input_shape_fixed(graph: Message, input_name: str, fixed_shape: Sequence[int]) -> None:
    """Give an input a shape; the symbols that it had get their sizes in all of the graph.

    Args:
        graph: the main graph.
        input_name: the input.
        fixed_shape: its sizes, all positive.

    Raises:
        InvalidArgument: there is no such input, it is no tensor, or has another rank, another size, or a symbol of two sizes.
    """
    found = next((value for value in graph.input if value.name == input_name), None)
    if found is None:
        raise InvalidArgument(f"the graph has no input {input_name!r}; its inputs are {[value.name for value in graph.input]}")
    if not found.type.HasField("tensor_type"):
        raise InvalidArgument(f"input {input_name!r} is no tensor, and has no shape")
    for size in fixed_shape:
        _check_size(size, f"input {input_name!r}")
    shape = found.type.tensor_type.shape
    if not found.type.tensor_type.HasField("shape"):
        for size in fixed_shape:
            shape.dim.add().dim_value = size
        return
    if len(shape.dim) != len(fixed_shape):
        raise InvalidArgument(
            f"input {input_name!r} has {len(shape.dim)} dimensions, the shape {list(fixed_shape)} {len(fixed_shape)}"
        )
    symbols: dict[str, int] = {}
    for dim, size in zip(shape.dim, fixed_shape, strict=True):
        known = symbols.setdefault(dim.dim_param, size) if dim.dim_param else max(dim.dim_value, 0) or size
        if known != size:
            raise InvalidArgument(f"input {input_name!r}: {dim.dim_param or 'a dimension'} is {known}, and cannot be {size} too")
    for dim, size in zip(shape.dim, fixed_shape, strict=True):
        dim.dim_value = size
    for inner in graphs_of(graph):
        _fix(inner, symbols)


def remove_invalid_dim_values(graph: Message) -> None:
    """Leave the dimensions open that are declared with a size below 1, in a graph and the graphs inside."""
    for inner in graphs_of(graph):
        _fix(inner, {})


def fix_output_shapes(model: Message) -> None:
    """Have each output of a model declare the sizes that follow from those of the inputs; one that does not stays as it is.

    Raises:
        SardonyxError: the model is invalid.
    """
    inferred = onnx_format.load(model)
    infer_graph(inferred)
    for declared, value in zip(model.graph.output, inferred.graph.outputs, strict=True):
        is_known = isinstance(value.type, TensorType) and value.shape is not None
        if is_known and all(isinstance(dim, int) for dim in value.shape or ()) and not is_fixed_size_tensor(declared):
            shape = declared.type.tensor_type.shape
            shape.Clear()
            declared.type.tensor_type.shape.SetInParent()
            for dim in value.shape or ():
                shape.dim.add().dim_value = int(dim) if isinstance(dim, int) else 0


def is_fixed_size_tensor(value: Message) -> bool:
    """Return whether an onnx.ValueInfoProto is a tensor all of whose dimensions have a positive size."""
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        return False
    return all(dim.HasField("dim_value") and dim.dim_value > 0 for dim in value.type.tensor_type.shape.dim)


def get_producer_consumer_maps(graph: Message) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """Return for each node of a graph, by its number, those that make what it reads, and those that read what it makes.

    A node counts as a reader of what the graphs inside it read.
    """
    nodes = list(graph.node)
    maker = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    producers: dict[int, set[int]] = {}
    consumers: dict[int, set[int]] = {}
    for number, node in enumerate(nodes):
        inner = [part for attribute in node.attribute if attribute.HasField("g") for part in graphs_of(attribute.g)]
        read = {*node.input, *(name for part in inner for below in part.node for name in below.input)}
        for other in {maker[name] for name in read if name in maker} - {number}:
            producers.setdefault(number, set()).add(other)
            consumers.setdefault(other, set()).add(number)
    return producers, consumers


def optimize_model(
    model_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str],
    level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_BASIC,
    log_level: int = 3,
    use_external_initializers: bool = False,
) -> None:
    """Write what the optimizer makes of a model, without what only fits one machine.

    Args:
        model_path: the model.
        output_path: where it goes.
        level: how far to go.
        log_level: accepted; `sardonyx.set_default_logger_severity` has it for all.
        use_external_initializers: whether weights go into a file beside it.

    Raises:
        SardonyxError: the model cannot be read, or is invalid.
    """
    options = SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = os.fspath(output_path)
    model, _ = optimize_file(model_path, read_settings(options))
    onnx_format.save(model, output_path, external_data=True if use_external_initializers else None)


def update_onnx_opset(
    model_path: Given, opset: int, out_path: str | os.PathLike[str] | None = None, logger: object = None
) -> Message:
    """Return a model that imports a newer version of ai.onnx, with nodes that mean the same under it.

    Args:
        model_path: the path of a model, or an onnx.ModelProto.
        opset: the version.
        out_path: where to write it; nowhere for None.
        logger: accepted.

    Raises:
        InvalidArgument: the model cannot be raised to that version; the message names the node.
    """
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    model, _ = optimize_file(model_path, read_settings(options), opset=opset)
    if out_path is not None:
        onnx_format.save(model, out_path)
    return onnx_format.to_proto(model)


def _check_size(size: object, what: str) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidArgument(f"{what}: a size is a number of at least 1, got {size!r}")


def _fix(graph: Message, sizes: Mapping[str, int]) -> None:
    """Give symbols their sizes in what one graph declares, and leave sizes below 1 open."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
            if dim.HasField("dim_param") and dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
            elif dim.HasField("dim_value") and dim.dim_value < 1:
                dim.ClearField("dim_value")
