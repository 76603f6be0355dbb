"""Types and shapes of a model's values as a table, with the names of `onnxruntime.transformers.shape_infer_helper`."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.errors import InvalidGraph
from sardonyx.formats.protos import Message
from sardonyx.tools.symbolic_shape_infer import SymbolicShapeInference

__all__ = ["SymbolicShapeInferenceHelper"]


class SymbolicShapeInferenceHelper:
    """The types and shapes of the main graph's values, for sizes of the symbols."""

    def __init__(
        self,
        model: Message,
        verbose: int = 0,
        int_max: int = 2**31 - 1,
        auto_merge: bool = True,
        guess_output_rank: bool = False,
    ) -> None:
        """Wrap a model, which stays as it is; nothing is inferred yet. Arguments are those of `infer_shapes`."""
        self.model_ = model
        """The onnx.ModelProto that was given."""
        self.verbose_ = verbose
        """As given."""
        self.all_shapes_inferred_ = False
        """Whether `infer` has succeeded."""
        self.known_vi_: dict[str, Message] = {}
        """Name of a value -> its onnx.ValueInfoProto."""
        self._guess = guess_output_rank
        self._sizes: dict[str, int] = {}

    def infer(self, dynamic_axis_mapping: Mapping[str, int], max_runs: int = 200) -> bool:
        """Infer types and shapes; return whether they can be right.

        Args:
            dynamic_axis_mapping: symbol -> its size.
            max_runs: accepted; one walk is enough.
        """
        if self.all_shapes_inferred_ and self._sizes == dict(dynamic_axis_mapping):
            return True
        self._sizes = dict(dynamic_axis_mapping)
        given = type(self.model_)()
        given.CopyFrom(self.model_)
        for value in given.graph.input:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in self._sizes:
                    dim.dim_value = self._sizes[dim.dim_param]
        try:
            graph = SymbolicShapeInference.infer_shapes(given, guess_output_rank=self._guess, verbose=self.verbose_).graph
        except InvalidGraph:
            self.all_shapes_inferred_ = False
            return False
        self.known_vi_ = {value.name: value for value in (*graph.input, *graph.output, *graph.value_info)}
        for tensor in graph.initializer:
            value = self.known_vi_.setdefault(tensor.name, type(graph.value_info.add())(name=tensor.name))
            value.type.tensor_type.elem_type = tensor.data_type
            if not value.type.tensor_type.HasField("shape"):
                value.type.tensor_type.shape.SetInParent()
                for size in tensor.dims:
                    value.type.tensor_type.shape.dim.add().dim_value = size
        self.all_shapes_inferred_ = True
        return True

    def infer_shapes(self, model: Message, auto_merge: bool = False, guess_output_rank: bool = False) -> Message:
        """Return a copy of a model that declares types and shapes, as `SymbolicShapeInference.infer_shapes` does."""
        return SymbolicShapeInference.infer_shapes(model, auto_merge=auto_merge, guess_output_rank=guess_output_rank)

    def get_edge_shape(self, edge: str) -> list[int | str | None] | None:
        """Return the shape of a value: sizes, symbols, None for what is open; None where the shape is not known.

        Args:
            edge: the name of the value.
        """
        value = self.known_vi_.get(edge)
        if value is None or not value.type.tensor_type.HasField("shape"):
            return None
        dims = value.type.tensor_type.shape.dim
        return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in dims]

    def compare_shape(self, edge: str, edge_other: str) -> bool:
        """Return whether two values have one shape; False where a shape is not known.

        Args:
            edge: the name of a value.
            edge_other: the name of the other.
        """
        shape, other = self.get_edge_shape(edge), self.get_edge_shape(edge_other)
        return shape is not None and shape == other and None not in shape
