"""Inverse of com.microsoft."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.matrices.inverse import write_inverse
from sardonyx.codegen.target import Target
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.matrices.elimination import SquareSpec, claim_square, eliminate
from sardonyx.providers.cpu.lowering import Lowering

_SINGULAR = "matrix {} of X, counted through all dimensions before the last two, is singular; every one must have an inverse"


@dataclasses.dataclass(frozen=True, slots=True)
class InverseKernel:
    """Inverses."""

    kind: Type
    """The type of elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"inverse_{self.kind}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_inverse(module, symbol, self.kind)


@lowers("Inverse", claim=claim_square, domain="com.microsoft")
def inverse(low: Lowering, group: Group, spec: SquareSpec) -> None:
    """Eliminate all columns."""
    eliminate(low, group, low.kernel(InverseKernel(spec.kind)), rows=2, failure=_SINGULAR)
