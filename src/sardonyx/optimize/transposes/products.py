"""Transposes through matrix products, and images whose channels and pixels become one dimension of a product.

    MatMul(Transpose(x), w)                        becomes      Transpose(MatMul(x, w))      the last dimension stays where it is

    x (N, H, W, C) -> Transpose -> (N, C, H, W) -> Flatten -> Gemm(weights)
    becomes
    x (N, H, W, C) -> Reshape -> Gemm(weights with their rows in the order H, W, C)

The second adds the same products in another order, as a convolution in NHWC does. Between the Reshape and the products may stand
operators that do the same to every element, quantization by one scale among them.

Left alone: a second operand of three dimensions or more; images that others read than products by constant weights; weights that
have a scale for each row; and those of more than `LIMITS.fold_bytes`, of which a second copy costs more than the transpose.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.config import LIMITS
from sardonyx.ir import Node, Value
from sardonyx.ops.views.matmul import Gemm
from sardonyx.ops.views.quantize import Quantization
from sardonyx.optimize.transposes.edit import Edit, is_neutral
from sardonyx.optimize.transposes.elementwise import ELEMENTWISE
from sardonyx.optimize.transposes.handler import Handler
from sardonyx.optimize.transposes.permutation import Permutation
from sardonyx.optimize.transposes.reshape import mixed_into_last

__all__ = ["PRODUCTS", "mix_in_products"]

_WEIGHTS = {
    ("", "Gemm"): 1,
    ("", "MatMul"): 1,
    ("", "MatMulInteger"): 1,
    ("", "QLinearMatMul"): 3,
    ("com.microsoft", "FusedGemm"): 1,
    ("com.microsoft", "FusedMatMul"): 1,
    ("com.microsoft", "QGemm"): 3,
}
"""Product of the first input -> the input that is its weights."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Weights:
    """Constant weights of one product, perhaps dequantized."""

    product: Node
    """Who reads them."""
    index: int
    """As which input."""
    linear: Node | None
    """The DequantizeLinear that makes them."""
    constant: Value
    """The constant itself."""
    axis: int
    """The dimension that the product sums over."""

    def fit(self, count: int) -> bool:
        """Return whether these are weights for `count` elements, and may be copied in another order."""
        held = self.constant.constant
        if held is None or held.shape[self.axis] != count or held.size_bytes > LIMITS.fold_bytes:
            return False
        return not self._has_row_scales()

    def _has_row_scales(self) -> bool:
        if self.linear is None or is_neutral(self.linear.inputs[1]):
            return False
        view = Quantization.of(self.linear)
        return bool(view.block) or view.place(len(self.constant.shape or ())) == self.axis


def _matmul(edit: Edit, node: Node, permutation: Permutation) -> bool:
    second, last = node.inputs[1], len(permutation) - 1
    rank = len(second.shape) if second is not None and second.shape is not None else 0
    if rank not in (1, 2) or permutation[last] != last:
        return False
    edit.bring_whole(node, 0, permutation)
    edit.put_behind(node, node.output, permutation if rank == 2 else permutation[:last])
    return True


PRODUCTS: Mapping[str, Handler] = {"MatMul": Handler(_matmul)}
"""Operator of ai.onnx -> how a transpose is pushed through it."""


def mix_in_products(edit: Edit, node: Node, permutation: Permutation, offered: Collection[Node]) -> bool:
    """Let the Reshape or Flatten `node` read its image as it was before a transpose by `permutation`; whether it could."""
    mixed = mixed_into_last(node, permutation)
    weights = None if mixed is None else _weights_behind(node.outputs[0], offered)
    if mixed is None or weights is None or not all(item.fit(len(mixed.order)) for item in weights):
        return False
    for item in weights:
        item.product.replace_input(item.index, _reordered(edit, item, mixed.order))
    node.op_type, node.version = "Reshape", 13
    node.attributes.clear()
    node.set_inputs((node.inputs[0], edit.integers(mixed.numbers, "shape")))
    edit.bring_whole(node, 0, permutation)
    return True


def _weights_behind(value: Value, offered: Collection[Node]) -> list[_Weights] | None:
    """Return the weights of the products that read `value`; None where something else does."""
    found: list[_Weights] = []
    for user, index in value.uses:
        if not isinstance(user, Node) or index != 0 or user not in offered:
            return None
        if _ignores_places(user):
            more = _weights_behind(user.output, offered)
        else:
            more = _weights_of(user)
        if more is None:
            return None
        found += more
    return found or None


def _ignores_places(node: Node) -> bool:
    """Return whether a node does the same to every element of its first input."""
    is_known = node.op_type in ELEMENTWISE or node.op_type in ("DequantizeLinear", "QuantizeLinear")
    return not node.domain and is_known and not Quantization.of(node).block and all(is_neutral(value) for value in node.inputs[1:])


def _weights_of(node: Node) -> list[_Weights] | None:
    """Return the weights of a product whose first input is the data; None for other nodes."""
    index = _WEIGHTS.get((node.domain, node.op_type))
    value = None if index is None else node.input(index)
    if index is None or value is None or value.shape is None or Gemm.of(node).transposes_a or len(value.shape) > 2:
        return None
    linear = value.producer if value.producer is not None and value.producer.op_type == "DequantizeLinear" else None
    if linear is not None and linear.graph is not node.graph:
        return None
    constant = value if linear is None else linear.inputs[0]
    if constant is None or constant.constant is None or constant.shape is None:
        return None
    last = len(value.shape) - 1
    return [_Weights(node, index, linear, constant, last if Gemm.of(node).transposes_b else max(last - 1, 0))]


def _reordered(edit: Edit, weights: _Weights, order: Sequence[int]) -> Value:
    taken = edit.taken(weights.constant, order, weights.axis)
    linear = weights.linear
    if linear is None:
        return taken
    twin = Node(
        linear.op_type,
        [taken, *linear.inputs[1:]],
        1,
        linear.attributes,
        domain=linear.domain,
        version=linear.version,
        name=f"{linear.name}/reordered",
    )
    twin.output.type = linear.output.type
    return edit.graph.insert_after(linear, twin).output
