"""A partition compiled to a table of kernel calls: binding fills in numbers, running is one native call."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.arena import PlacedBlock
from sardonyx.cancellation import Cancellation, checked, current_cancellation
from sardonyx.codegen.run import driver
from sardonyx.codegen.run.driver import Call, Driver, StepTable
from sardonyx.codegen.run.jit import Engine
from sardonyx.config import guards_memory
from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import InvalidArgument, SardonyxError, SizesNotInferred, locating
from sardonyx.held_memory import HeldKind, HeldMemory, held_array
from sardonyx.ir import Dim, Shape, Value
from sardonyx.ir.shape import symbols_in
from sardonyx.native_program import NativeCall, NativeGrowth, TimedCall
from sardonyx.provider import Bound, CountedOutput, DeviceBuffer, StepInfo, TensorSpec, TimedRun
from sardonyx.providers.cpu.addresses import address_of
from sardonyx.providers.cpu.counted import cut_to_size, with_room
from sardonyx.providers.cpu.growing import growth_of
from sardonyx.providers.cpu.guard import Fence, place_fenced
from sardonyx.providers.cpu.library import timed_driver_for
from sardonyx.providers.cpu.placed import ArenaPlaces
from sardonyx.providers.cpu.planning import impossible_buffers, plan_steps
from sardonyx.providers.cpu.rebind import Rebinder
from sardonyx.providers.cpu.recording import Dims
from sardonyx.providers.cpu.sizes import Sizes, first_alike, solve
from sardonyx.providers.cpu.steps import STATUS, Buffer, KernelLaunch
from sardonyx.providers.cpu.storage import Home, Storage, item_bytes

if TYPE_CHECKING:
    from sardonyx.codegen.run.timed_driver import TimedDriver

__all__ = ["CpuProgram"]

_ARENA, _ABSOLUTE, _FIRST_INPUT = 1, 2, 3
"""Bases of a step table: the arena, addresses as they are (constants), then the inputs, then the outputs."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Table:
    """A step table with its call; one run uses it at a time."""

    table: StepTable
    call: Call


@dataclasses.dataclass(frozen=True, slots=True)
class NotZero:
    """A size of a Reshape's result that was inferred as if it were not 0: a 0 in the target shape copies a size of the input."""

    place: str
    """The node, as messages name it."""
    size: Dim
    """The size."""
    copied: Dim
    """What it would be in its place."""


class CpuProgram:
    """Runs a partition; any number of threads may bind and run it at a time."""

    def __init__(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Buffer],
        storage: Storage,
        kernels: Mapping[str, int],
        engines: Sequence[Engine],
        runner: Driver,
        threads: int,
        packs: Sequence[Array] = (),
    ) -> None:
        """Make a program of lowered steps.

        Args:
            inputs: the partition's inputs; those that no step reads tell sizes.
            outputs: the buffers of its outputs.
            storage: where all buffers lie, and the steps.
            kernels: the address of each kernel.
            engines: what holds the kernels, kept alive.
            runner: the driver.
            threads: how many threads a run may use.
            packs: the weights that were packed for it, in order.
        """
        self.packs = packs
        self.flushes_denormals = False
        """Whether runs compute with zeros for denormal numbers; what is bound before stays as it was."""
        self.lies_in_one_block = False
        """Whether its constants are parts of one block of memory, which is nobody else's."""
        self.precisions: Sequence[str] = ()
        """What operands of products are multiplied in: see `SaysPrecisions`."""
        self.not_zero: Sequence[NotZero] = ()
        """Sizes that were inferred as if they were not 0."""
        self._names = [value.name or "an inner value" for value in inputs]
        self._shapes: list[Shape] = [value.shape or () for value in inputs]
        self._alike = first_alike(self._shapes)
        self._outputs = list(outputs)
        self._outputs_alike = first_alike([(buffer.dtype, buffer.shape, buffer.count) for buffer in outputs])
        self.makes_outputs = self.binds_shapes = any(buffer.count is not None for buffer in outputs)
        self._storage = storage
        self._kernels = kernels
        self._engines = engines
        self._driver = runner
        self._threads = threads
        self._constants = _FencedConstants(storage) if guards_memory() else None
        used = {buffer: None for step in checked(storage.steps) for buffer in step.buffers}
        fixed = (buffer for buffer in used if buffer.base is None and storage.homes[buffer][0] is not Home.ARENA)
        self._fixed = {buffer: self._place(buffer, (), Sizes({})) for buffer in fixed}
        is_plain = self._constants is None and not storage.flow.has_bodies
        self._rebinder = Rebinder(storage, kernels) if is_plain else None
        self.shares = frozenset() if storage.flow.has_bodies else _shares(storage)
        """Which outputs may lie in the memory of which inputs, by number."""

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...], known: Mapping[str, int] | None = None) -> Bound:
        """Fix all sizes for inputs of these shapes, and symbols that these do not show.

        Raises:
            InvalidArgument: they contradict what was compiled, or a step that runs in any case cannot work with them.
        """
        sizes = solve(self._names, self._shapes, shapes, known, self._alike)
        for item in self.not_zero:
            if not sizes(item.size) and sizes(item.copied):
                raise SizesNotInferred(
                    f"{item.place}: a size of its target shape is 0, which copies {sizes(item.copied)} of its input; give the "
                    "session a path, or bytes of at most a MiB, from which it can build the model for that"
                )
        if self._rebinder is not None:
            placed = self._rebinder.bind(sizes, self._address, self._table_of, self._dims)
            places = placed.places
            tables = _Tables(placed.table, self._driver, [], sizes, {}, places)
            return Bound(self._specs(sizes), places.arena_bytes, tables, self._counted(places.offsets, sizes))
        planned, broken = plan_steps(self._storage, sizes)
        empty = impossible_buffers(self._storage.steps, broken, sizes)
        blocks: list[int] = []
        if self._constants is None:
            offsets, arena_bytes = self._storage.arena(sizes, empty)
        else:
            blocks = self._storage.blocks(sizes, empty)
            offsets, arena_bytes = [block.first for block in place_fenced(blocks)], 0
        steps = []
        for step, (params, tasks) in zip(self._storage.steps, planned, strict=True):
            buffers = [self._address(buffer, offsets, sizes) for buffer in step.buffers]
            steps.append(driver.KernelCall(self._kernels[step.symbol], buffers, params, tasks, step.together, step.scalars))
        for index in broken:
            pointers = [driver.Buffer(driver.STATUS)] * max(len(steps[index].buffers), 1)
            steps[index] = driver.KernelCall(self._driver.refusal, pointers, (), 1)
        tables = _Tables(self._table_of(steps), self._driver, blocks, sizes, broken)
        return Bound(self._specs(sizes), arena_bytes, tables, self._counted(offsets, sizes))

    def _dims(self, sizes: Sizes) -> Dims:
        """Return the sizes of all inputs in a row, and of each output; raises TypeError where one is 0 that must not be."""
        for item in self.not_zero:
            if not sizes(item.size):
                raise TypeError(f"{item.place}: a size of its target shape is 0")
        known = sizes.symbols.keys()
        inputs = [sizes(dim) if symbols_in(dim) <= known else None for shape in self._shapes for dim in shape]
        return inputs, [[sizes(dim) for dim in buffer.shape] for buffer in self._outputs]

    def _address(self, buffer: Buffer, offsets: Sequence[int], sizes: Sizes) -> driver.Buffer:
        return self._fixed.get(buffer) or self._place(buffer, offsets, sizes)

    def _table_of(self, steps: Sequence[driver.KernelCall]) -> StepTable:
        bases = _FIRST_INPUT - 1 + len(self._shapes) + len(self._outputs)
        return StepTable(steps, bases, threads=self._threads, flush=self.flushes_denormals)

    def _specs(self, sizes: Sizes) -> tuple[TensorSpec | None, ...]:
        """Return what outputs are, None for those whose size only the run shows."""
        specs: list[TensorSpec | None] = []
        for place, (buffer, first) in enumerate(zip(self._outputs, self._outputs_alike, strict=True)):
            if first < place:
                specs.append(specs[first])
            else:
                specs.append(TensorSpec(buffer.dtype, sizes.shape(buffer.shape)) if buffer.count is None else None)
        return tuple(specs)

    def _counted(self, offsets: Sequence[int], sizes: Sizes) -> tuple[CountedOutput, ...]:
        """Return where outputs lie whose size only the run shows."""
        place = self._storage.tenant_of
        return tuple(
            CountedOutput(number, TensorSpec(buffer.dtype, sizes.shape(buffer.shape)), buffer.counted, offsets[place(buffer.count)])
            for number, buffer in enumerate(self._outputs)
            if buffer.count is not None
        )

    def run(
        self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer
    ) -> Sequence[OnnxValue]:
        """Run all steps in one native call, without the GIL; it pauses where the run may have been ended, or Python has signals."""
        return self._execute(bound, inputs, outputs, scratch, None, None)

    def run_timed(self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer) -> TimedRun:
        """Run all steps in one native call, which notes how long each of them takes."""
        return self.execute(bound, inputs, outputs, scratch, None, timed=True)

    def execute(
        self,
        bound: Bound,
        inputs: Sequence[OnnxValue],
        outputs: Sequence[OnnxValue],
        scratch: DeviceBuffer,
        asked: Callable[[], object] | None,
        *,
        timed: bool,
    ) -> TimedRun:
        """Run all steps as `run` or `run_timed` does; `asked` is called whenever a loop has filled the room of its scan outputs."""
        times = self._timed.new_times(len(self._storage.steps)) if timed and self._timed is not None else None
        results = self._execute(bound, inputs, outputs, scratch, times, asked)
        if times is not None and self._timed is not None and self._storage.flow.has_bodies:
            times = self._timed.in_line(times)
        return TimedRun(results, times, bound.data.sizes.symbols)

    @property
    def _timed(self) -> TimedDriver | None:
        return timed_driver_for(self._driver.target)

    def describe_steps(self) -> list[StepInfo]:
        """Return the kernels in the order in which they run."""
        homes = self._storage.homes
        uses = collections.Counter(root for step in self._storage.steps for root in {buffer.root for buffer in step.buffers})
        workspaces = {root for root, count in uses.items() if count == 1 and root in homes and homes[root][0] is not Home.OUTPUT}
        return [_described(step, workspaces) for step in self._storage.steps]

    def _execute(
        self,
        bound: Bound,
        inputs: Sequence[OnnxValue],
        outputs: Sequence[OnnxValue],
        scratch: DeviceBuffer,
        times: Array | None,
        asked: Callable[[], object] | None,
    ) -> Sequence[OnnxValue]:
        given = [array if array.flags.c_contiguous else np.ascontiguousarray(array) for array in inputs]
        tables: _Tables = bound.data
        filled = with_room(bound.counted, outputs) if bound.counted else outputs
        if self._constants is not None:
            scratch = self._run_fenced(tables, given, filled, times, asked)
        else:
            arena = 0 if scratch is None else address_of(scratch)
            self._call(tables, [arena, 0, *map(address_of, given), *map(address_of, filled)], times, asked)
        return cut_to_size(bound.counted, filled, scratch) if bound.counted else outputs

    def native_call(self, bound: Bound) -> NativeCall | None:
        """Return a call of the driver with a table of its own; None where memory is fenced."""
        if self._constants is not None:
            return None
        tables: _Tables = bound.data
        table = tables.copy()
        function, resume = self._driver.native(table)
        return NativeCall(function, table.address, table.bases_address, (table, self), resume)

    def native_timed_call(self, bound: Bound) -> TimedCall | None:
        """Return a call that notes the times of steps; None where memory is fenced, or no clock is known."""
        timed = self._timed
        if timed is None or self._constants is not None:
            return None
        tables: _Tables = bound.data
        entry = timed.native(tables.copy(), len(self._storage.steps), in_line=self._storage.flow.has_bodies)
        call = NativeCall(entry.run, entry.address, entry.bases_address, (entry, self), entry.resume)
        return TimedCall(call, entry.take_times, tables.sizes.symbols)

    def native_growth(self, bound: Bound) -> NativeGrowth | None:
        """Return how native calls for `bound` serve other sizes too; None where binding them takes Python."""
        tables: _Tables = bound.data
        if self._rebinder is None or tables.places is None or bound.counted:
            return None
        recording = self._rebinder.recording(tables.sizes.symbols)
        return None if recording is None else growth_of(recording, tables.places)

    def _call(self, tables: _Tables, bases: Sequence[int], times: Array | None, asked: Callable[[], object] | None = None) -> None:
        entry, cancellation = tables.take(), current_cancellation()
        call: Call = entry.call if times is None else self._timed_call(entry.table, times)
        try:
            entry.table.set_bases(bases)
            failed = call(0, None, asked) if cancellation is None else self._call_until(call, entry.table, cancellation, asked)
            if failed >= 0:
                raise tables.broken.get(failed) or self._failure(failed, entry.table.status)
        finally:
            tables.give_back(entry)

    def _call_until(self, call: Call, table: StepTable, cancellation: Cancellation, asked: Callable[[], object] | None) -> int:
        """Run all steps unless the run is ended; the error says in which step it was."""
        cancellation.check()

        def check() -> None:
            with locating(f"in {self._storage.steps[table.step].place}"):
                cancellation.check()

        return call(cancellation.address, check, asked)

    def _timed_call(self, table: StepTable, times: Array) -> Call:
        assert self._timed is not None  # else there is no array for times
        return self._timed.prepare(table, address_of(times))

    def _run_fenced(
        self,
        tables: _Tables,
        inputs: Sequence[Array],
        outputs: Sequence[OnnxValue],
        times: Array | None,
        asked: Callable[[], object] | None,
    ) -> Array:
        """Run on copies of inputs and outputs with unmapped pages around each, and around each place in the arena.

        Returns:
            The arena.
        """
        arrays, first = [*inputs, *outputs], len(tables.blocks)
        fence = Fence([*tables.blocks, *(array.nbytes for array in arrays)])
        for index, array in enumerate(inputs, first):
            fence.fill(index, array)

        def fetch() -> None:
            fence.check()
            for index, array in enumerate(outputs, first + len(inputs)):
                fence.copy_to(index, array)

        def answer() -> None:
            fetch()
            if asked is not None:
                asked()

        bases = [fence.address, 0, *(fence.address_of(first + index) for index in range(len(arrays)))]
        self._call(tables, bases, times, None if asked is None else answer)
        fetch()
        return fence.bytes

    @property
    def storage(self) -> Storage:
        """The steps, and where their buffers lie."""
        return self._storage

    @property
    def inputs(self) -> list[tuple[str, Shape]]:
        """What messages call each input, and its shape as it was compiled."""
        return list(zip(self._names, self._shapes, strict=True))

    @property
    def outputs(self) -> Sequence[Buffer]:
        """The buffers of the outputs."""
        return self._outputs

    @property
    def output_count(self) -> int:
        """How many outputs it fills."""
        return len(self._outputs)

    @property
    def steps(self) -> list[str]:
        """The kernels in the order in which they run, for reports."""
        return [f"{step.name}: {step.symbol}" for step in self._storage.steps]

    @property
    def step_labels(self) -> list[str]:
        """The operators that each kernel computes, and the node that it is called by."""
        steps = self._storage.steps
        return [f"{step.name}: {step.place}" if "+" in step.name else step.place or step.name for step in steps]

    def memory_blocks(self, shapes: tuple[tuple[int, ...] | None, ...]) -> list[PlacedBlock]:
        """Return what lies in the arena and when, for inputs of these shapes."""
        return self._storage.placed(solve(self._names, self._shapes, shapes))

    def memory_held(self) -> list[HeldMemory]:
        """Return the blocks of its constants and its machine code."""
        packs = {id(pack) for pack in self.packs}
        arrays = [buffer.constant for buffer in self._storage.homes if buffer.constant is not None]
        kinds = [HeldKind.PACKED_WEIGHTS if id(array) in packs else HeldKind.WEIGHTS for array in arrays]
        if self.lies_in_one_block:  # all of the block is counted, part by part
            constants = [HeldMemory(kind, address_of(array), array.nbytes) for array, kind in zip(arrays, kinds, strict=True)]
        else:
            constants = [held_array(array, kind) for array, kind in zip(arrays, kinds, strict=True)]
        return [*constants, *(block for engine in self._engines for block in engine.memory)]

    def binding_bytes(self, bound: Bound) -> int:
        """Return the bytes of the step tables of a binding."""
        tables: _Tables = bound.data
        return tables.size_bytes

    def _place(self, buffer: Buffer, offsets: Sequence[int], sizes: Sizes) -> driver.Buffer:
        root, offset_bytes = buffer, 0
        while root.base is not None:
            offset_bytes += sizes(root.offset) * item_bytes(root.dtype)
            root = root.base
        home, index = self._storage.homes[root]
        if home is Home.CONSTANT:
            assert root.constant is not None
            address = address_of(root.constant) if self._constants is None else self._constants.address_of(root)
            return driver.Buffer(_ABSOLUTE, address + offset_bytes)
        if home is Home.STATUS:
            return driver.Buffer(driver.STATUS)
        if home is Home.ARENA:
            return driver.Buffer(_ARENA, offsets[index] + offset_bytes)
        first = _FIRST_INPUT if home is Home.INPUT else _FIRST_INPUT + len(self._shapes)
        return driver.Buffer(first + index, offset_bytes)

    def _failure(self, index: int, status: int) -> InvalidArgument:
        step = self._storage.steps[index]
        if step.failure:
            return InvalidArgument(f"{step.place}: {step.failure.format(status - 1)}")
        return InvalidArgument(
            f"{step.place}: element {status - 1} of its indices is out of range; indices must lie within the "
            "axis that they count along, negative ones from its end"
        )


def _shares(storage: Storage) -> frozenset[tuple[int, int]]:
    """Return which outputs may lie in the memory of which inputs: every step that uses the input allows it."""
    found: dict[Buffer, set[Buffer]] = {}
    for step in checked(storage.steps):
        hosts: dict[Buffer, set[Buffer]] = {}
        for read, written in step.shares:
            hosts.setdefault(step.buffers[read].root, set()).add(step.buffers[written].root)
        for root in {buffer.root for buffer in step.buffers if storage.homes[buffer.root][0] is Home.INPUT}:
            found[root] = found.get(root, hosts.get(root, set())) & hosts.get(root, set())
    homes = storage.homes
    return frozenset(
        (homes[host][1], homes[root][1]) for root, hosts in found.items() for host in hosts if homes[host][0] is Home.OUTPUT
    )


def _described(step: KernelLaunch, workspaces: Set[Buffer]) -> StepInfo:
    """Return what a step does; what it writes into a workspace, which nothing else reads, is no output."""
    written = {id(step.buffers[index]) for index in step.writes}
    kinds: dict[str, dict[Buffer, tuple[DataType, Shape]]] = {"inputs": {}, "constants": {}, "outputs": {}}
    for buffer in step.buffers:
        if buffer is not STATUS and not (id(buffer) in written and buffer.root in workspaces):
            kind = "outputs" if id(buffer) in written else "inputs" if buffer.root.constant is None else "constants"
            kinds[kind][buffer] = (buffer.dtype, buffer.shape)
    found = {kind: tuple(specs.values()) for kind, specs in kinds.items()}
    return StepInfo(tuple(step.name.split("+")), step.symbol, step.nodes, **found)


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


class _Tables:
    """Copies of one table, so that concurrent runs have one each."""

    __slots__ = ("_driver", "_idle", "_table", "blocks", "broken", "places", "sizes")

    def __init__(
        self,
        table: StepTable,
        runner: Driver,
        blocks: Sequence[int],
        sizes: Sizes,
        broken: Mapping[int, SardonyxError],
        places: ArenaPlaces | None = None,
    ) -> None:
        self.blocks = blocks
        """Where memory is fenced, the bytes of each place in the arena."""
        self.sizes = sizes
        """What symbolic dimensions are in this binding."""
        self.broken = broken
        """The errors of steps that cannot run with these sizes."""
        self.places = places
        """Where temporaries are, in a binding that others may be made of."""
        self._table = table
        self._driver = runner
        self._idle: collections.deque[_Table] = collections.deque((_Table(table, runner.prepare(table)),), maxlen=8)

    @property
    def size_bytes(self) -> int:
        """How long the words of all copies are."""
        return self._table.size_bytes * max(len(self._idle), 1)

    def take(self) -> _Table:
        """Return an idle copy, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            table = self._table.copy()
            return _Table(table, self._driver.prepare(table))

    def copy(self) -> StepTable:
        """Return a copy for a caller of its own."""
        return self._table.copy()

    def give_back(self, entry: _Table) -> None:
        """Return what `take` gave."""
        self._idle.append(entry)
