"""The classes that onnxruntime's optimizer has for types of models, over the same rules for all of them.

With `import sardonyx.as_onnxruntime` each is found in the module that onnxruntime has it in, such as
`onnxruntime.transformers.onnx_model_gpt2`.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from sardonyx.errors import InvalidArgument
from sardonyx.formats.protos import Message
from sardonyx.tools.fusing import fuse
from sardonyx.tools.fusion_options import FusionOptions
from sardonyx.tools.onnx_model import OnnxModel

__all__ = [
    "BartOnnxModel",
    "BertOnnxModel",
    "BertOnnxModelKeras",
    "BertOnnxModelTF",
    "ClipOnnxModel",
    "ConformerOnnxModel",
    "Gpt2OnnxModel",
    "MmditOnnxModel",
    "PhiOnnxModel",
    "Sam2OnnxModel",
    "T5OnnxModel",
    "TnlrOnnxModel",
    "UnetOnnxModel",
    "VaeOnnxModel",
]


class BertOnnxModel(OnnxModel):
    """A transformer that is an onnx.ModelProto."""

    model_type = "bert"
    """Which fusions are off where `optimize` gets no options."""

    def __init__(self, model: Message, num_heads: int = 0, hidden_size: int = 0) -> None:
        """Wrap a model, which is not copied.

        Args:
            model: the onnx.ModelProto.
            num_heads: accepted; found in the graph. 0 where unknown.
            hidden_size: accepted as `num_heads`, of which it is a multiple.

        Raises:
            InvalidArgument: it is no multiple, or one of them is given without the other.
        """
        if (num_heads == 0) != (hidden_size == 0) or (num_heads > 0 and hidden_size % num_heads):
            raise InvalidArgument(
                f"num_heads is {num_heads} and hidden_size {hidden_size}: the size is a multiple of the number, or both are 0"
            )
        super().__init__(model)
        self.num_heads = num_heads
        """As given."""
        self.hidden_size = hidden_size
        """As given."""

    def initialize(self, model: Message) -> None:
        """Wrap another model in its place."""
        self.__init__(model, self.num_heads, self.hidden_size)  # type: ignore[misc]  # made anew, as onnxruntime's does

    def optimize(self, options: FusionOptions | None = None, add_dynamic_axes: bool = False) -> None:
        """Make the fusions.

        Args:
            options: which; those of the type where None.
            add_dynamic_axes: whether batch and length of inputs and outputs become symbols afterwards.

        Raises:
            SardonyxError: the model is invalid.
        """
        self.initialize(fuse(self.model, FusionOptions(self.model_type) if options is None else options))
        if add_dynamic_axes:
            self.use_dynamic_axes()

    def use_dynamic_axes(self, dynamic_batch_dim: str = "batch_size", dynamic_seq_len: str = "max_seq_len") -> None:
        """Have the inputs that fused nodes read, and all outputs, declare symbols for the batch and the length.

        Args:
            dynamic_batch_dim: the symbol of the first dimension.
            dynamic_seq_len: the symbol of an input's second dimension.
        """
        read = self.get_graph_inputs_from_fused_nodes(casted=True) + self.get_graph_inputs_from_fused_nodes(casted=False)
        for value in self.model.graph.input:
            dims = value.type.tensor_type.shape.dim
            if value.name in read and len(dims) > 1:
                dims[0].dim_param, dims[1].dim_param = dynamic_batch_dim, dynamic_seq_len
        for value in self.model.graph.output:
            if value.type.tensor_type.shape.dim:
                value.type.tensor_type.shape.dim[0].dim_param = dynamic_batch_dim

    def get_graph_inputs_from_node_type(self, op_type: str, input_indices: Sequence[int], casted: bool) -> list[str]:
        """Return the model's inputs that nodes of an operator read.

        Args:
            op_type: the operator.
            input_indices: which inputs of the nodes count.
            casted: whether those that a Cast is in between count, or those without.
        """
        makers = self.output_name_to_node()
        found = []
        for node in self.get_nodes_by_op_type(op_type):
            for name in (node.input[index] for index in input_indices if index < len(node.input)):
                maker = makers.get(name)
                cast = maker is not None and maker.op_type == "Cast"
                source = maker.input[0] if maker is not None and cast else name
                if cast == casted and self.find_graph_input(source) is not None:
                    found.append(source)
        return found

    def get_graph_inputs_from_fused_nodes(self, casted: bool) -> list[str]:
        """Return the model's inputs that embeddings read as identifiers, segments or masks, and attentions as masks.

        Args:
            casted: whether those that a Cast is in between count, or those without.
        """
        found = self.get_graph_inputs_from_node_type("EmbedLayerNormalization", (0, 1, 7), casted)
        return found + self.get_graph_inputs_from_node_type("Attention", (3,), casted)

    def change_graph_inputs_to_int32(self) -> None:
        """Make the inputs that fused nodes read ones of int32, and remove the Casts to it."""
        casted = self.get_graph_inputs_from_fused_nodes(casted=True)
        for name in dict.fromkeys(casted + self.get_graph_inputs_from_fused_nodes(casted=False)):
            value = self.find_graph_input(name)
            if value is not None and value.type.tensor_type.elem_type != TensorProto.INT32:
                self.change_graph_input_type(value, TensorProto.INT32)


class BartOnnxModel(BertOnnxModel):
    """A model of the type `bart`."""

    model_type = "bart"


class BertOnnxModelTF(BertOnnxModel):
    """A model of the type `bert_tf`."""

    model_type = "bert_tf"


class BertOnnxModelKeras(BertOnnxModelTF):
    """A model of the type `bert_keras`."""

    model_type = "bert_keras"


class ClipOnnxModel(BertOnnxModel):
    """A text encoder of a diffusion model, of the type `clip`."""

    model_type = "clip"


class ConformerOnnxModel(BertOnnxModel):
    """A model of the type `conformer`."""

    model_type = "conformer"


class Gpt2OnnxModel(BertOnnxModel):
    """A model of the type `gpt2`, or another decoder."""

    model_type = "gpt2"


class MmditOnnxModel(BertOnnxModel):
    """A transformer of a diffusion model, of the type `mmdit`."""

    model_type = "mmdit"


class PhiOnnxModel(BertOnnxModel):
    """A model of the type `phi`."""

    model_type = "phi"


class Sam2OnnxModel(BertOnnxModel):
    """A model of the type `sam2`."""

    model_type = "sam2"


class T5OnnxModel(BertOnnxModel):
    """A model of the type `t5`."""

    model_type = "t5"


class TnlrOnnxModel(BertOnnxModel):
    """A model of the type `tnlr`."""

    model_type = "tnlr"


class UnetOnnxModel(BertOnnxModel):
    """The network of a diffusion model, of the type `unet`."""

    model_type = "unet"


class VaeOnnxModel(UnetOnnxModel):
    """The image codec of a diffusion model, of the type `vae`."""

    model_type = "vae"
