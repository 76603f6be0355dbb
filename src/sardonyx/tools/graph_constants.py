"""Constants of an onnx.ModelProto: compared, and equal ones kept once; names with a prefix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto

from sardonyx.errors import InvalidArgument
from sardonyx.formats.protos import Message
from sardonyx.formats.tensor_file import array_of
from sardonyx.tools.graph_casts import GraphCasts

__all__ = ["GraphConstants"]


class GraphConstants(GraphCasts):
    """An onnx.ModelProto, with the methods of onnxruntime's class OnnxModel about constants and names."""

    @staticmethod
    def to_data_hash(tensor: Message, base_dir: str = "") -> int:
        """Return a hash of the elements of an onnx.TensorProto: equal for equal bytes, or equal texts, in this process.

        Args:
            tensor: the constant.
            base_dir: the folder of the file that its elements are in, where they are in one.

        Raises:
            InvalidArgument: it has no type.
            NoSuchFile: the file is not there.
        """
        if tensor.data_type == TensorProto.UNDEFINED:
            raise InvalidArgument(f"the tensor {tensor.name!r} states no element type: there are no elements to compare")
        if tensor.data_type == TensorProto.STRING:
            return hash(tuple(item.decode("utf-8") for item in tensor.string_data))
        return hash(array_of(tensor, Path(base_dir)).tobytes())

    @staticmethod
    def has_same_value(
        tensor1: Message,
        tensor2: Message,
        signature_cache1: dict[str, int] | None = None,
        signature_cache2: dict[str, int] | None = None,
        rtol: float = 1e-5,
        atol: float = 1e-8,
    ) -> bool:
        """Return whether two onnx.TensorProto have one type, one shape, and elements that are equal or near.

        Args:
            tensor1: a constant.
            tensor2: the other; names do not matter.
            signature_cache1: name -> hash of elements, which gets that of the first.
            signature_cache2: the same for the second.
            rtol: by how much of their size numbers may differ.
            atol: by how much they may differ in addition.
        """
        hashes = []
        for tensor, cache in ((tensor1, signature_cache1), (tensor2, signature_cache2)):
            known = None if cache is None else cache.get(tensor.name)
            hashes.append(GraphConstants.to_data_hash(tensor) if known is None else known)
            if cache is not None:
                cache[tensor.name] = hashes[-1]
        if tensor1.data_type != tensor2.data_type or list(tensor1.dims) != list(tensor2.dims):
            return False
        first, second = array_of(tensor1), array_of(tensor2)
        if hashes[0] == hashes[1] or first.dtype.kind not in "biufc":
            return bool(np.array_equal(first, second))
        return bool(np.allclose(first, second, rtol=rtol, atol=atol))

    def remove_duplicated_initializer(self, cache: dict[str, int] | None = None) -> None:
        """Keep of constants of the main graph that `has_same_value` finds equal only the first.

        Args:
            cache: name -> hash of elements, which gets those of the constants.
        """
        signatures = {} if cache is None else cache
        groups: dict[tuple[int, tuple[int, ...]], list[Message]] = {}
        replaced = False
        for tensor in self.model.graph.initializer:
            alike = groups.setdefault((tensor.data_type, tuple(tensor.dims)), [])
            same = next((known for known in alike if self.has_same_value(known, tensor, signatures, signatures)), None)
            if same is None:
                alike.append(tensor)
                continue
            self.replace_input_of_all_nodes(tensor.name, same.name)
            replaced = True
        if replaced:
            self.update_graph()

    def add_prefix_to_names(self, prefix: str) -> None:
        """Put a prefix before the names of the main graph's values, but not of the model's inputs and outputs; bodies stay.

        Args:
            prefix: the text.
        """
        graph = self.model.graph
        kept = {"", *(value.name for value in (*graph.input, *graph.output))}
        for item in (*graph.initializer, *graph.value_info):
            if item.name not in kept and prefix + item.name not in kept:
                item.name = prefix + item.name
        for names in (names for node in graph.node for names in (node.input, node.output)):
            for index, name in enumerate(names):
                if name not in kept and prefix + name not in kept:
                    names[index] = prefix + name
