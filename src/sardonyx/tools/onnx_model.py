"""What the optimizer returns: a model with questions about its nodes, and ways to convert and save it."""

from __future__ import annotations

import collections
import os
from typing import Any

from sardonyx.errors import InvalidGraph
from sardonyx.formats.protos import Message
from sardonyx.tools.float16 import convert_float_to_float16
from sardonyx.tools.graph_constants import GraphConstants
from sardonyx.tools.models import save
from sardonyx.tools.symbolic_shape_infer import SymbolicShapeInference

__all__ = ["OnnxModel"]

_FUSED = (
    "EmbedLayerNormalization",
    "Attention",
    "MultiHeadAttention",
    "Gelu",
    "FastGelu",
    "BiasGelu",
    "GemmFastGelu",
    "LayerNormalization",
    "SimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
    "RotaryEmbedding",
    "QOrderedAttention",
    "QOrderedGelu",
    "QOrderedLayerNormalization",
    "QOrderedMatMul",
)
"""Operators that `get_fused_operator_statistics` counts, as onnxruntime's does."""
_NORMALIZATIONS = (
    *("EmbedLayerNormalization", "LayerNormalization", "SimplifiedLayerNormalization"),
    *("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
)


class OnnxModel(GraphConstants):
    """An onnx.ModelProto, with the methods of onnxruntime's class that scripts call."""

    def get_opset_version(self) -> int:
        """Return the version of ai.onnx that the model imports.

        Raises:
            InvalidGraph: it imports none.
        """
        found = next((item for item in self.model.opset_import if item.domain in ("", "ai.onnx")), None)
        if found is None:
            known = ", ".join(item.domain for item in self.model.opset_import)
            raise InvalidGraph(f"the model imports no version of ai.onnx, but of {known or 'nothing'}: it has no opset")
        return int(found.version)

    def get_operator_statistics(self, include_domain: bool = False) -> dict[str, int]:
        """Return how many nodes there are of each operator, called "domain:Operator" outside ai.onnx where asked for."""
        names = (f"{node.domain}:{node.op_type}" if include_domain and node.domain else node.op_type for node in self.nodes())
        return dict(collections.Counter(names))

    def get_fused_operator_statistics(self) -> dict[str, int]:
        """Return how many nodes there are of each operator that fusions make, 0 included."""
        found = self.get_operator_statistics()
        return {name: found.get(name, 0) for name in _FUSED}

    def is_fully_optimized(self, fused_op_count: dict[str, int] | None = None) -> bool:
        """Return whether there are fused attentions, activations and normalizations, as in a transformer all of whose parts fused.

        Args:
            fused_op_count: what `get_fused_operator_statistics` returned; counted where None.
        """
        found = collections.Counter(self.get_fused_operator_statistics() if fused_op_count is None else fused_op_count)
        attentions = found["Attention"] + found["MultiHeadAttention"] + found["QOrderedAttention"]
        activations = found["Gelu"] + found["BiasGelu"] + found["FastGelu"] + found["GemmFastGelu"]
        normalizations = sum(found[name] for name in _NORMALIZATIONS)
        return attentions > 0 and attentions == activations and normalizations >= 2 * attentions

    def convert_float_to_float16(self, use_symbolic_shape_infer: bool = True, **kwargs: Any) -> None:  # as that function takes
        """Make the model one in float16.

        Args:
            use_symbolic_shape_infer: accepted; types and shapes are always inferred.
            kwargs: of `sardonyx.tools.float16.convert_float_to_float16`; `keep_io_types` is True unless it is among them.
        """
        self.initialize(convert_float_to_float16(self.model, **{"keep_io_types": True, **kwargs}))

    def infer_shapes(self) -> None:
        """Have the model declare the types and shapes of its values."""
        self.initialize(SymbolicShapeInference.infer_shapes(self.model))

    def convert_model_float32_to_float16(self, cast_input_output: bool = True) -> None:
        """Make the model one in float16, as `convert_float_to_float16` does; the former name of onnxruntime's method."""
        self.convert_float_to_float16(keep_io_types=cast_input_output)

    @staticmethod
    def save(
        model: Message,
        output_path: str | os.PathLike[str],
        save_as_external_data: bool = False,
        all_tensors_to_one_file: bool = True,
        size_threshold: int = 1024,
        convert_attribute: bool = False,
    ) -> None:
        """Write a model, as `save_model_to_file` does."""
        save(model, output_path, external_data=True if save_as_external_data else None)

    def save_model_to_file(
        self,
        output_path: str | os.PathLike[str],
        use_external_data_format: bool = False,
        all_tensors_to_one_file: bool = True,
        size_threshold: int = 1024,
        convert_attribute: bool = False,
    ) -> None:
        """Write the model.

        Args:
            output_path: its file.
            use_external_data_format: whether weights go into a file beside it, called as the model with `.data` behind.
            all_tensors_to_one_file: accepted; there is one file.
            size_threshold: accepted; what is smaller than 4096 bytes stays in the model.
            convert_attribute: accepted; tensors in attributes stay there.

        Raises:
            Fail: the system does not let us write.
        """
        save(self.model, output_path, external_data=True if use_external_data_format else None)
