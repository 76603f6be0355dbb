"""Sizes that elements of inputs say, such as the limit of a Range: what a run reads before it binds a node's program.

Each operator has a function of its inputs' arrays, None for one left out, that says what the dimensions of its output are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Expr, Node, Shape
from sardonyx.ops.schema import place_of
from sardonyx.provider import Partition

__all__ = ["ValueSizes", "says_sizes", "value_sizes"]

_Arrays: TypeAlias = Sequence[Array | None]
_Rule: TypeAlias = Callable[[_Arrays], Sequence[int]]


@dataclasses.dataclass(frozen=True, slots=True)
class ValueSizes:
    """What the program of a node has to know whose output's size elements of its inputs say."""

    op_type: str
    """The operator, one of `_RULES`."""
    where: str
    """How messages name the node."""
    given: tuple[int | Array | None, ...]
    """For each of its inputs the place among the partition's inputs, or the constant."""
    shape: Shape
    """The shape of its output."""

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that are dimensions of its output."""
        return frozenset(_names(self.shape))

    def read(self, inputs: Sequence[Array]) -> tuple[int, ...]:
        """Return the shape of its output for these inputs of the partition, or the one size that they say of it.

        Raises:
            InvalidArgument: they say a size that there cannot be.
        """
        try:
            return tuple(_RULES[self.op_type]([inputs[given] if isinstance(given, int) else given for given in self.given]))
        except InvalidArgument as error:
            raise InvalidArgument(f"{self.where}: {error}") from error

    def known(self, sizes: Sequence[int]) -> dict[str, int]:
        """Return what the symbols are, of what `read` returned.

        Raises:
            InvalidArgument: these are more dimensions than the output has, or fewer.
        """
        given = sizes if self.op_type not in _ONE_SIZE else [sizes[0]] * len(self.shape)
        if len(given) != len(self.shape):
            raise InvalidArgument(f"{self.where}: the values of its inputs say a shape of {list(sizes)}")
        return {
            dim.name: size for dim, size in zip(self.shape, given, strict=True) if isinstance(dim, Expr) and dim.name is not None
        }


def says_sizes(node: Node, missing: Collection[str]) -> bool:
    """Return whether elements of a node's inputs say all of these sizes, which are dimensions of its output."""
    if node.domain or node.op_type not in _RULES or len(node.outputs) != 1:
        return False
    names = _names(node.output.shape or ())
    is_one = node.op_type not in _ONE_SIZE or len(missing) == 1
    return is_one and set(missing) <= set(names) and len(names) == len(set(names))


def value_sizes(partition: Partition) -> ValueSizes | None:
    """Return what there is to know of the node that a partition is, where elements of its inputs say the size of its output."""
    node, shown = partition.nodes[0], {name for value in partition.inputs for name in _names(value.shape or ())}
    missing = [name for name in _names(node.output.shape or ()) if name not in shown]
    if len(partition.nodes) > 1 or not missing or not says_sizes(node, missing):
        return None
    shape = tuple(dim if not isinstance(dim, Expr) or dim.name in missing else 0 for dim in node.output.shape or ())
    given = (
        None if value is None else partition.inputs.index(value) if value.constant is None else value.constant.numpy()
        for value in node.inputs
    )
    return ValueSizes(node.op_type, place_of(node), tuple(given), shape)


def _names(shape: Shape) -> list[str]:
    return [dim.name for dim in shape if isinstance(dim, Expr) and dim.name is not None]


def _number(array: Array | None, name: str) -> int:
    number = _item(array, name)
    if not math.isfinite(number):
        raise InvalidArgument(f"{name} is {number}; expected a finite number")
    return int(number)


def _item(array: Array | None, name: str) -> int | float:
    if array is None or array.size != 1:
        raise InvalidArgument(f"{name} has shape {None if array is None else array.shape}; expected one number")
    found: int | float = array.item()
    return found


def _sizes(array: Array | None) -> list[int]:
    if array is not None and array.ndim != 1:
        raise InvalidArgument(f"sizes have shape {array.shape}; expected a tensor of rank 1, of a size for each dimension")
    sizes: list[int] = [] if array is None else array.tolist()
    if min(sizes, default=0) < 0:
        raise InvalidArgument(f"the shape {sizes} has a negative size; expected sizes of 0 or more")
    return sizes


def _range(arrays: _Arrays) -> list[int]:
    """Return max(0, ceil((limit - start) / delta)), exactly for integers. Source: ONNX Range-11."""
    first, end, step = (_item(array, name) for array, name in zip(arrays, ("start", "limit", "delta"), strict=True))
    if step == 0:
        raise InvalidArgument("delta is 0; expected another number")
    if isinstance(first, int) and isinstance(end, int) and isinstance(step, int):
        return [max(0, -((first - end) // step))]
    length = (end - first) / step
    if not math.isfinite(length):
        raise InvalidArgument(f"the range from {first} to {end} by {step} has no finite length; expected finite numbers")
    return [max(0, math.ceil(length))]


def _window(arrays: _Arrays) -> list[int]:
    length = _number(arrays[0], "size")
    if length < 0:
        raise InvalidArgument(f"size = {length}, expected 0 or more elements")
    return [length]


def _constant_of_shape(arrays: _Arrays) -> list[int]:
    return _sizes(arrays[0])


def _one_hot(arrays: _Arrays) -> list[int]:
    depth = _number(arrays[1], "depth")
    if depth < 0:
        raise InvalidArgument(f"depth is {depth}; expected 0 or more")
    return [depth]


def _affine_grid(arrays: _Arrays) -> list[int]:
    given = _sizes(arrays[1])
    if len(given) not in (4, 5):
        raise InvalidArgument(f"size has {len(given)} elements; expected 4, or 5 for volumes")
    batch, _, *sizes = given
    return [batch, *sizes, len(sizes)]


def _mel(arrays: _Arrays) -> list[int]:
    bands, length, rate = (_number(arrays[place], name) for place, name in enumerate(("num_mel_bins", "dft_length", "sample_rate")))
    if bands < 0 or length < 0 or rate < 1:
        raise InvalidArgument(f"num_mel_bins = {bands}, dft_length = {length}, sample_rate = {rate}, expected at least 0, 0 and 1")
    return [length // 2 + 1, bands]


_ONE_SIZE = frozenset(("OneHot",))
"""Operators of whose output one dimension alone is said by elements."""

_RULES: Mapping[str, _Rule] = {
    "AffineGrid": _affine_grid,
    "BlackmanWindow": _window,
    "ConstantOfShape": _constant_of_shape,
    "HammingWindow": _window,
    "HannWindow": _window,
    "MelWeightMatrix": _mel,
    "OneHot": _one_hot,
    "Range": _range,
}
"""Operator -> the shape of its output, or the one size that elements say of it."""
