"""Write projections on packed weights that take a normalization as their parts.

    MatMulNBitsMlp(a, skip?, scale?, gate …, up …)        ->      x = RMSNormalization(a + skip, scale)
                                                                  Swish(MatMulNBits(x, gate …)) * MatMulNBits(x, up …)
    MatMulNBitsQkv(a, skip?, scale, q …, k …, v …)        ->      x = RMSNormalization(a + skip, scale)
                                                                  MatMulNBits(x, q …), MatMulNBits(x, k …), MatMulNBits(x, v …)

(com.microsoft, as onnxruntime writes them for WebGPU), so that any provider computes them that has the parts.

Left alone:
    types other than float: half types round the sum once more
    activations other than silu
"""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["EXPAND_NBITS_MLP", "EXPAND_NBITS_MLP_SUM", "EXPAND_NBITS_QKV", "EXPAND_NBITS_QKV_SUM"]

_MICROSOFT = "com.microsoft"
_WEIGHTS = 3
"""The first input that belongs to a projection; each has three: numbers, scales, bias."""


def _mlp(op: PatternBuilder) -> Term:
    return op.MatMulNBitsMlp(op.rest("inputs"), _domain=_MICROSOFT)


def _mlp_sum(op: PatternBuilder) -> tuple[Term, ...]:
    return op.outputs(_mlp(op), 2)


def _qkv(op: PatternBuilder) -> tuple[Term, ...]:
    return op.outputs(op.MatMulNBitsQkv(op.rest("inputs"), _domain=_MICROSOFT), 3)


def _qkv_sum(op: PatternBuilder) -> tuple[Term, ...]:
    return op.outputs(op.MatMulNBitsQkv(op.rest("inputs"), _domain=_MICROSOFT), 4)


def _check(match: Match) -> str | None:
    inputs = match.rest("inputs")
    if inputs[0] is None or inputs[0].dtype is not DataType.FLOAT:
        return "it is of another type than float"
    if match.root.op_type == "MatMulNBitsMlp" and match.root.text("activation", "") != "silu":
        return f"the activation is {match.root.get('activation')!r}, expected 'silu'"
    return None


def _replace_mlp(op: Builder, match: Match, learned: None) -> Value:
    return _replace_mlp_sum(op, match, learned)[0]


def _replace_mlp_sum(op: Builder, match: Match, learned: None) -> tuple[Value, Value]:
    """Return what the layer gives, and the sum."""
    x, total = _normalized(op, match)
    N = match.root.integer("N", 0)
    gate, up = (_projected(op, match, x, _WEIGHTS + 3 * place, N) for place in range(2))
    return op.Mul(op.Swish(gate), up), total


def _replace_qkv(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    return _replace_qkv_sum(op, match, learned)[:3]


def _replace_qkv_sum(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    """Return queries, keys, values, and the sum."""
    x, total = _normalized(op, match)
    sizes = [int(match.root.get(name)) for name in ("Nq", "Nkv", "Nkv")]
    return (*(_projected(op, match, x, _WEIGHTS + 3 * place, size) for place, size in enumerate(sizes)), total)


def _normalized(op: Builder, match: Match) -> tuple[Value, Value]:
    a, skip, scale = (match.root.input(place) for place in range(_WEIGHTS))
    if a is None:
        raise ValueError(f"{match.root!r} lacks its input")
    total = a if skip is None else op.Add(a, skip)
    if scale is None:
        return total, total
    return op.RMSNormalization(total, scale, epsilon=float(attribute_value(match.root, "epsilon"))), total


def _projected(op: Builder, match: Match, x: Value, place: int, N: int) -> Value:
    node = match.root
    kept = {name: node.attributes[name] for name in ("K", "bits", "block_size", "accuracy_level") if name in node.attributes}
    numbers, scales, bias = (node.input(place + offset) for offset in range(3))
    further = [] if bias is None else [None, None, bias]
    return op.MatMulNBits(x, numbers, scales, *further, _domain=_MICROSOFT, _attributes=kept, N=N)


EXPAND_NBITS_MLP = Rule(
    "expand_nbits_mlp",
    _mlp,
    _replace_mlp,
    _check,
    takes_apart=microsoft("MatMulNBitsMlp"),
    takes_legal_apart=True,
    summary="Write MatMulNBitsMlp of com.microsoft as a normalization, two products and their gate.",
)
EXPAND_NBITS_MLP_SUM = Rule(
    "expand_nbits_mlp_sum",
    _mlp_sum,
    _replace_mlp_sum,
    _check,
    takes_apart=microsoft("MatMulNBitsMlp"),
    takes_legal_apart=True,
    summary="Write MatMulNBitsMlp of com.microsoft whose sum is used as a sum, a normalization, two products and their gate.",
)
EXPAND_NBITS_QKV = Rule(
    "expand_nbits_qkv",
    _qkv,
    _replace_qkv,
    _check,
    takes_apart=microsoft("MatMulNBitsQkv"),
    takes_legal_apart=True,
    summary="Write MatMulNBitsQkv of com.microsoft as a normalization and three products.",
)
EXPAND_NBITS_QKV_SUM = Rule(
    "expand_nbits_qkv_sum",
    _qkv_sum,
    _replace_qkv_sum,
    _check,
    takes_apart=microsoft("MatMulNBitsQkv"),
    takes_legal_apart=True,
    summary="Write MatMulNBitsQkv of com.microsoft whose sum is used as a sum, a normalization and three products.",
)
