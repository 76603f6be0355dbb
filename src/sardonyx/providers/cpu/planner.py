"""What a program does for given sizes: where buffers are, what each step does, and the table that the driver reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import checked
from sardonyx.codegen.run import step_table
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.random_source import random_source
from sardonyx.codegen.run.step_table import StepTable
from sardonyx.config import guards_memory
from sardonyx.errors import SardonyxError
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import symbols_in
from sardonyx.provider import Bound, CountedOutput, TensorSpec
from sardonyx.providers.cpu.addresses import address_of
from sardonyx.providers.cpu.guard import Fence, place_fenced
from sardonyx.providers.cpu.planning import impossible_buffers, plan_steps
from sardonyx.providers.cpu.rebind import Rebinder
from sardonyx.providers.cpu.recording import Dims
from sardonyx.providers.cpu.sizes import Sizes, first_alike
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.storage import Home, Storage, item_bytes
from sardonyx.providers.cpu.tables import Tables

__all__ = ["ABSOLUTE", "ARENA", "FIRST_INPUT", "NotZero", "Plan", "Planner"]

ARENA, ABSOLUTE, FIRST_INPUT = 1, 2, 3
"""Bases of a step table: the arena, addresses as they are (constants), then the inputs, then the outputs."""


_LONG_TASK_ELEMENTS = 1 << 22
"""Elements of a task that takes tens of milliseconds."""
_UNLIKE_TASKS = 8
"""Of a step whose tasks differ, for how many of them its longest one may take a part."""


@dataclasses.dataclass(frozen=True, slots=True)
class NotZero:
    """A size of a Reshape's result that was inferred as if it were not 0: a 0 in the target shape copies a size of the input."""

    place: str
    """The node, as messages name it."""
    size: Dim
    """The size."""
    copied: Dim
    """What it would be in its place."""


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What the steps of a program do for given sizes."""

    calls: Sequence[step_table.KernelCall]
    """The calls of kernels."""
    broken: Mapping[int, SardonyxError]
    """The errors of steps that cannot run with these sizes, and refuse when a run comes to them."""
    blocks: Sequence[int]
    """Where memory is fenced, the bytes of each place in the arena."""
    offsets: Sequence[int]
    """Where each place in the arena begins."""
    arena_bytes: int
    """How large the arena is."""


class Planner:
    """Binds the steps of a program; any number of threads may do so at a time."""

    def __init__(
        self,
        storage: Storage,
        shapes: Sequence[Shape],
        outputs: Sequence[Buffer],
        kernels: Mapping[str, int],
        runner: Driver,
        threads: int,
        not_zero: Sequence[NotZero] = (),
    ) -> None:
        """Have bound nothing yet.

        Args:
            storage: where all buffers lie, and the steps.
            shapes: of the program's inputs, as it was compiled.
            outputs: the buffers of its outputs.
            kernels: the address of each kernel.
            runner: the driver.
            threads: how many threads a run may use.
            not_zero: sizes that were inferred as if they were not 0.
        """
        self.storage = storage
        self.outputs = list(outputs)
        self._shapes = shapes
        self._outputs_alike = first_alike([(buffer.dtype, buffer.shape, buffer.count) for buffer in outputs])
        self._kernels, self._driver, self._threads, self._not_zero = kernels, runner, threads, not_zero
        self._constants = _FencedConstants(storage) if guards_memory() else None
        used = {buffer: None for step in checked(storage.steps) for buffer in step.buffers}
        fixed = (buffer for buffer in used if buffer.base is None and storage.homes[buffer][0] is not Home.ARENA)
        self._fixed = {buffer: self._place(buffer, (), Sizes({})) for buffer in fixed}
        is_plain = self._constants is None and not storage.flow.has_bodies
        self.rebinder = Rebinder(storage, kernels) if is_plain else None
        """What makes bindings of those before; None where memory is fenced, or steps lie in bodies."""

    def bind(self, sizes: Sizes, *, flush: bool) -> Bound:
        """Return the binding for these sizes; with `flush` its runs compute with zeros for denormal numbers.

        Raises:
            InvalidArgument: a step that runs in any case cannot work with them.
        """
        if self.rebinder is not None:
            placed = self.rebinder.bind(sizes, self.address, lambda steps: self.table_of(steps, flush=flush), self.dims)
            places = placed.places
            tables = Tables(placed.table, self._driver, [], sizes, {}, places)
            return Bound(self.specs(sizes), places.arena_bytes, tables, self._counted(places.offsets, sizes))
        plan = self.plan(sizes)
        tables = Tables(self.table_of(plan.calls, flush=flush), self._driver, plan.blocks, sizes, plan.broken)
        return Bound(self.specs(sizes), plan.arena_bytes, tables, self._counted(plan.offsets, sizes))

    def plan(self, sizes: Sizes) -> Plan:
        """Return what all steps do for these sizes, without regard to other bindings; raises as `bind` does."""
        planned, broken = plan_steps(self.storage, sizes)
        empty = impossible_buffers(self.storage.steps, broken, sizes)
        blocks: list[int] = []
        if self._constants is None:
            offsets, arena_bytes = self.storage.arena(sizes, empty)
        else:
            blocks = self.storage.blocks(sizes, empty)
            offsets, arena_bytes = [block.first for block in place_fenced(blocks)], 0
        calls = []
        for step, (params, tasks) in zip(self.storage.steps, planned, strict=True):
            buffers = [self.address(buffer, offsets, sizes) for buffer in step.buffers]
            calls.append(step_table.KernelCall(self._kernels[step.symbol], buffers, params, tasks, step.together, step.scalars))
        for index in broken:
            pointers = [step_table.Buffer(step_table.STATUS)] * max(len(calls[index].buffers), 1)
            calls[index] = step_table.KernelCall(self._driver.refusal, pointers, (), 1)
        return Plan(calls, broken, blocks, offsets, arena_bytes)

    def has_long_task(self, sizes: Sizes, tasks_of: Sequence[int]) -> bool:
        """Return whether a task reads and writes so much that nobody should have to wait for it.

        Constants may be read in part. Tasks that go on with what those before have made may differ much: they count as a few.
        """
        for step, tasks in zip(self.storage.steps, tasks_of, strict=True):
            used = (buffer for buffer in step.buffers if buffer.root.constant is None)
            alike = min(tasks, _UNLIKE_TASKS) if step.together else tasks
            if tasks and sum(sizes.product(buffer.shape) for buffer in used) > _LONG_TASK_ELEMENTS * alike:
                return True
        return False

    def address(self, buffer: Buffer, offsets: Sequence[int], sizes: Sizes) -> step_table.Buffer:
        """Return where a buffer is, where the places in the arena have these offsets."""
        return self._fixed.get(buffer) or self._place(buffer, offsets, sizes)

    def table_of(self, steps: Sequence[step_table.KernelCall], *, flush: bool = False) -> StepTable:
        """Return a table of steps; with `flush` its runs compute with zeros for denormal numbers."""
        bases = FIRST_INPUT - 1 + len(self._shapes) + len(self.outputs)
        return StepTable(steps, bases, threads=self._threads, flush=flush)

    def dims(self, sizes: Sizes) -> Dims:
        """Return the sizes of all inputs in a row, and of each output; raises TypeError where one is 0 that must not be."""
        for item in self._not_zero:
            if not sizes(item.size):
                raise TypeError(f"{item.place}: a size of its target shape is 0")
        known = sizes.symbols.keys()
        inputs = [sizes(dim) if symbols_in(dim) <= known else None for shape in self._shapes for dim in shape]
        return inputs, [[sizes(dim) for dim in buffer.shape] for buffer in self.outputs]

    def specs(self, sizes: Sizes) -> tuple[TensorSpec | None, ...]:
        """Return what outputs are, None for those whose size only the run shows."""
        specs: list[TensorSpec | None] = []
        for place, (buffer, first) in enumerate(zip(self.outputs, self._outputs_alike, strict=True)):
            if first < place:
                specs.append(specs[first])
            else:
                specs.append(TensorSpec(buffer.dtype, sizes.shape(buffer.shape)) if buffer.count is None else None)
        return tuple(specs)

    def _counted(self, offsets: Sequence[int], sizes: Sizes) -> tuple[CountedOutput, ...]:
        """Return where outputs lie whose size only the run shows."""
        place = self.storage.tenant_of
        return tuple(
            CountedOutput(number, TensorSpec(buffer.dtype, sizes.shape(buffer.shape)), buffer.counted, offsets[place(buffer.count)])
            for number, buffer in enumerate(self.outputs)
            if buffer.count is not None
        )

    def _place(self, buffer: Buffer, offsets: Sequence[int], sizes: Sizes) -> step_table.Buffer:
        root, offset_bytes = buffer, 0
        while root.base is not None:
            offset_bytes += sizes(root.offset) * item_bytes(root.dtype)
            root = root.base
        home, index = self.storage.homes[root]
        if home is Home.CONSTANT:
            assert root.constant is not None
            address = address_of(root.constant) if self._constants is None else self._constants.address_of(root)
            return step_table.Buffer(ABSOLUTE, address + offset_bytes)
        if home is Home.STATUS:
            return step_table.Buffer(step_table.STATUS)
        if home is Home.RANDOM_SOURCE:
            return step_table.Buffer(ABSOLUTE, random_source.address)
        if home is Home.ARENA:
            return step_table.Buffer(ARENA, offsets[index] + offset_bytes)
        first = FIRST_INPUT if home is Home.INPUT else FIRST_INPUT + len(self._shapes)
        return step_table.Buffer(first + index, offset_bytes)


class _FencedConstants:
    """The constants of a program, each before an unmapped page."""

    def __init__(self, storage: Storage) -> None:
        homes = storage.homes
        arrays = {buffer: buffer.constant for buffer in homes if homes[buffer][0] is Home.CONSTANT and buffer.constant is not None}
        self._fence = Fence.of_constants(list(arrays.values()))
        self._places = {buffer: index for index, buffer in enumerate(arrays)}

    def address_of(self, buffer: Buffer) -> int:
        """Return where a constant is."""
        return self._fence.address_of(self._places[buffer])
