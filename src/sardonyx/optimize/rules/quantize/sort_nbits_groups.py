"""Put the rows of packed weights in the order of their groups, and the columns of what they are multiplied by alike.

    MatMulNBits(a, b, scales, zeros, g_idx, bias)      ->      MatMulNBits(Gather(a, order), b in that order, scales, zeros, bias)

where the group of each row of b, `g_idx`, is a constant that names each group as often as a block has rows, as the quantizer GPTQ
with an order of its own writes it: kernels read the scales of a block once. Where `g_idx` says no more than the blocks do it goes.

Left alone:
    b that is no constant; groups of other sizes than the blocks'
"""

from __future__ import annotations

import numpy as np

from sardonyx.bit_fields import pack_bits, unpack_bits
from sardonyx.dtypes import Array
from sardonyx.ir import Node, Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["SORT_NBITS_GROUPS"]

_MICROSOFT = "com.microsoft"
_WIDTHS = range(2, 9)


def _pattern(op: PatternBuilder, a: Term, b: Term, scales: Term, groups: Term) -> Term:
    rest = (op.optional("zeros"), op.constant(groups), op.optional("bias"))
    return op.MatMulNBits(a, op.constant(b), scales, *rest, _domain=_MICROSOFT)


def _check(match: Match) -> str | Array:
    """Return the order of the rows."""
    node, groups, b = match.root, match.tensor("groups"), match.tensor("b")
    K, N, size, bits = (node.integer(name, 4 if name == "bits" else 0) for name in ("K", "N", "block_size", "bits"))
    if groups is None or b is None or min(K, N, size) < 1 or bits not in _WIDTHS:
        return "the weights have no known size"
    blocks = -(-K // size)
    if groups.size != K or b.size * 8 != N * blocks * size * bits:
        return f"{groups.size} groups and {b.size} bytes, expected {K} and {N * blocks * size * bits // 8}"
    flat = groups.numpy().reshape(-1)
    if not np.array_equal(np.sort(flat, kind="stable"), _blocks_of(K, size)):
        return f"the groups are not as large as blocks of {size}"
    return np.argsort(flat, kind="stable")


def _replace(op: Builder, match: Match, order: Array) -> Value:
    node, a, b = match.root, match["a"], match["b"]
    K, N, bits = node.integer("K", 0), node.integer("N", 0), node.integer("bits", 4)
    if not np.array_equal(order, np.arange(K)):
        a = op.Gather(a, order.astype(np.int64), axis=-1)
        numbers = unpack_bits(_bytes(match).reshape(N, -1), bits)
        numbers[:, :K] = numbers[:, order]
        b = op.constant(pack_bits(numbers, bits).reshape(match["b"].shape), f"{match['b'].name}/sorted")
    return _product(op, node, a, b)


def _product(op: Builder, node: Node, a: Value, b: Value) -> Value:
    scales, zeros, _, *bias = node.inputs[2:]
    return op.MatMulNBits(a, b, scales, zeros, None, *bias, _domain=_MICROSOFT, _attributes=node.attributes)


def _blocks_of(K: int, size: int) -> Array:
    return np.arange(K) // size


def _bytes(match: Match) -> Array:
    found = match.tensor("b")
    if found is None:
        raise ValueError("the weights are no constant")
    return found.numpy()


SORT_NBITS_GROUPS = Rule("sort_nbits_groups", _pattern, _replace, _check)
