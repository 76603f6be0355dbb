"""How many floating-point operations a node asks for, by its shapes: for profiles, not for decisions.

A multiplication and an addition count as two. An element-wise operator counts as one operation for each element that it makes,
exponentials like sums; operators that only move elements count as none. What a mask or a causal order would leave out is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.ops.families import FAMILIES
from sardonyx.ops.views.matmul import Gemm

__all__ = ["flops_of"]

_Count: TypeAlias = Callable[[Node], Dim]


class _UnknownShapeError(Exception):
    """A shape that the count depends on is not known."""


def flops_of(node: Node) -> Dim | None:
    """Return the operations of a node, as a number or in the symbols of its shapes; None where they are not known."""
    count = _COUNTS.get(node.op_type)
    if count is None:
        return None
    try:
        return count(node)
    except (_UnknownShapeError, IndexError):
        return None


def _shape(value: Value | None) -> Shape:
    if value is None or value.shape is None:
        raise _UnknownShapeError
    return value.shape


def _elements(value: Value | None) -> Dim:
    return product(_shape(value))


def _none(node: Node) -> Dim:
    return 0


def _each_made(operations: int) -> _Count:
    return lambda node: operations * _elements(node.outputs[0])


def _each_read(node: Node) -> Dim:
    return _elements(node.inputs[0])


def _conv(filters: int) -> _Count:
    """Count for each output element the elements of one filter, where input `filters` is (M, C/group, kernel…)."""
    return lambda node: 2 * _elements(node.outputs[0]) * product(_shape(node.inputs[filters])[1:])


def _conv_transpose(node: Node) -> Dim:
    """Count for each input element the elements that it is spread to, where the filter is (C, M/group, kernel…)."""
    return 2 * _elements(node.inputs[0]) * product(_shape(node.inputs[1])[1:])


def _matmul(node: Node) -> Dim:
    """Count for each output element the length of a row of the first input."""
    shape = _shape(node.inputs[0])
    is_transposed = node.flag("transA") and len(shape) > 1
    return 2 * _elements(node.outputs[0]) * shape[-2 if is_transposed else -1]


def _gemm(node: Node) -> Dim:
    shape = _shape(node.inputs[0])
    return 2 * _elements(node.outputs[0]) * shape[0 if Gemm.of(node).transposes_a else 1]


def _attention(node: Node) -> Dim:
    """Count two products with as many keys as there are: of queries and keys, of weights and values."""
    made = _elements(node.outputs[0])
    if node.domain == "com.microsoft" and node.op_type == "Attention":
        batch, length, _ = _shape(node.inputs[0])
        return 2 * batch * length * _elements(node.inputs[1]) + 4 * length * made
    return 4 * _keys(node) * made


def _keys(node: Node) -> Dim:
    """Return how many keys there are: as the output `present_key` says, else the input."""
    present = node.outputs[1].shape if len(node.outputs) > 1 else None
    if present is not None and len(present) == 4:
        return present[2]
    key = node.input(1)
    shape = _shape(key if key is not None else node.inputs[0])
    return shape[2] if len(shape) == 4 else shape[1]


def _recurrent(gates: int) -> _Count:
    """Count the products of each gate with the input and with the state, for all steps and directions."""

    def count(node: Node) -> Dim:
        length, batch, width = _shape(node.inputs[0])
        directions, _, size = _shape(node.inputs[2])
        return 2 * length * batch * directions * gates * size * (width + size)

    return count


def _pool(node: Node) -> Dim:
    window = node.integers("kernel_shape")
    return _each_read(node) if window is None else _elements(node.outputs[0]) * product(window)


def _table() -> Mapping[str, _Count]:
    found: dict[str, _Count] = {}
    for families, count in (
        ("unary activation binary quantize random contrib/elementwise", _each_made(1)),
        ("reduce", _each_read),
        ("softmax", _each_made(5)),
        ("normalize contrib/normalize", _each_made(7)),
        ("pool", _pool),
        ("cast constant gather reshape slice sequence control_flow", _none),
    ):
        for family in families.split():
            found.update(dict.fromkeys(FAMILIES[family].split(), count))
    convolutions: dict[str, _Count] = {name: _conv(1) for name in ("Conv", "ConvInteger", "FusedConv")}
    products = "MatMul MatMulInteger FusedMatMul QLinearMatMul MatMulNBits MatMulBnb4 DynamicQuantizeMatMul MatMulIntegerToFloat"
    attentions = "Attention MultiHeadAttention GroupQueryAttention DecoderMaskedMultiHeadAttention"
    return {
        **found,
        **convolutions,
        "QLinearConv": _conv(3),
        "ConvTranspose": _conv_transpose,
        **dict.fromkeys((*products.split(), "TransposeMatMul", "FusedMatMulActivation"), _matmul),
        **dict.fromkeys(("Gemm", "FusedGemm", "QGemm"), _gemm),
        **dict.fromkeys(attentions.split(), _attention),
        "RotaryEmbedding": _each_made(3),
        "LSTM": _recurrent(4),
        "GRU": _recurrent(3),
        "RNN": _recurrent(1),
    }


_COUNTS = _table()
"""Operator -> the count of its operations; operators that are not here have none that their shapes tell."""
