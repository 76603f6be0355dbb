"""Weights in the 4-bit types of bitsandbytes, for products whose activations stay floats.

    quantizer = MatMulBnb4Quantizer(onnx.load("model.onnx"), MatMulBnb4Quantizer.NF4, 64)
    quantizer.process()
    quantizer.model.save_model_to_file("nf4.onnx")

MatMul with a constant matrix (K, N) becomes com.microsoft.MatMulBnb4. Blocks lie one after the other in the flat matrix (N, K), and
each has its largest magnitude as scale; source: T. Dettmers, A. Pagnoni, A. Holtzman, L. Zettlemoyer, "QLoRA: Efficient
Finetuning of Quantized LLMs", 2023, section 3.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from sardonyx.capi.block_quantization import quantize_matmul_bnb4
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, Model, Node, Tensor, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.edit import Names, overridable_values, tensor_of
from sardonyx.quantization.onnx_model import ONNXModel
from sardonyx.quantization.qdq import drop_unused
from sardonyx.tools.models import Given, read, to_proto

__all__ = ["MatMulBnb4Quantizer", "main"]

_MICROSOFT = "com.microsoft"
_FLOATS = (DataType.FLOAT, DataType.FLOAT16)
_LEAST_BLOCK = 16
"""What MatMulBnb4 of onnxruntime takes at least."""


class MatMulBnb4Quantizer:
    """Quantizes the weights of a model."""

    FP4: ClassVar[int] = 0
    """Floats of 4 bits, with 2 of exponent."""
    NF4: ClassVar[int] = 1
    """Quantiles of the normal distribution."""

    def __init__(self, model: Given, quant_type: int, block_size: int, nodes_to_exclude: Sequence[str] | None = None) -> None:
        """Read a model.

        Args:
            model: the path of a model, or an onnx.ModelProto, which stays as it is.
            quant_type: FP4 or NF4.
            block_size: weights that share a scale: a power of 2, at least 16.
            nodes_to_exclude: names of nodes to leave as they are.

        Raises:
            InvalidArgument: an argument is none of these.
            SardonyxError: the model cannot be read, or is invalid.
        """
        if quant_type not in (self.FP4, self.NF4):
            raise InvalidArgument(f"quant_type is {self.FP4} for FP4 or {self.NF4} for NF4, got {quant_type!r}")
        if block_size < _LEAST_BLOCK or block_size & (block_size - 1):
            raise InvalidArgument(f"block_size is a power of 2, at least {_LEAST_BLOCK}, got {block_size!r}")
        self.quant_type, self.block_size = quant_type, block_size
        self.nodes_to_exclude = frozenset(nodes_to_exclude or ())
        self._model = read(model)
        self._wrapped: ONNXModel | None = None

    @property
    def model(self) -> ONNXModel:
        """The model as it stands now, with `save_model_to_file`."""
        if self._wrapped is None:
            self._wrapped = ONNXModel(to_proto(self._model))
        return self._wrapped

    def bnb4_block_quant(self, fpweight: Array) -> tuple[Array, Array]:
        """Return codes, two in a byte, and the scales of blocks.

        Args:
            fpweight: float32 or float16 (K, N).

        Returns:
            uint8 of (K * N + 1) // 2 elements; ceil(K * N / block_size) of the type of the weights.

        Raises:
            ValueError: it has another rank.
            InvalidArgument: it has another type.
        """
        if fpweight.ndim != 2:
            raise ValueError(f"weights of MatMulBnb4 are a matrix (K, N), got the shape {fpweight.shape}")
        K, N = fpweight.shape
        codes = np.zeros((K * N + 1) // 2, np.uint8)
        scales = np.zeros(-(-K * N // self.block_size), fpweight.dtype)
        quantize_matmul_bnb4(codes, np.ascontiguousarray(fpweight.T), scales, self.block_size, self.quant_type, N, K)
        return codes, scales

    def process(self) -> None:
        """Quantize the model.

        Raises:
            InvalidArgument: a weight holds NaN or infinities.
        """
        self._wrapped = None
        overridable, names = overridable_values(self._model), Names.of(self._model)
        stored: dict[Value, tuple[Value, Value]] = {}
        for graph in nested_graphs(self._model.graph):
            for node in list(graph):
                weights = None if node.op_type != "MatMul" or node.domain or node.name in self.nodes_to_exclude else node.inputs[1]
                tensor = tensor_of(weights, overridable)
                if weights is None or tensor is None or len(tensor.shape) != 2 or tensor.dtype not in _FLOATS or 0 in tensor.shape:
                    continue
                array = tensor.numpy()
                if not np.isfinite(array).all():
                    raise InvalidArgument(
                        f"{node.place}: weight {weights.name!r} holds NaN or infinities, which codes cannot stand for"
                    )
                if weights not in stored:
                    stored[weights] = self._store(weights, array, names)
                self._replace(graph, node, array, stored[weights])
        drop_unused(self._model)

    def _store(self, weights: Value, array: Array, names: Names) -> tuple[Value, Value]:
        codes, scales = self.bnb4_block_quant(array)
        main: Model = self._model
        return (
            main.graph.add_initializer(Tensor.from_array(codes), names.fresh(f"{weights.name}_Bnb4")),
            main.graph.add_initializer(Tensor.from_array(scales), names.fresh(f"{weights.name}_absmax")),
        )

    def _replace(self, graph: Graph, node: Node, array: Array, stored: tuple[Value, Value]) -> None:
        self._model.opset_imports.setdefault(_MICROSOFT, 1)
        (K, N), outputs = array.shape, node.outputs
        attributes = {"K": K, "N": N, "block_size": self.block_size, "quant_type": self.quant_type}
        name = f"{node.name}_Bnb4" if node.name else ""
        made = Node("MatMulBnb4", [node.inputs[0], *stored], outputs, attributes, domain=_MICROSOFT, version=1, name=name)
        graph.insert_before(node, made)
        node.outputs = ()
        graph.remove(node)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a model whose constant matrices have 4 bits, as bitsandbytes rounds them."""
    parser = argparse.ArgumentParser(prog="python -m sardonyx.quantization.matmul_bnb4_quantizer", description=main.__doc__)
    parser.add_argument("--input_model", required=True, help="the model")
    parser.add_argument("--output_model", required=True, help="where the quantized model goes; no file is there yet")
    kinds = (MatMulBnb4Quantizer.FP4, MatMulBnb4Quantizer.NF4)
    parser.add_argument("--quant_type", type=int, default=MatMulBnb4Quantizer.NF4, choices=kinds, help="0: FP4, 1: NF4")
    parser.add_argument("--block_size", type=int, default=64, help="weights that share a scale")
    parser.add_argument("-v", "--verbose", action="store_true", help="accepted")
    parser.add_argument("--nodes_to_exclude", nargs="+", default=[], help="names of nodes to leave as they are")
    given = parser.parse_args(arguments)
    if os.path.exists(given.output_model):
        raise InvalidArgument(f"the file {given.output_model!r} is there already")
    quantizer = MatMulBnb4Quantizer(given.input_model, given.quant_type, given.block_size, given.nodes_to_exclude)
    quantizer.process()
    quantizer.model.save_model_to_file(given.output_model, True)


if __name__ == "__main__":
    main()
