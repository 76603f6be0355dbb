"""Quantize to uint8 instead of int8.

    DQ(Q(x, scale, zero: int8), scale, zero)      ->      DQ(Q(x, scale, zero + 128), scale, zero + 128)      in uint8

The numbers are the same, bit by bit: each integer and its zero point are 128 more. For providers whose kernels take activations as
uint8, or are faster on these; the session option `session.qdqisint8allowed` = "0" asks for it, as in onnxruntime.

Left alone:
    quantization whose integers others than DequantizeLinear read
    scales by axis or block, and others behind than before
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.optimize.helpers.quantized import dequantized, scale_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import OptIn
from sardonyx.optimize.terms import Term

__all__ = ["QUANTIZE_AS_UINT8"]

_SHIFT = 128


def _pattern(op: PatternBuilder, x: Term) -> Term:
    integers = op.QuantizeLinear(x, op.constant("q_scale"), op.optional_constant("q_zero"), _as="q/quantize", _shared=True)
    return dequantized(op, integers, "y")


def _check(match: Match) -> str | np.uint8:
    made, read = scale_of(match.node("q/quantize")), scale_of(match.node("y/dequantize"))
    if made is None or read is None or not made.equals(read):
        return "the scales differ, or are not single"
    if made.dtype is not DataType.INT8:
        return f"it is quantized to {made.dtype}, expected int8"
    users = [user for user, _ in match.node("q/quantize").output.uses]
    if not all(isinstance(user, Node) and user.op_type == "DequantizeLinear" for user in users):
        return "the integers have other users than DequantizeLinear"
    return np.uint8(int(made.zero) + _SHIFT)


def _replace(op: Builder, match: Match, zero: np.uint8) -> Value:
    quantize, dequantize = match.node("q/quantize"), match.node("y/dequantize")
    kept = {name: value for name, value in quantize.attributes.items() if name != "output_dtype"}
    zero_point = op.constant(np.full(_shape(quantize), zero))
    integers = op.QuantizeLinear(match["x"], quantize.inputs[1], zero_point, _attributes=kept, _version=quantize.version)
    return op.DequantizeLinear(
        integers, dequantize.inputs[1], zero_point, _attributes=dequantize.attributes, _version=dequantize.version
    )


def _shape(node: Node) -> tuple[int, ...]:
    """Return the shape of its scale, which that of a zero point equals: () or (1,)."""
    scale = node.inputs[1]
    return () if scale is None or not scale.shape else (1,)


QUANTIZE_AS_UINT8 = Rule(
    "quantize_as_uint8",
    _pattern,
    _replace,
    _check,
    opt_in=OptIn("session.qdqisint8allowed", "0", "providers take int8 as well"),
    aliases=("QDQS8ToU8Transformer",),
)
