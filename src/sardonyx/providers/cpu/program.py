"""A partition compiled to a table of kernel calls: binding fills in numbers, running is one native call."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.arena import PlacedBlock
from sardonyx.aside import call_aside, may_be_left
from sardonyx.cancellation import Cancellation, checked, current_cancellation
from sardonyx.codegen.run.driver import Call, Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import StepTable
from sardonyx.config import guards_memory
from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import InvalidArgument, SardonyxError, SizesNotInferred, located
from sardonyx.forks import new_lock
from sardonyx.held_memory import HeldKind, HeldMemory, held_array
from sardonyx.ir import Shape, Value
from sardonyx.native_program import NativeCall, NativeGrowth, TimedCall
from sardonyx.provider import Bound, DeviceBuffer, StepInfo, TimedRun
from sardonyx.providers.cpu.addresses import address_of
from sardonyx.providers.cpu.counted import cut_to_size, with_room
from sardonyx.providers.cpu.growing import growth_of
from sardonyx.providers.cpu.guard import Fence
from sardonyx.providers.cpu.library import timed_driver_for
from sardonyx.providers.cpu.planner import NotZero, Planner
from sardonyx.providers.cpu.ready import ReadyBinding
from sardonyx.providers.cpu.sizes import first_alike, solve
from sardonyx.providers.cpu.steps import RANDOM_SOURCE, STATUS, Buffer, KernelLaunch
from sardonyx.providers.cpu.storage import Home, Storage
from sardonyx.providers.cpu.tables import Tables

if TYPE_CHECKING:
    from sardonyx.codegen.run.timed_driver import TimedDriver

__all__ = ["CpuProgram", "Facts"]

_MUCH_BYTES = 1 << 24
"""How much memory a run works on in which a task may take long."""


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What a program says of itself before it is bound."""

    output_count: int
    """How many outputs it fills."""
    is_counted: bool
    """Whether it has outputs whose size only the run shows."""
    shares: frozenset[tuple[int, int]]
    """Which outputs may lie in the memory of which inputs, by number."""
    constants: Sequence[Array]
    """Its constants, packed weights among them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Linked:
    """A program in memory."""

    engines: Sequence[Engine]
    """What holds the kernels, kept alive."""
    runner: Driver
    """The driver."""
    make_planner: Callable[[], Planner]
    """Makes what binds its steps, when that is needed."""
    ready: ReadyBinding | None = None
    """A binding that needs no planner."""


class CpuProgram:
    """Runs a partition; any number of threads may bind and run it at a time."""

    def __init__(
        self,
        inputs: Sequence[Value],
        facts: Facts,
        link: Callable[[], Linked],
        packs: Sequence[Array] = (),
        not_zero: Sequence[NotZero] = (),
    ) -> None:
        """Make a program.

        Args:
            inputs: the partition's inputs; those that no step reads tell sizes.
            facts: what it says of itself.
            link: puts it into memory; is called once, when that is first needed.
            packs: the weights that were packed for it, in order.
            not_zero: sizes that were inferred as if they were not 0.
        """
        self.packs = packs
        self.flushes_denormals = False
        """Whether runs compute with zeros for denormal numbers; what is bound before stays as it was."""
        self.lies_in_one_block = False
        """Whether its constants are parts of one block of memory, which is nobody else's."""
        self.precisions: Sequence[str] = ()
        """What operands of products are multiplied in: see `SaysPrecisions`."""
        self.not_zero = not_zero
        """Sizes that were inferred as if they were not 0."""
        self.makes_outputs = self.binds_shapes = facts.is_counted
        self.shares = facts.shares
        """Which outputs may lie in the memory of which inputs, by number."""
        self._names = [value.name or "an inner value" for value in inputs]
        self._shapes: list[Shape] = [value.shape or () for value in inputs]
        self._alike = first_alike(self._shapes)
        self._facts, self._link = facts, link
        self._made: Linked | None = None
        self._planner: Planner | None = None
        self._lock = new_lock()
        self._is_fenced = guards_memory()
        self._short_bytes = _MUCH_BYTES

    @classmethod
    def of(
        cls,
        inputs: Sequence[Value],
        outputs: Sequence[Buffer],
        storage: Storage,
        kernels: Mapping[str, int],
        engines: Sequence[Engine],
        runner: Driver,
        threads: int,
        packs: Sequence[Array] = (),
        not_zero: Sequence[NotZero] = (),
    ) -> CpuProgram:
        """Return a program of lowered steps.

        Args:
            inputs: as of the class; so are `packs` and `not_zero`.
            outputs: the buffers of its outputs.
            storage: where all buffers lie, and the steps.
            kernels: the address of each kernel.
            engines: what holds the kernels.
            runner: the driver.
            threads: how many threads a run may use.
            packs: packed weights.
            not_zero: sizes.
        """
        planner = Planner(storage, [value.shape or () for value in inputs], outputs, kernels, runner, threads, not_zero)
        facts = Facts(
            len(outputs),
            any(buffer.count is not None for buffer in outputs),
            frozenset() if storage.flow.has_bodies else _shares(storage),
            [buffer.constant for buffer in storage.homes if buffer.constant is not None],
        )
        linked = Linked(engines, runner, lambda: planner)
        return cls(inputs, facts, lambda: linked, packs, not_zero)

    @property
    def planner(self) -> Planner:
        """What binds its steps; made when it is first needed."""
        found, linked = self._planner, self._linked
        if found is None:
            with self._lock:
                found = self._planner = self._planner or linked.make_planner()
        return found

    @property
    def _linked(self) -> Linked:
        found = self._made
        if found is None:
            with self._lock:
                found = self._made = self._made or self._link()
        return found

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
        linked = self._linked
        if linked.ready is not None and linked.ready.fits(sizes):
            return linked.ready.bind(sizes, linked.runner)
        return self.planner.bind(sizes, flush=self.flushes_denormals)

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
        times = self._timed.new_times(len(self.planner.storage.steps)) if timed and self._timed is not None else None
        results = self._execute(bound, inputs, outputs, scratch, times, asked)
        if times is not None and self._timed is not None and self.planner.storage.flow.has_bodies:
            times = self._timed.in_line(times)
        return TimedRun(results, times, bound.data.sizes.symbols)

    @property
    def _timed(self) -> TimedDriver | None:
        return timed_driver_for(self._linked.runner.target)

    def describe_steps(self) -> list[StepInfo]:
        """Return the kernels in the order in which they run."""
        homes = self.planner.storage.homes
        uses = collections.Counter(root for step in self.planner.storage.steps for root in {buffer.root for buffer in step.buffers})
        workspaces = {root for root, count in uses.items() if count == 1 and root in homes and homes[root][0] is not Home.OUTPUT}
        return [_described(step, workspaces) for step in self.planner.storage.steps]

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
        tables: Tables = bound.data
        filled = with_room(bound.counted, outputs) if bound.counted else outputs
        if self._is_fenced:
            scratch = self._run_fenced(tables, given, filled, times, asked)
        elif asked is None and self._is_left(tables, (*given, *filled), bound.scratch_bytes):
            work = functools.partial(self._call_with, tables, given, filled, scratch, times)
            call_aside(work, (*given, *filled, scratch))
        else:
            self._call_with(tables, given, filled, scratch, times, asked)
        return cut_to_size(bound.counted, filled, scratch) if bound.counted else outputs

    def _is_left(self, tables: Tables, arrays: Sequence[Array], scratch_bytes: int) -> bool:
        """Return whether a run that is ended does not wait for its task, which may take long; asks the steps where much is read."""
        if tables.has_long_task is None:
            size_bytes = sum([array.nbytes for array in arrays]) + scratch_bytes
            if size_bytes < self._short_bytes:
                tables.has_long_task = False
            else:
                self._asks_steps(tables)
                if not tables.has_long_task:
                    self._short_bytes = max(self._short_bytes, 2 * size_bytes)
        return tables.has_long_task is True and may_be_left(arrays)

    def _asks_steps(self, tables: Tables) -> bool:
        """Return whether a task may take long, after asking each step."""
        if tables.has_long_task is None:
            tables.has_long_task = self.planner.has_long_task(tables.sizes, tables.tasks)
        return tables.has_long_task

    def _call_with(
        self,
        tables: Tables,
        given: Sequence[Array],
        filled: Sequence[OnnxValue],
        scratch: DeviceBuffer,
        times: Array | None,
        asked: Callable[[], object] | None = None,
    ) -> None:
        arena = 0 if scratch is None else address_of(scratch)
        self._call(tables, [arena, 0, *map(address_of, given), *map(address_of, filled)], times, asked)

    def native_call(self, bound: Bound) -> NativeCall | None:
        """Return a call of the driver with a table of its own; None where memory is fenced, or a task may take long."""
        if self._is_fenced or self._asks_steps(bound.data):
            return None
        tables: Tables = bound.data
        table = tables.copy()
        function, resume = self._linked.runner.native(table)
        return NativeCall(function, table.address, table.bases_address, (table, self), resume)

    def native_timed_call(self, bound: Bound) -> TimedCall | None:
        """Return a call that notes the times of steps; None where memory is fenced, a task may take long, or no clock is known."""
        timed = self._timed
        if timed is None or self._is_fenced or self._asks_steps(bound.data):
            return None
        tables: Tables = bound.data
        entry = timed.native(tables.copy(), len(self.planner.storage.steps), in_line=self.planner.storage.flow.has_bodies)
        call = NativeCall(entry.run, entry.address, entry.bases_address, (entry, self), entry.resume)
        return TimedCall(call, entry.take_times, tables.sizes.symbols)

    def native_growth(self, bound: Bound) -> NativeGrowth | None:
        """Return how native calls for `bound` serve other sizes too; None where binding them takes Python."""
        tables: Tables = bound.data
        if tables.places is None or bound.counted or not tables.sizes.symbols or self.planner.rebinder is None:
            return None
        recording = self.planner.rebinder.recording(tables.sizes.symbols)
        return None if recording is None else growth_of(recording, tables.places)

    def _call(self, tables: Tables, bases: Sequence[int], times: Array | None, asked: Callable[[], object] | None = None) -> None:
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
            try:
                cancellation.check()
            except SardonyxError as error:
                raise located(error, f"in {self.planner.storage.steps[table.step].place}") from error

        return call(cancellation.address, check, asked)

    def _timed_call(self, table: StepTable, times: Array) -> Call:
        assert self._timed is not None  # else there is no array for times
        return self._timed.prepare(table, address_of(times))

    def _run_fenced(
        self,
        tables: Tables,
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
        return self.planner.storage

    @property
    def inputs(self) -> list[tuple[str, Shape]]:
        """What messages call each input, and its shape as it was compiled."""
        return list(zip(self._names, self._shapes, strict=True))

    @property
    def outputs(self) -> Sequence[Buffer]:
        """The buffers of the outputs."""
        return self.planner.outputs

    @property
    def output_count(self) -> int:
        """How many outputs it fills."""
        return self._facts.output_count

    @property
    def steps(self) -> list[str]:
        """The kernels in the order in which they run, for reports."""
        return [f"{step.name}: {step.symbol}" for step in self.planner.storage.steps]

    @property
    def step_labels(self) -> list[str]:
        """The operators that each kernel computes, and the node that it is called by."""
        steps = self.planner.storage.steps
        return [f"{step.name}: {step.place}" if "+" in step.name else step.place or step.name for step in steps]

    def memory_blocks(self, shapes: tuple[tuple[int, ...] | None, ...]) -> list[PlacedBlock]:
        """Return what lies in the arena and when, for inputs of these shapes."""
        return self.planner.storage.placed(solve(self._names, self._shapes, shapes))

    def memory_held(self) -> list[HeldMemory]:
        """Return the blocks of its constants and its machine code."""
        packs = {id(pack) for pack in self.packs}
        arrays = self._facts.constants
        constants = []
        for array in arrays:
            kind = HeldKind.PACKED_WEIGHTS if id(array) in packs else HeldKind.WEIGHTS
            if self.lies_in_one_block or id(array) in packs:  # of a block all that is written is counted, part by part
                constants.append(HeldMemory(kind, address_of(array), array.nbytes))
            else:
                constants.append(held_array(array, kind))
        return [*constants, *(block for engine in self._linked.engines for block in engine.memory)]

    def binding_bytes(self, bound: Bound) -> int:
        """Return the bytes of the step tables of a binding."""
        tables: Tables = bound.data
        return tables.size_bytes

    def _failure(self, index: int, status: int) -> InvalidArgument:
        step = self.planner.storage.steps[index]
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
        if buffer not in (STATUS, RANDOM_SOURCE) and not (id(buffer) in written and buffer.root in workspaces):
            kind = "outputs" if id(buffer) in written else "inputs" if buffer.root.constant is None else "constants"
            kinds[kind][buffer] = (buffer.dtype, buffer.shape)
    found = {kind: tuple(specs.values()) for kind, specs in kinds.items()}
    return StepInfo(tuple(step.name.split("+")), step.symbol, step.nodes, **found)
