"""Read queries, keys and values of attention through the nodes that split heads: how they lay before.

    packed (B, S, H x D)  ─ Reshape ─►  tokens (B, S, H, D)  ─ Transpose(0, 2, 1, 3) ─►  heads (B, H, S, D)
                                                                                    └─ Reshape ─►  joined (B x H, S, D)

Where windows are a dimension of their own, (B, windows, S, H, D) and (B, windows, H, S, D), they are read as more batches.

Keys are read through the transposition that their product with the queries needs; keys and values that are repeated for groups of
heads (Unsqueeze, Expand, Reshape) are read before that. Everything is recognized by shapes: which shape operand made them is no
matter.
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.optimize.helpers.attention_scores import joined
from sardonyx.optimize.rule import Builder
from sardonyx.optimize.transposes.permutation import permutation_of

__all__ = ["Heads", "read_heads", "read_keys", "repeated", "tokens_of"]

_SWAP_HEADS = (0, 2, 1, 3)
_SWAP_LAST = (0, 1, 3, 2)
_TURN_TOKENS = (0, 2, 3, 1)
"""The keys' transposition from tokens."""


@dataclasses.dataclass(frozen=True, slots=True)
class Heads:
    """One of Q, K, V."""

    shape: Shape
    """(B, H, S, D), or (B x H, S, D) where it is not known how the first splits."""
    value: Value | None
    """The value of that shape; None where only the tokens are at hand."""
    tokens: Value | None
    """The same as (B, S, H, D), if there is such a value."""
    transposed: Value | None = None
    """The same as (…, D, S), where neither is at hand."""
    factor: Value | None = None
    """By what it is to be multiplied, of one number for each head."""
    outer: Shape = ()
    """(batch, windows), of which B is the product, where the values have both; empty where they have one."""

    @property
    def is_split(self) -> bool:
        """Whether batch and heads are two dimensions."""
        return len(self.shape) == 4

    @property
    def can_pack(self) -> bool:
        """Whether it lies as (B, S, H x D)."""
        is_known = len(self.shape) == 4 and isinstance(self.shape[1], int) and isinstance(self.shape[3], int)
        return self.tokens is not None and self.factor is None and is_known

    def whole(self, op: Builder) -> Value:
        """Return the value as (B, H, S, D), or (B x H, S, D) where it is not split."""
        value = self._plain(op)
        if self.outer:
            value = op.Reshape(value, [-1, *self.shape[1:]])
        return value if self.factor is None else op.Mul(value, self.factor)

    def _plain(self, op: Builder) -> Value:
        if self.value is not None:
            return self.value
        if self.transposed is not None:
            return op.Transpose(self.transposed, perm=self._later(_SWAP_LAST) if self.is_split else [0, 2, 1])
        return op.Transpose(self.tokens, perm=self._later(_SWAP_HEADS))

    def _later(self, perm: tuple[int, ...]) -> list[int]:
        """Return a permutation of four dimensions where windows are one more."""
        return [0, *(axis + 1 for axis in perm)] if self.outer else list(perm)

    def packed(self, op: Builder) -> Value:
        """Return the value as (B, S, H x D)."""
        B, H, S, D = self.shape
        if self.tokens is None:
            raise ValueError("the tokens are not at hand; ask can_pack first")
        if not isinstance(H, int) or not isinstance(D, int):
            raise ValueError(f"{H} heads of size {D} cannot be packed; ask can_pack first")
        if self.outer:
            return op.Reshape(self.tokens, [-1, S, H * D])
        node = self.tokens.producer
        source = node.inputs[0] if _is(node, "Reshape") and node is not None else None
        if source is not None and source.shape == (B, S, H * D):
            return source
        return op.Reshape(self.tokens, [0, 0, H * D])


def read_heads(value: Value) -> Heads | None:
    """Return queries or values as they enter a product, of three to five dimensions; None for any other rank."""
    if value.shape is None or len(value.shape) not in (3, 4, 5):
        return None
    if len(value.shape) == 5:
        merged = _merged(value.shape)
        return None if merged is None else Heads(merged, value, tokens_of(value), outer=value.shape[:2])
    node = value.producer
    if len(value.shape) == 3 and node is not None and not node.domain:
        source = node.inputs[0] if node.inputs else None
        if node.op_type == "Reshape" and source is not None and source.shape is not None and joined(source.shape, value.shape):
            value = source
        if node.op_type == "Transpose" and source is not None and _perm_of(node) == (0, 2, 1):
            split = _read_transposed(source)
            return Heads(value.shape or (), value, None) if split is None else split
    return Heads(value.shape or (), value, tokens_of(value))


def read_keys(value: Value) -> Heads | None:
    """Return keys as they enter the product, (B, H, D, T), (B x H, D, T) or (B, windows, H, D, T); None for any other rank."""
    if value.shape is None or len(value.shape) not in (3, 4, 5):
        return None
    keys = _read_transposed(value)
    shape = _merged(value.shape) if len(value.shape) == 5 else value.shape
    if keys is not None or shape is None:
        return keys
    *rest, D, T = shape
    return Heads((*rest, T, D), None, None, value, outer=value.shape[:2] if len(value.shape) == 5 else ())


def _merged(shape: Shape) -> Shape | None:
    """Return (B x windows, …) for (B, windows, …) of which all but B is known."""
    return (product(shape[:2]), *shape[2:]) if all(isinstance(dim, int) for dim in shape[1:]) else None


def _read_transposed(value: Value) -> Heads | None:
    """Return keys before they were transposed for the product; None where they were not."""
    node = value.producer
    if node is None or node.domain or value.shape is None:
        return None
    source, rank = node.inputs[0], len(value.shape)
    if node.op_type == "Reshape" and source is not None and joined(source.shape, value.shape):
        keys = _read_transposed(source)
        is_same = keys is not None and keys.is_split and (rank == 3 or keys.shape[:2] == value.shape[:2])
        return keys if is_same else None
    if node.op_type != "Transpose" or source is None or source.shape is None or len(source.shape) != rank:
        return None
    perm = _perm_of(node)
    if perm == _TURN_TOKENS:
        shape = _merged(source.shape) if rank == 5 else source.shape
        if shape is None:
            return None
        B, T, H, D = shape
        return Heads((B, H, T, D), None, source, outer=source.shape[:2] if rank == 5 else ())
    return read_heads(source) if perm in (_SWAP_LAST, (0, 2, 1)) else None


def _perm_of(node: Node) -> tuple[int, ...]:
    """Return the permutation of a Transpose; of the last four dimensions where it leaves the first of five in place."""
    perm = permutation_of(node) or ()
    return tuple(axis - 1 for axis in perm[1:]) if len(perm) == 5 and perm[0] == 0 else perm


def tokens_of(value: Value) -> Value | None:
    """Return the value (B, S, H, D) of which `value` is the transpose (B, H, S, D); both may have windows after B."""
    node = value.producer
    return node.inputs[0] if _is(node, "Transpose") and node is not None and _perm_of(node) == _SWAP_HEADS else None


def repeated(heads: Heads) -> Heads | None:
    """Return keys or values before each of their heads was repeated for a group of queries; None where it was not."""
    value = heads.value
    reshape = None if value is None else value.producer
    if value is None or value.shape is None or heads.outer or not _is(reshape, "Reshape") or reshape is None:
        return None
    expanded = reshape.inputs[0]
    expand = None if expanded is None else expanded.producer
    if expanded is None or expanded.shape is None or len(expanded.shape) != 5 or not _is(expand, "Expand") or expand is None:
        return None
    narrow = expand.inputs[0]
    unsqueeze = None if narrow is None else narrow.producer
    source = unsqueeze.inputs[0] if unsqueeze is not None and _is(unsqueeze, "Unsqueeze") else None
    if narrow is None or source is None or source.shape is None:
        return None
    B, M, group, T, D = expanded.shape
    shapes = (source.shape, narrow.shape, value.shape)
    if not isinstance(M, int) or not isinstance(group, int) or shapes != ((B, M, T, D), (B, M, 1, T, D), (B, M * group, T, D)):
        return None
    return Heads(source.shape, source, tokens_of(source))


def _is(node: Node | None, op_type: str) -> bool:
    return node is not None and node.op_type == op_type and not node.domain
