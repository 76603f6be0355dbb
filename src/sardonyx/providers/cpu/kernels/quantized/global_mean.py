"""QLinearGlobalAveragePool of com.microsoft with the channels first; `pool` has it with the channels last."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I8, U8, Type
from sardonyx.codegen.kernels.lines import Along, LineParams
from sardonyx.codegen.kernels.quantized.byte_mean import LONGEST_ROW, write_byte_mean
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import expression_symbol, scalar_of
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import joins_alone
from sardonyx.providers.cpu.kernels.pool import PoolSpec, claim_global
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes

__all__: list[str] = []


def claim(node: Node) -> PoolSpec | str:
    """Return what a node averages, or why it cannot be compiled."""
    return "its channels are the last dimension" if node.integer("channels_last", 0) else claim_global(node)


@dataclasses.dataclass(frozen=True, slots=True)
class ByteMeanKernel:
    """Means of rows."""

    kind: Type
    """The type of elements."""
    wide: bool
    """Whether sums have 64 bits."""
    after: ElementExpr
    """What is stored."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(
            target, f"byte_mean_{self.kind.kind.value}{self.kind.bits}{'_wide' if self.wide else ''}", [self.after]
        )

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_byte_mean(module, symbol, self.kind, self.after, wide=self.wide)


@lowers("QLinearGlobalAveragePool", claim=claim, joins=joins_alone, domain="com.microsoft", inputs=4)
def lower(low: Lowering, group: Group, spec: PoolSpec) -> None:
    """Add up each plane."""
    data, result = low.of(group.node.inputs[0]), low.result(group.result)
    places, planes = product(data.shape[2:]), product(data.shape[:2])
    (after,), zero = low.lift(group, low.tail(group, spec.after)), int(scalar_of(group.node, 2) or 0)
    is_short = isinstance(places, int) and places <= LONGEST_ROW
    symbol = low.kernel(ByteMeanKernel(I8 if data.dtype is DataType.INT8 else U8, not is_short, after))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = LineParams(sizes(planes), 1, sizes(places), Along.ROWS)
        return [*params.words(), zero], params.tasks()

    low.step(group, symbol, [data, result], writes=[1], plan=plan)
