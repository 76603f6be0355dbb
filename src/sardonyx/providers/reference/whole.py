"""Run a whole model by the reference kernels, with nothing of a session around: what rewrites are judged by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, Model
from sardonyx.ir.walk import captured_values
from sardonyx.providers.reference.program import ReferenceProgram

__all__ = ["run_model"]


def run_model(model: Model, feed: Mapping[str, Array]) -> list[OnnxValue]:
    """Return the outputs of a model without function calls; Any, by their ONNX type.

    Args:
        model: what to run; it stays as it is.
        feed: input name -> value, for each input without a default.

    Raises:
        NotImplemented: there is no kernel for a node.
        SardonyxError: a kernel refuses its inputs.
    """
    graph = model.graph
    missing = [value.name for value in graph.inputs if value.name not in feed and value.constant is None]
    if missing:
        raise InvalidArgument(f"model {model.label}: the inputs {missing} are not fed")
    given = [feed.get(value.name) if value.constant is None else value.constant.numpy() for value in graph.inputs]
    return _Whole(graph).hold(())(given)


class _Whole:
    """A graph with all that is nested in it; also the body of a node, as programs call it."""

    def __init__(self, graph: Graph) -> None:
        captured = captured_values(graph)
        self.captures = tuple(value for value in captured if value.constant is None)
        inputs = (*graph.inputs, *self.captures)
        constants = [value for value in (*graph.initializers.values(), *captured) if value.constant is not None]
        own = [value for value in dict.fromkeys(constants) if value not in inputs]
        self._program = ReferenceProgram(tuple(graph), inputs, own, graph.outputs, _Whole)

    def hold(self, captures: Sequence[OnnxValue]) -> Callable[[Sequence[OnnxValue]], list[OnnxValue]]:
        """Return what computes the outputs from the inputs, with what is captured in the order of `captures`."""
        return lambda inputs: self._program.run(None, [*inputs, *captures], (), None)
