"""Random numbers: RandomNormal, RandomUniform, those that take the shape of a tensor, and classes by weight: Multinomial.

A node with a seed has a stream of its own, a constant. One without takes the next stream of the process in each run, by a step
before the one that draws.
"""

from __future__ import annotations

import struct

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BF16, F16, F32, F64, I32, I64, Type
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.signal.classes import write_add_weights, write_draw_classes
from sardonyx.codegen.kernels.signal.random import DRAW_BLOCK, stream_of, write_normal, write_take_stream, write_uniform
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.ops.schema import place_of
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import RANDOM_SOURCE, Buffer

__all__: list[str] = []

_INTEGERS = {DataType.INT32: I32, DataType.INT64: I64}
_KINDS = {DataType.FLOAT: F32, DataType.DOUBLE: F64, DataType.FLOAT16: F16, DataType.BFLOAT16: BF16}


@dataclasses.dataclass(frozen=True, slots=True)
class RandomSpec:
    """Numbers to draw."""

    kind: Type
    """The type of elements."""
    is_normal: bool
    """Whether they are distributed normally, else evenly."""
    factor: float
    """What a number of [0, 1), or of the standard deviation 1, is multiplied by."""
    addend: float
    """What is added then."""
    stream: int | None
    """The stream of a node that has a seed."""


def claim(node: Node) -> RandomSpec | str:
    """Return what a node draws, or why it cannot be compiled."""
    dtype, shape, is_normal = node.output.dtype, shape_of(node.output), node.op_type.startswith("RandomNormal")
    if dtype not in _KINDS:
        return f"random numbers of type {dtype}"
    if any(isinstance(dim, int) and dim < 0 for dim in shape):
        return f"a shape of {list(shape)}"
    names = (("scale", 1.0), ("mean", 0.0)) if is_normal else (("high", 1.0), ("low", 0.0))
    factor, addend = (node.number(name, default) for name, default in names)
    return RandomSpec(_KINDS[dtype], is_normal, factor if is_normal else factor - addend, addend, _own_stream(node))


def _own_stream(node: Node) -> int | None:
    """Return the stream of a node that has a seed: of its bits, since any two seeds differ in these."""
    seed = node.number("seed")
    return None if seed is None else stream_of(int(struct.unpack("<Q", struct.pack("<d", seed))[0]))


@dataclasses.dataclass(frozen=True, slots=True)
class StreamKernel:
    """The next stream of the process."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"take_stream_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_take_stream(module, symbol)


@dataclasses.dataclass(frozen=True, slots=True)
class RandomKernel:
    """Numbers of a stream."""

    kind: Type
    """The type of elements."""
    is_normal: bool
    """Whether they are distributed normally."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"random_{'normal' if self.is_normal else 'uniform'}_{self.kind.kind.value}{self.kind.bits}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        (write_normal if self.is_normal else write_uniform)(module, symbol, self.kind)


@lowers("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", claim=claim, inputs=0)
def draw(low: Lowering, group: Group, spec: RandomSpec) -> None:
    """Take a stream and draw from it; of an input only the shape is wanted."""
    result = low.result(group.node.output)
    count = product(result.shape)
    symbol = low.kernel(RandomKernel(spec.kind, spec.is_normal))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        elements = sizes(count)
        return [elements, float_word(spec.factor), float_word(spec.addend)], -(-elements // DRAW_BLOCK)

    low.step(group, symbol, [_stream(low, group, spec.stream), result], writes=[1], plan=plan)


def _stream(low: Lowering, group: Group, own: int | None) -> Buffer:
    if own is not None:
        return low.constant(np.array([own], np.uint64))
    taken = low.temporary(DataType.UINT64, (1,))
    low.step(group, low.kernel(StreamKernel()), [RANDOM_SOURCE, taken], writes=[1], plan=lambda sizes: ([], 1))
    return taken


@dataclasses.dataclass(frozen=True, slots=True)
class ClassesSpec:
    """Classes to draw by the logarithms of their weights."""

    kind: Type
    """The type of the logarithms."""
    samples: int
    """How many are drawn of each row."""
    result: Type
    """The type of what is drawn."""
    stream: int | None
    """The stream of a node that has a seed."""


def claim_classes(node: Node) -> ClassesSpec | str:
    """Return what a Multinomial draws, or why it cannot be compiled."""
    (x, *_), dtype, samples = node.inputs, node.output.dtype, node.integer("sample_size", 1)
    weights, rank = given(x).dtype, len(shape_of(x))
    if weights not in _KINDS or rank != 2:
        return f"logarithms of {rank} dimensions and type {weights}"
    if dtype not in _INTEGERS or samples < 1:
        return f"{samples} classes of type {dtype}"
    return ClassesSpec(_KINDS[weights], samples, _INTEGERS[dtype], _own_stream(node))


@dataclasses.dataclass(frozen=True, slots=True)
class WeightsKernel:
    """Sums of weights."""

    kind: Type
    """The type of their logarithms."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"add_weights_{self.kind.kind.value}{self.kind.bits}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_add_weights(module, symbol, self.kind)


@dataclasses.dataclass(frozen=True, slots=True)
class ClassesKernel:
    """Classes by sums of weights."""

    kind: Type
    """The type of classes."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"draw_classes_{self.kind}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_draw_classes(module, symbol, self.kind)


@lowers("Multinomial", claim=claim_classes)
def draw_classes(low: Lowering, group: Group, spec: ClassesSpec) -> None:
    """Add up the weights of each row, then take a stream and draw from it."""
    node, x = group.node, low.of(group.node.inputs[0])
    rows, classes = x.shape
    sums = low.temporary(DataType.DOUBLE, x.shape)

    def add(sizes: Sizes) -> tuple[list[int], int]:
        if sizes(rows) and not sizes(classes):
            raise InvalidArgument(f"{place_of(node)}: the input has shape {sizes.shape(x.shape)}; expected one class at least")
        return [sizes(classes)], sizes(rows)

    def draw_all(sizes: Sizes) -> tuple[list[int], int]:
        count = sizes(rows) * spec.samples
        return [count, spec.samples, sizes(classes)], -(-count // DRAW_BLOCK)

    low.step(group, low.kernel(WeightsKernel(spec.kind)), [x, sums], writes=[1], plan=add)
    buffers = [_stream(low, group, spec.stream), sums, low.result(node.output)]
    low.step(group, low.kernel(ClassesKernel(spec.result)), buffers, writes=[2], plan=draw_all)
