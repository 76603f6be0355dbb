"""Windows and banks of filters: BlackmanWindow, HammingWindow, HannWindow, MelWeightMatrix."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, Type
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.signal.mel import write_mel_edges, write_mel_filters
from sardonyx.codegen.kernels.signal.windows import WINDOW_BLOCK, write_window
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.sizes import Sizes

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
    kind, rank = element_type(node.output.dtype), len(shape_of(node.output))
    if kind is None or kind == BOOL or rank != 1:
        return f"a window of {rank} dimensions and type {node.output.dtype}"
    return WindowSpec(kind, _TERMS[node.op_type], bool(node.integer("periodic", 1)))


@dataclasses.dataclass(frozen=True, slots=True)
class WindowKernel:
    """Sums of cosines."""

    kind: Type
    """The type of elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"window_{self.kind.kind.value}{self.kind.bits}_{target.isa}"

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


@dataclasses.dataclass(frozen=True, slots=True)
class MelSpec:
    """A bank of filters on the mel scale."""

    whole: Type
    """The type of the length and the rate."""
    hertz: Type
    """The type of frequencies."""
    kind: Type
    """The type of elements."""


def claim_mel(node: Node) -> MelSpec | str:
    """Return which filters a MelWeightMatrix makes, or why it cannot be compiled."""
    kind, rank = element_type(node.output.dtype), len(shape_of(node.output))
    if kind is None or kind == BOOL or rank != 2:
        return f"filters of {rank} dimensions and type {node.output.dtype}"
    types = [element_type(given(value).dtype) for value in node.inputs[1:5]]
    if any(product(shape_of(value)) != 1 for value in node.inputs[:5]):
        return "one of its inputs is no scalar"
    whole, rate, hertz, high = types
    if whole is None or hertz is None or whole != rate or hertz != high:
        return "its inputs are of types that kernels do not compute with"
    return MelSpec(whole, hertz, kind)


@dataclasses.dataclass(frozen=True, slots=True)
class MelEdgesKernel:
    """The edges between filters."""

    whole: Type
    """The type of the length and the rate."""
    hertz: Type
    """The type of frequencies."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"mel_edges_{self.whole.kind.value}{self.whole.bits}_{self.hertz.kind.value}{self.hertz.bits}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_mel_edges(module, symbol, self.whole, self.hertz)


@dataclasses.dataclass(frozen=True, slots=True)
class MelFiltersKernel:
    """Filters of given edges."""

    kind: Type
    """The type of elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"mel_filters_{self.kind.kind.value}{self.kind.bits}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_mel_filters(module, symbol, self.kind)


@lowers("MelWeightMatrix", claim=claim_mel, inputs=5)
def mel_weight_matrix(low: Lowering, group: Group, spec: MelSpec) -> None:
    """Find the edges, then store what each filter takes of each bin."""
    result = low.result(group.node.output)
    bins, bands = result.shape
    edges = low.temporary(DataType.DOUBLE, (bands + 2,))
    numbers = [low.of(value) for value in group.node.inputs[1:5]]
    first, second = low.kernel(MelEdgesKernel(spec.whole, spec.hertz)), low.kernel(MelFiltersKernel(spec.kind))
    low.step(group, first, [*numbers, edges], writes=[4], plan=lambda sizes: ([sizes(bands)], 1))
    low.step(group, second, [edges, result], writes=[1], plan=lambda sizes: ([sizes(bands)], sizes(bins)))
