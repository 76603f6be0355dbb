"""Windows whose length is known by the time of binding: BlackmanWindow, HammingWindow, HannWindow."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.signal.windows import WINDOW_BLOCK, write_window
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import shape_of
from sardonyx.providers.cpu.sizes import Sizes

_KINDS = {DataType.FLOAT: F32, DataType.DOUBLE: F64}
_TERMS = {"BlackmanWindow": (0.42, -0.5, 0.08), "HammingWindow": (25 / 46, -21 / 46, 0.0), "HannWindow": (0.5, -0.5, 0.0)}
"""Operator -> the factors of 1, cos(t) and cos(2 t), with t from 0 to 2 pi along the window (ONNX <Op>-17)."""


@dataclasses.dataclass(frozen=True, slots=True)
class WindowSpec:
    """A window."""

    kind: Type
    """The type of elements."""
    terms: tuple[float, float, float]
    """The factors of its cosines."""
    periodic: bool
    """Whether the period ends one element behind the last, or at it."""


def claim(node: Node) -> WindowSpec | str:
    """Return which window a node makes, or why it cannot be compiled."""
    dtype, rank = node.output.dtype, len(shape_of(node.output))
    if dtype not in _KINDS or rank != 1:
        return f"a window of {rank} dimensions and type {dtype}"
    return WindowSpec(_KINDS[dtype], _TERMS[node.op_type], bool(node.integer("periodic", 1)))


@dataclasses.dataclass(frozen=True, slots=True)
class WindowKernel:
    """Sums of cosines."""

    kind: Type
    """The type of elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"window_{self.kind}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_window(module, symbol, self.kind)


@lowers("BlackmanWindow", "HammingWindow", "HannWindow", claim=claim)
def window(low: Lowering, group: Group, spec: WindowSpec) -> None:
    """Store the elements; a single one is 1."""
    result = low.result(group.node.output)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        length = sizes(result.shape[0])
        period = max(1, length if spec.periodic else length - 1)
        terms = (1.0, 0.0, 0.0) if length == 1 else spec.terms
        return [length, period, *map(float_word, terms)], -(-length // WINDOW_BLOCK)

    low.step(group, low.kernel(WindowKernel(spec.kind)), [result], writes=[0], plan=plan)
