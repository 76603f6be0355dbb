"""Det: determinants of matrices."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.matrices.determinant import write_determinant
from sardonyx.codegen.target import Target
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.matrices.elimination import SquareSpec, claim_square, eliminate
from sardonyx.providers.cpu.lowering import Lowering


@dataclasses.dataclass(frozen=True, slots=True)
class DeterminantKernel:
    """Determinants."""

    kind: Type
    """The type of elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"determinant_{self.kind}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_determinant(module, symbol, self.kind)


@lowers("Det", claim=claim_square)
def det(low: Lowering, group: Group, spec: SquareSpec) -> None:
    """Eliminate all columns."""
    eliminate(low, group, low.kernel(DeterminantKernel(spec.kind)))
