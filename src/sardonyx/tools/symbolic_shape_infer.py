"""Types and shapes of all values of a model, in symbols where sizes are known only when it runs.

inferred = SymbolicShapeInference.infer_shapes(onnx.load("model.onnx"))
python -m sardonyx.tools.symbolic_shape_infer --input model.onnx --output inferred.onnx
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence

from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.protos import Message
from sardonyx.ir import Model, TensorType, Value
from sardonyx.ir.shape import anonymous
from sardonyx.ir.walk import all_nodes
from sardonyx.ops.infer import infer_graph
from sardonyx.ops.schemas import find_schema
from sardonyx.tools.models import Given, graphs_of, read, to_proto

__all__ = ["SymbolicShapeInference", "main"]

_logger = logging.getLogger("sardonyx.tools")
_INT_MAX = 2**31 - 1


class SymbolicShapeInference:
    """Inference as a call; there is nothing to keep between two of them."""

    @staticmethod
    def infer_shapes(
        in_mp: Given, int_max: int = _INT_MAX, auto_merge: bool = False, guess_output_rank: bool = False, verbose: int = 0
    ) -> Message:
        """Return a copy of a model that declares the type and the shape of every value that has one.

        Dimensions are numbers, symbols of the inputs, or expressions in these such as `2*n + 1`; one that nothing is known of is
        left open. What the model declares is overruled where the operators contradict it.

        Args:
            in_mp: an onnx.ModelProto, or the path of a model.
            int_max: accepted; expressions know no largest number.
            auto_merge: accepted; a declared size that contradicts the operator's never stops inference.
            guess_output_rank: whether outputs of unknown operators have the type and rank of the first input.
            verbose: above 0 what is still unknown goes to the logger "sardonyx.tools", as warnings.

        Raises:
            InvalidGraph: types or shapes cannot be right in any run.
        """
        model = read(in_mp)
        infer_graph(model)
        while guess_output_rank and _guess(model):
            infer_graph(model)
        if verbose > 0:
            for value in _unknown(model):
                _logger.warning("%s: the shape of %r is not known before a run", model.label, value.name)
        return to_proto(model) if isinstance(in_mp, (str, os.PathLike)) else _with_types(in_mp, model)


def _with_types(given: Message, model: Model) -> Message:
    """Return a copy of an onnx.ModelProto with the types of values as inferred; all else stays, weights as they are written too."""
    inferred = onnx_format.to_proto_without_data(model)
    made = type(given)()
    made.CopyFrom(given)
    graphs, found = list(graphs_of(made.graph)), list(graphs_of(inferred.graph))
    if [graph.name for graph in graphs] != [graph.name for graph in found]:
        return to_proto(model)
    for graph, other in zip(graphs, found, strict=True):
        known = {value.name for value in other.value_info}
        kept = [value for value in graph.value_info if value.name not in known]
        del graph.value_info[:]
        graph.value_info.extend([*kept, *other.value_info])
        for value, new in zip(graph.output, other.output, strict=True):
            if new.HasField("type"):
                value.type.CopyFrom(new.type)
    return made


def _guess(model: Model) -> bool:
    """Give outputs of unknown operators the rank of the first input; returns whether there were any."""
    guessed = False
    for node in all_nodes(model):
        first = node.inputs[0].type if node.inputs and node.inputs[0] is not None else None
        if (
            isinstance(first, TensorType)
            and first.shape is not None
            and find_schema(node.domain, node.op_type, node.version) is None
        ):
            for value in (value for value in node.outputs if value.name and value.type is None):
                value.type = TensorType(first.dtype, tuple(anonymous() for _ in first.shape))
                guessed = True
    return guessed


def _unknown(model: Model) -> list[Value]:
    values = [value for node in all_nodes(model) for value in node.outputs if value.name]
    return [value for value in values if value.type is None or (isinstance(value.type, TensorType) and value.shape is None)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Infer the shapes of the model in one file and write it to another."""
    parser = argparse.ArgumentParser(prog="python -m sardonyx.tools.symbolic_shape_infer", description=main.__doc__)
    parser.add_argument("--input", required=True, help="the model")
    parser.add_argument("--output", required=True, help="where the model with its shapes goes")
    parser.add_argument("--auto_merge", action="store_true", help="accepted: contradictions never stop inference")
    parser.add_argument("--int_max", type=int, default=_INT_MAX, help="accepted: expressions know no largest number")
    parser.add_argument("--guess_output_rank", action="store_true", help="give outputs of unknown operators the first input's rank")
    parser.add_argument("--verbose", type=int, default=0, help="above 0: name what is still unknown")
    parser.add_argument("--save_as_external_data", action="store_true", help="put the weights into a file beside OUTPUT")
    parser.add_argument("--external_data_location", default="", help="the name of that file")
    given = parser.parse_args(arguments)
    made = SymbolicShapeInference.infer_shapes(given.input, given.int_max, given.auto_merge, given.guess_output_rank, given.verbose)
    external = True if given.save_as_external_data else None
    onnx_format.save(onnx_format.load(made), given.output, external_data=external, data_name=given.external_data_location)


if __name__ == "__main__":
    main()
