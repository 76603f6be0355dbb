"""General matrix products: Gemm, FusedGemm and QGemm of com.microsoft, and the transposes of FusedMatMul."""

from typing import NamedTuple, Self

from sardonyx.ir import Operator

__all__ = ["Gemm"]


class Gemm(NamedTuple):
    """alpha * A' * B' + beta * C, where A' and B' are A and B, or transposed."""

    alpha: float
    """The factor of the product."""
    beta: float
    """The factor of what is added."""
    transposes_a: bool
    """Whether A is (K, M) rather than (M, K)."""
    transposes_b: bool
    """Whether B is (N, K) rather than (K, N)."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(node.number("alpha", 1.0), node.number("beta", 1.0), node.flag("transA"), node.flag("transB"))

    @property
    def is_scaled(self) -> bool:
        """Whether a factor is other than 1."""
        return self.alpha != 1 or self.beta != 1

    @property
    def column_axis(self) -> int:
        """The axis of B along which the columns of the product lie."""
        return 0 if self.transposes_b else 1
