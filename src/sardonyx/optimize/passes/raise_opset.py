"""Read a model under a newer operator set, so that newer operators can stand in it and still be saved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.errors import InvalidArgument, SardonyxError
from sardonyx.ir import Attribute, Model, Node, Tensor
from sardonyx.ir.walk import all_nodes
from sardonyx.ops.schema import place_of
from sardonyx.ops.schema_table import table
from sardonyx.ops.schemas import check_node, find_schema
from sardonyx.ops.views.normalize import trains
from sardonyx.ops.views.reduce import takes_axes_input
from sardonyx.optimize.contract import Context
from sardonyx.optimize.edit import Names

__all__ = ["RaiseOpset"]

MeansTheSame = Callable[[Node, int], bool]
"""Whether a node means the same when it is read under another version of its domain."""

_SPLIT_NAMES_ITS_PARTS = 18
_NORMALIZATION_HAS_ONE_OUTPUT = 14


class RaiseOpset:
    """Write the nodes of ai.onnx as a newer operator set has them.

        Relu:13(x)                      ->      Relu:23(x)                    where it means the same there
        ReduceMean:13(x) {axes}         ->      ReduceMean:23(x, axes)        the other reductions, Squeeze and Unsqueeze likewise
        a, b = Split:13(x)              ->      a, b = Split:23(x) {num_outputs = 2}

    All nodes or none: a node that means something else there, or is not valid there, is an error that names it.

    Holds before: functions inlined. Cost: O(nodes).
    """

    name = "raise_opset"

    def __init__(self, target: int, means_the_same: MeansTheSame) -> None:
        """Raise to version `target` of ai.onnx."""
        self._target, self._means_the_same = target, means_the_same

    def run(self, model: Model, context: Context) -> bool:
        """Raise; whether the model's version was lower.

        Raises:
            InvalidArgument: a node cannot be read under the version, or there is no such version.
        """
        newest = table().newest("")
        if not 1 <= self._target <= newest:
            raise InvalidArgument(f"opset {self._target} of ai.onnx is not known; the newest is {newest}")
        if model.opset_imports.get("", 0) >= self._target:
            return False
        nodes = [node for node in all_nodes(model) if not node.domain and node.version < self._target]
        for node in nodes:
            self._check(node)
        names = Names.of(model)
        for node in nodes:
            _rewrite(node, self._target, names)
            node.version = self._target
        model.opset_imports[""] = self._target
        return True

    def _check(self, node: Node) -> None:
        if _moves_axes(node, self._target) or _is_inference(node) or node.op_type == "Split":
            return
        schema = find_schema("", node.op_type, self._target)
        if not self._means_the_same(node, self._target) or (schema is not None and schema.is_deprecated):
            raise InvalidArgument(f"{place_of(node)} means something else in opset {self._target}; choose an older one")
        try:
            if schema is not None:
                check_node(node, schema)
        except SardonyxError as error:
            raise InvalidArgument(f"{place_of(node)} is not valid in opset {self._target}: {error}; choose an older one") from error


def _moves_axes(node: Node, target: int) -> bool:
    """Return whether a node's attribute `axes` is an input in the newer version."""
    return takes_axes_input(node.op_type, target) and not takes_axes_input(node.op_type, node.version)


def _is_inference(node: Node) -> bool:
    """Return whether a normalization gives one output and trains nothing: these mean the same in all versions from 9 on."""
    if node.op_type != "BatchNormalization" or node.version < 9:
        return False
    return not trains(node)


def _rewrite(node: Node, target: int, names: Names) -> None:
    """Change what the newer version writes in another way."""
    if _moves_axes(node, target):
        axes = node.attributes.pop("axes", None)
        if axes is not None and node.graph is not None:
            tensor = Tensor.from_array(np.array(axes.value, np.int64))
            value = node.graph.add_initializer(tensor, names.fresh(f"{node.name or node.op_type}/axes"))
            node.set_inputs([*node.inputs[:1], value])
    if node.op_type == "Split" and node.version < _SPLIT_NAMES_ITS_PARTS <= target and node.input(1) is None:
        _name_parts(node, names)
    if node.op_type == "BatchNormalization" and node.version < _NORMALIZATION_HAS_ONE_OUTPUT:
        node.outputs = node.outputs[:1]


def _name_parts(node: Node, names: Names) -> None:
    """Give a Split its sizes as an input, or say how many equal parts it makes."""
    sizes = node.attributes.pop("split", None)
    if sizes is None:
        node.attributes["num_outputs"] = Attribute.of(len(node.outputs))
    elif node.graph is not None:
        tensor = Tensor.from_array(np.array(sizes.value, np.int64))
        value = node.graph.add_initializer(tensor, names.fresh(f"{node.name or 'Split'}/split"))
        node.set_inputs([*node.inputs[:1], value])
