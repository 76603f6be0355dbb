"""How tensors are seen by kernels that fold them by rows or columns: outer x lines x length, with extra operands."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.lines import Along, ExtraOperand, LineParams
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Shape, Value
from sardonyx.providers.cpu.expressions import argument_of
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.elementwise import joins_elementwise, others_of
from sardonyx.providers.cpu.sizes import Sizes

__all__ = ["NARROWED", "Lines", "LinesCode", "is_uniform", "joins_lines"]

Operand = tuple[DataType, Shape]
"""Element type and shape of an extra operand, which is broadcast to the folded one."""


@dataclasses.dataclass(frozen=True, slots=True)
class LinesCode:
    """What the code of a kernel of lines depends on."""

    along: Along
    """What is folded."""
    extra_operands: tuple[ExtraOperand, ...]
    """The extra operands."""

    @property
    def name(self) -> str:
        """Rows or columns, and how each extra operand is walked."""
        ways = ["".join("om"[not extra.ordered] + "".join(str(int(move)) for move in extra.moves)) for extra in self.extra_operands]
        return "_".join([self.along.value, *ways])


class Lines:
    """A tensor seen as lines, and how the extra operands are walked from line to line."""

    __slots__ = ("_dims", "_first", "_moves", "_ordered", "_shape", "_split", "code")

    def __init__(self, shape: Shape, first: int, split: int, along: Along, operands: Sequence[Operand] = ()) -> None:
        """See `shape` as outer (the axes before `first`) x lines (those before `split`) x length (the others).

        Each operand must be uniform along lines, as `is_uniform` says.
        """
        self._shape, self._first, self._split = shape, first, split
        padded = [(1,) * (len(shape) - len(own)) + tuple(own) for _, own in operands]
        self._dims, self._moves = _walk(shape[:split], padded)
        self._ordered = [any(dim != 1 for dim in own[split:]) for own in padded]
        extra_operands = tuple(
            ExtraOperand(_type(dtype), ordered, tuple(moves[k] for moves in self._moves))
            for k, ((dtype, _), ordered) in enumerate(zip(operands, self._ordered, strict=True))
        )
        self.code = LinesCode(along, extra_operands)

    def params(self, sizes: Sizes) -> LineParams:
        """Return the first parameters of the kernel."""
        shape = self._shape
        return LineParams(
            sizes.product(shape[: self._first]),
            sizes.product(shape[self._first : self._split]),
            sizes.product(shape[self._split :]),
            self.code.along,
        )

    def walk(self, sizes: Sizes) -> list[int]:
        """Return the parameters of the walk of the extra operands."""
        length = sizes.product(self._shape[self._split :])
        reach = [length if ordered else 1 for ordered in self._ordered]
        words: list[int] = []
        for dim, moves in zip(reversed(self._dims), reversed(self._moves), strict=True):
            size = sizes(dim)
            words[:0] = [size, *(step if moving else 0 for step, moving in zip(reach, moves, strict=True))]
            reach = [step * size if moving else step for step, moving in zip(reach, moves, strict=True)]
        return words


def is_uniform(shape: Shape, operand: Shape, split: int) -> bool:
    """Return whether `operand` is known to be broadcast to `shape`, and to go along with the axes from `split` on, all or none."""
    padded = (1,) * (len(shape) - len(operand)) + tuple(operand)
    if len(padded) > len(shape) or any(own not in (1, dim) for own, dim in zip(padded, shape, strict=True)):
        return False
    moving = {own != 1 for own, dim in zip(padded[split:], shape[split:], strict=True) if dim != 1}
    return len(moving) <= 1


NARROWED = frozenset((DataType.BFLOAT16, DataType.FLOAT16, DataType.INT8, DataType.INT16, DataType.UINT8, DataType.UINT16))
"""The types to which what kernels of lines write may be rounded or quantized."""


def joins_lines(split: int, group: Group, member: Member, value: Value, others: Collection[DataType | None] = frozenset()) -> bool:
    """Return whether an element-wise node can be computed where a kernel of lines writes.

    Its output is float32, float64 where the lines are, or of one of the `others` that the kernel can store; what it reads besides
    is uniform along the lines.
    """
    shape, dtype = value.shape, member.node.output.dtype
    is_double = dtype is DataType.DOUBLE and value.dtype is DataType.DOUBLE
    if shape is None or not (is_double or dtype is DataType.FLOAT or dtype in others):
        return False
    if not joins_elementwise(group, None, member, value):
        return False
    return all(is_uniform(shape, other.shape or (), split) for other in others_of(member, value))


def _walk(dims: Shape, operands: Sequence[Shape]) -> tuple[list[Dim], list[tuple[bool, ...]]]:
    """Return the dimensions before the lines, neighbours merged that all operands walk alike, and who moves along each."""
    sizes: list[Dim] = []
    moves: list[tuple[bool, ...]] = []
    for axis, dim in enumerate(dims):
        moving = tuple(shape[axis] != 1 for shape in operands)
        if dim == 1:
            continue
        if moves and moves[-1] == moving:
            sizes[-1] = sizes[-1] * dim
            continue
        sizes.append(dim)
        moves.append(moving)
    return (sizes, moves) if any(itertools.chain(*moves)) else ([], [])


def _type(dtype: DataType) -> Type:
    return argument_of(0, dtype).type
