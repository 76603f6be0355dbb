"""Projections of com.microsoft on packed weights, with the normalization in front of them."""

from __future__ import annotations

from sardonyx.errors import InvalidGraph
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("MatMulNBitsMlp", domain=_MICROSOFT)
def matmul_nbits_mlp(call: ShapeCall, a: Fact, *others: Fact | None, K: int, N: int) -> tuple[Fact, ...]:
    """Infer (…, K) x packed (N, blocks, bytes), twice -> (…, N), and the sum with the residual."""
    return _projected(a, K, N), tensor(a.dtype, a.shape)


@shape_function("MatMulNBitsQkv", domain=_MICROSOFT)
def matmul_nbits_qkv(call: ShapeCall, a: Fact, *others: Fact | None, K: int, Nq: int, Nkv: int) -> tuple[Fact, ...]:
    """Infer (…, K) x packed (N, blocks, bytes), three times -> (…, Nq), (…, Nkv), (…, Nkv), and the sum with the residual."""
    return _projected(a, K, Nq), _projected(a, K, Nkv), _projected(a, K, Nkv), tensor(a.dtype, a.shape)


def _projected(a: Fact, K: int, N: int) -> Fact:
    if a.shape is None:
        return tensor(a.dtype)
    if not a.shape or (isinstance(a.shape[-1], int) and a.shape[-1] != K):
        raise InvalidGraph(f"A of shape {dims_text(a.shape)} does not end in K={K}")
    return tensor(a.dtype, (*a.shape[:-1], N))
