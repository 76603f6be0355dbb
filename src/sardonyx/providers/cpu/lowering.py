"""The state of lowering one partition: which buffer holds each value, which kernels are needed, and the steps so far.

    source, result = low.of(node.inputs[0]), low.result(node.output)
    symbol = low.kernel(TransposeKernel(I32))
    low.step(group, symbol, [source, result], writes=[1], plan=lambda sizes: (words, tasks))

`low.epilogue` turns the tail of a group into one expression.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, substitute
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.scalars import lift_scalars
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ops.schema import place_of
from sardonyx.providers.cpu.expressions import ElementwiseSpec, argument_of
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.packed_memory import PackedMemory
from sardonyx.providers.cpu.precision import Precision
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, Control, KernelLaunch, Plan

__all__ = ["KeptWeights", "KernelSpec", "Lowering", "Write"]

Write = Callable[[Module, str], None]
"""Writes the kernel of a symbol into a module."""


class KernelSpec(Protocol):
    """A kernel: all that its code depends on, besides the target and the sources that write it."""

    def symbol(self, target: Target) -> str:
        """Return its name for `target`: two kernels of one name have the same code."""

    def write(self, module: Module, symbol: str) -> None:
        """Write it into a module, under this name."""


@dataclasses.dataclass(frozen=True, slots=True)
class KeptWeights:
    """Weights of a partition that was lowered before, for the same target."""

    packs: Sequence[Array]
    """What `packed` made, in order."""
    absent: Collection[Value]
    """Constants whose elements are not at hand, only their shapes: they were packed, and nothing else reads them."""


class Lowering:
    """One partition on its way to steps."""

    def __init__(
        self, target: Target, threads: int, kept: KeptWeights | None = None, precision: Precision = Precision.HIGHEST
    ) -> None:
        """Begin a partition for `target`, to be run on `threads` threads; `kept` is what is left of weights packed before.

        `specs` is for what the claims of the partition's nodes made of them, since a kernel may look through what is before it;
        `places` for where each node stands among the partition's; `counters` for what counts the iterations of each Loop.
        """
        self.target = target
        self.threads = threads
        self.precision = precision
        self.steps: list[KernelLaunch] = []
        self.writers: dict[str, Write] = {}
        self.packs: list[Array] = []
        self._memory = PackedMemory(0)
        self.specs: dict[Node, object] = {}
        self.places: dict[Node, int] = {}
        self.counters: dict[Node, Buffer] = {}
        self.precisions: dict[Node, dict[str, None]] = {}
        """What the operands of each product are multiplied in, in the order of its steps; lowerings say it."""
        self._kept = kept
        self.shared: dict[tuple[Hashable, ...], Buffer] = {}
        """What several nodes need, by what it is made of; lowerings fill it."""
        self._packed: dict[tuple[Callable[..., Array], tuple[Hashable, ...], Value | None], Buffer] = {}
        self._scalars: dict[Group, tuple[int, ...]] = {}
        self._buffers: dict[Value, Buffer] = {}
        self._read: set[Buffer] = set()
        self._seen = 0
        self._users: dict[Buffer, list[KernelLaunch]] = {}
        self._written: set[Buffer] = set()
        self._hosts: set[Buffer] = set()
        self._indexed = 0

    def forget(self) -> None:
        """Let go of all but packed weights: plans hold this object, so the rest would die with the garbage collector only."""
        self.steps.clear()
        self.writers.clear()
        self.specs.clear()
        self.places.clear()
        self.counters.clear()
        self.precisions.clear()
        self._scalars.clear()
        self._buffers.clear()
        self._packed.clear()
        self.shared.clear()
        self._read.clear()
        self._users.clear()
        self._written.clear()
        self._hosts.clear()
        self._seen = self._indexed = 0

    def of(self, value: Value | None) -> Buffer:
        """Return the buffer that holds `value`, an input, a constant or a result made before."""
        if value is None:
            raise ValueError("an input that is left out has no buffer; ask node.input(i) first")
        found = self._buffers.get(value)
        if found is None:
            found = self._buffers[value] = Buffer(_dtype(value), _shape(value), self._elements(value))
        return found

    def release_packed(self, values: Iterable[Value | None]) -> None:
        """Let go of those constants among `values` that no step reads, since they were packed: files have them still."""
        for step in self.steps[self._seen :]:
            self._read.update(buffer.root for buffer in step.buffers)
        self._seen = len(self.steps)
        for value in values:
            buffer = None if value is None else self._buffers.get(value)
            if value is not None and value.constant is not None and (buffer is None or buffer.root not in self._read):
                self._buffers.pop(value, None)
                value.constant.release()

    def holds(self, value: Value) -> bool:
        """Return whether there is a buffer for `value` by now: it is an input, or was made or read before."""
        return value in self._buffers

    def result(self, value: Value, shape: Shape | None = None) -> Buffer:
        """Return a new buffer for `value`, which a step is about to write; with a `shape`, as the partition's inputs show it."""
        found = self._buffers[value] = Buffer(_dtype(value), _shape(value) if shape is None else shape)
        return found

    def counter(self) -> Buffer:
        """Return a new int64 for how long a result is, which a step is about to write."""
        return Buffer(DataType.INT64, (1,))

    def result_up_to(self, value: Value, shape: Shape, count: Buffer, axis: int = 0) -> Buffer:
        """Return a new buffer for `value`, which is at most of `shape`: how long dimension `axis` is, a step stores in `count`."""
        found = self._buffers[value] = Buffer(_dtype(value), shape, count=count, counted=axis)
        return found

    def view(self, value: Value, of: Buffer, offset: Dim = 0) -> Buffer:
        """Let `value` lie in the memory of `of`, `offset` elements from its beginning: no bytes move."""
        self._read.add(of.root)
        found = self._buffers[value] = Buffer(_dtype(value), _shape(value), of.constant, of, offset)
        return found

    def part(self, value: Value, of: Buffer) -> Buffer:
        """Let `value`, which is no constant whatever `of` is, lie at the beginning of `of`."""
        found = self._buffers[value] = Buffer(_dtype(value), _shape(value), base=of)
        return found

    def place(self, part: Buffer, host: Buffer, offset: Dim, pitch: Dim | None = None) -> None:
        """Let `part`, which steps write, lie in the memory of `host` from now on, `offset` elements from its beginning."""
        self._index_steps()
        part.base, part.offset, part.pitch = host, offset, pitch
        self._written.add(host)
        self._hosts.add(host)

    def is_written(self, buffer: Buffer) -> bool:
        """Return whether a step so far writes into the memory of `buffer`, which is the buffer's own."""
        self._index_steps()
        return buffer.base is None and buffer in self._written

    def users_of(self, buffer: Buffer) -> Sequence[KernelLaunch] | None:
        """Return the steps so far that read or write the memory of `buffer`; None where other buffers were placed in it."""
        self._index_steps()
        return None if buffer in self._hosts else self._users.get(buffer, ())

    @contextlib.contextmanager
    def body(self) -> Iterator[None]:
        """Lower the steps of a subgraph in the block: they run any number of times.

        What others write stays where it is, and what is made there to be shared is not there afterwards.
        """
        self._index_steps()
        users, written, self._users, self._written = self._users, self._written, {}, set()
        shared, self.shared = self.shared, dict(self.shared)
        yield
        self._index_steps()
        self._users, self._written, self.shared = users, written, shared

    def _index_steps(self) -> None:
        """Note which steps use which memory; each step is read once, so that asking about n buffers is not n times all steps."""
        for step in self.steps[self._indexed :]:
            for root in dict.fromkeys(buffer.root for buffer in step.buffers):
                self._users.setdefault(root, []).append(step)
            self._written.update(step.buffers[place].root for place in step.writes)
        self._indexed = len(self.steps)

    def elements(self, value: Value | None) -> Array:
        """Return the elements of a constant as they are in the model; raises ValueError for a value that is none."""
        if value is None or value.constant is None:
            raise ValueError(f"{value!r} is no constant, so its elements are known only when the model runs")
        return value.constant.numpy()

    def _elements(self, value: Value) -> Array | None:
        if value.constant is None:
            return None
        array = value.constant.numpy()
        return array if self._kept is not None and value in self._kept.absent else np.ascontiguousarray(array)

    def constant(self, array: Array) -> Buffer:
        """Return a buffer with the elements of `array`."""
        return Buffer(DataType.from_numpy(array.dtype), array.shape, array)

    def expect_weights(self, size_bytes: int) -> None:
        """Have `packed` know about how many bytes of constants the nodes read."""
        self._memory = PackedMemory(size_bytes)

    def packed(self, pack: Callable[..., Array], weights: object, *options: Hashable, of: Value | None) -> Buffer:
        """Return a buffer with the weights that `pack(weights, *options)` makes, now or when they were kept.

        Args:
            pack: makes them.
            weights: what `of` holds, as `pack` takes it.
            options: what else `pack` takes.
            of: the constant that they are, all of it: nodes that pack one constant alike share the buffer. None for others.
        """
        key = (pack, options, of)
        if of is not None and key in self._packed:
            return self._packed[key]
        array = self._memory.place(pack(weights, *options)) if self._kept is None else self._kept.packs[len(self.packs)]
        self.packs.append(array)
        made = self._packed[key] = self.constant(array)
        return made

    def temporary(self, dtype: DataType, shape: Shape) -> Buffer:
        """Return a buffer that lives from the step that writes it to the last that reads it."""
        return Buffer(dtype, shape)

    def kernel(self, kernel: KernelSpec) -> str:
        """Ask for a kernel, unless one of its name was asked for before; returns its symbol."""
        symbol = kernel.symbol(self.target)
        self.writers.setdefault(symbol, kernel.write)
        return symbol

    def step(
        self,
        group: Group,
        symbol: str,
        buffers: Sequence[Buffer],
        *,
        writes: Sequence[int],
        plan: Plan,
        in_place: Sequence[int] = (),
        pitched: bool = False,
        together: int = 0,
        failure: str = "",
        unless: Callable[[Sizes], bool] | None = None,
        shares: Sequence[tuple[int, int]] = (),
        control: Control | None = None,
        precision: str = "",
    ) -> None:
        """Run a kernel after the steps so far; the arguments are the fields of KernelLaunch.

        For a product `precision` is what its operands are multiplied in.
        """
        if precision:
            self.precisions.setdefault(group.node, {})[precision] = None
        name = "+".join(node.op_type for node in group.nodes)
        place = place_of(group.node)
        nodes = tuple(self.places[node] for node in group.nodes if node in self.places)
        launch = KernelLaunch(
            name,
            place,
            symbol,
            tuple(buffers),
            tuple(writes),
            plan,
            tuple(in_place),
            pitched,
            nodes,
            failure,
            together,
            self._scalars.get(group, ()),
            unless,
            tuple(shares),
            control,
        )
        self.steps.append(launch)

    def move(
        self,
        name: str,
        symbol: str,
        buffers: Sequence[Buffer],
        plan: Plan,
        node: Node | None = None,
        *,
        unless: Callable[[Sizes], bool] | None = None,
    ) -> None:
        """Run a kernel that copies its first buffer to its last, for `node` or for no node of the graph."""
        place, nodes = (name, ()) if node is None else (place_of(node), (self.places[node],) if node in self.places else ())
        self.steps.append(KernelLaunch(name, place, symbol, tuple(buffers), (len(buffers) - 1,), plan, nodes=nodes, unless=unless))

    def epilogue(self, group: Group, head: ElementExpr | None = None) -> tuple[ElementExpr, list[Value]]:
        """Return the group's tail: the element to store, and the tensors that it reads besides the anchor's result.

        Argument 0 is the anchor's element, argument i the element of the i-th of the tensors, counted from 1. With a `head`, it is
        the anchor's element, and its arguments stay as they are.
        """
        expr, operands = self._tail(group, head)
        return self.lift(group, expr)[0], operands

    def tail(self, group: Group, head: ElementExpr) -> ElementExpr:
        """Return what `epilogue` does for a tail that reads no tensors besides, with its scalars, for `lift`."""
        return self._tail(group, head)[0]

    def _tail(self, group: Group, head: ElementExpr | None) -> tuple[ElementExpr, list[Value]]:
        first = group.node.outputs[0]
        operands = [first]
        made = {first: argument_of(0, _dtype(first)) if head is None else head}
        _compose(group.tail, made, operands)
        return made[group.result], operands[1:]

    def chain(self, group: Group) -> tuple[ElementExpr, list[Value]]:
        """Return a group whose anchor is element-wise too, as an expression of the tensors that it reads."""
        made: dict[Value, ElementExpr] = {}
        operands: list[Value] = []
        _compose([group.anchor, *group.tail], made, operands)
        return self.lift(group, made[group.result])[0], operands

    def lift(self, group: Group, *exprs: ElementExpr) -> tuple[ElementExpr, ...]:
        """Return the expressions of a group's kernels without their scalars, which the group's steps get from now on."""
        code, self._scalars[group] = lift_scalars(*exprs)
        return code


def _compose(members: Sequence[Member], made: dict[Value, ElementExpr], operands: list[Value]) -> None:
    """Add to `made` an element of what each of some element-wise nodes makes, and to `operands` the tensors that they read."""
    for member in members:
        if isinstance(member.spec, ElementwiseSpec):
            made[member.node.outputs[0]] = _applied(member.node, member.spec, made, operands)


def _applied(node: Node, spec: ElementwiseSpec, made: dict[Value, ElementExpr], operands: list[Value]) -> ElementExpr:
    arguments: dict[int, ElementExpr] = {}
    for index, value in enumerate(node.inputs):
        if value is None or index not in spec.reads:
            continue
        if value not in made:
            made[value] = argument_of(len(operands), _dtype(value))
            operands.append(value)
        arguments[index] = made[value]
    return substitute(spec.expr, arguments)


def _dtype(value: Value) -> DataType:
    if value.dtype is None:
        raise ValueError(f"{value!r} has no known element type; only nodes that were claimed are lowered")
    return value.dtype


def _shape(value: Value) -> Shape:
    if value.shape is None:
        raise ValueError(f"{value!r} has no known rank; only nodes that were claimed are lowered")
    return value.shape
