"""The dataflow executor: whatever is ready runs, first what the longest way to the end begins with; in the calling thread.

Its run is shared by the parallel executor, whose threads take from the same queue.
"""

from __future__ import annotations

import functools
import heapq
import threading
from collections.abc import Callable, Collection, Sequence

from sardonyx.cancellation import Flag
from sardonyx.dtypes import OnnxValue
from sardonyx.provider import DeviceBuffer, check_cancelled
from sardonyx.runtime.bind import Binding, BoundStep
from sardonyx.runtime.bind_regions import region_binder
from sardonyx.runtime.dependencies import find_dependencies, reads_of, writes_of
from sardonyx.runtime.executor_memory import ExecutorMemory, executor_memory
from sardonyx.runtime.memory import ArenaPool, arena_pools
from sardonyx.runtime.plan import CopyStep, Plan, Step
from sardonyx.runtime.result_memory import ResultMemory
from sardonyx.runtime.run_step import copy, place_targets, run_program, run_trivial, shape_of

__all__ = ["DataflowExecutor", "DataflowRun"]


class DataflowExecutor:
    """Runs a plan in the order in which values become ready; any number of threads may run it at a time."""

    def __init__(self, plan: Plan, shared: ArenaPool | None = None) -> None:
        """Make an executor of `plan`, with empty tables and, where it has none of its own, `shared` arenas of the host."""
        self.plan, self.shared = plan, shared
        self.order = find_dependencies(plan)
        self._results = ResultMemory(len(plan.outputs))
        self.binder = region_binder(plan, self.order, self._results)
        self.pools = arena_pools(plan, shared)
        self._template: list[OnnxValue] = [None] * plan.slot_count
        for slot, array in plan.constants:
            self._template[slot] = array

    def maker(self) -> Callable[[], DataflowExecutor]:
        """Return what makes executors of the same plan that keep nothing of runs yet, and keeps nothing of this one's."""
        return functools.partial(DataflowExecutor, self.plan, self.shared)

    def rank(self, index: int) -> int:
        """Return how early a step should run: of those that are ready the one with the highest goes first. Asked once of each."""
        return self.order.ranks[index]

    @functools.cached_property
    def ranks(self) -> tuple[int, ...]:
        """The `rank` of each step."""
        return tuple(map(self.rank, range(len(self.plan.steps))))

    @property
    def shares(self) -> Collection[tuple[int, int]]:
        """(output, input), by number, that may be one and the same array."""
        return self.plan.shares

    def run(
        self, inputs: Sequence[OnnxValue], captures: Sequence[OnnxValue] = (), targets: Sequence[OnnxValue] = ()
    ) -> list[OnnxValue]:
        """Compute the graph's outputs, on the host; see `Executor.run`."""
        frame = self._frame(inputs, captures)
        if targets:
            place_targets(self.plan, frame, targets)
        return self._work(DataflowRun(self, frame))

    def trim(self, *, arenas_only: bool = False) -> int:
        """Give back idle arenas and blocks of results, and bindings unless told otherwise; returns the bytes of the memory."""
        if not arenas_only:
            self.binder.clear()
        return sum(pool.trim() for pool in self.pools.values()) + self._results.trim()

    def memory(self) -> ExecutorMemory:
        """Return what it keeps between runs."""
        return executor_memory(self.plan, self.pools, self._results, self.binder.known())

    def _frame(self, inputs: Sequence[OnnxValue], captures: Sequence[OnnxValue]) -> list[OnnxValue]:
        frame = self._template.copy()
        for slot, value in zip(self.plan.inputs, inputs, strict=True):
            frame[slot] = value
        for slot, value in zip(self.plan.captures, captures, strict=True):
            frame[slot] = value
        return frame

    def _work(self, run: DataflowRun) -> list[OnnxValue]:
        run.work()
        return run.results()


class DataflowRun:
    """One run: what is ready, what has been read how often, and the arenas in use. Threads may `work` on it together."""

    def __init__(self, executor: DataflowExecutor, frame: list[OnnxValue]) -> None:
        """Make a run of which nothing has been done."""
        order = executor.order
        self._executor, self._plan, self._order, self._frame = executor, executor.plan, order, frame
        self._changed = threading.Condition(threading.Lock())
        self._waits = list(order.waits)
        self._unread = [readers.bit_count() for readers in order.readers]
        self._ranks = executor.ranks
        self._ready = [(-self._ranks[index], index) for index, count in enumerate(order.waits) if not count]
        heapq.heapify(self._ready)
        self._shapes: dict[int, tuple[int, ...] | None] = {
            slot: shape_of(frame[slot]) for slot, maker in enumerate(order.makers) if maker < 0
        }
        self._sizes: dict[int, BoundStep | None] = {}
        self._bindings: list[Binding | None] = [None] * len(order.regions)
        self._arenas: list[dict[str, tuple[int, DeviceBuffer]] | None] = [None] * len(order.regions)
        self._undone = [len(region.steps) for region in order.regions]
        self._running = 0
        self._failures: list[tuple[int, BaseException]] = []
        self.interrupted = Flag()
        """Set where one of its threads was interrupted, which ends the steps of the others."""

    def abandon(self, error: BaseException) -> None:
        """Let no thread begin another step, and end those that are under way: the thread that waits for them was interrupted."""
        self.interrupted.set(True)
        with self._changed:
            self._failures.append((-1, error))
            self._changed.notify_all()

    def work(self) -> None:
        """Run steps until none is left, or one failed. The last one to leave finds nothing running."""
        while True:
            index = self._take()
            if index is None:
                return
            failure: BaseException | None = None
            try:
                check_cancelled()
                self._run(index)
            except BaseException as error:  # noqa: BLE001  raised again by `results`
                failure = error
                if not isinstance(error, Exception):
                    self.interrupted.set(True)
            self._finish(index, failure)

    def results(self) -> list[OnnxValue]:
        """Return the outputs; raises what the first failed step of the plan raised.

        To be called when nothing is running any more.
        """
        with self._changed:
            failures, self._failures, self._ready = self._failures, [], []
        if failures:
            for number in range(len(self._arenas)):
                self._give_back(number)
            raise min(failures, key=lambda item: (isinstance(item[1], Exception), item[0]))[1]
        return [self._frame[slot] for slot in self._plan.outputs]

    def _take(self) -> int | None:
        """Return the ready step of the highest rank; waits for one where others are running. None where there will be none."""
        with self._changed:
            while self._running and (self._failures or not self._ready):
                self._changed.wait()
            if self._failures or not self._ready:
                return None
            _, index = heapq.heappop(self._ready)
            self._running += 1
            return index

    def _run(self, index: int) -> None:
        step = self._plan.steps[index]
        if isinstance(step, CopyStep):
            copy(step, self._frame)
            return
        number = self._order.region_of[index]
        if self._order.regions[number].trivial:
            run_trivial(step, self._frame)
            return
        with self._changed:
            binding = self._bindings[number] or self._bind(number)
            arenas = self._arenas[number]
            if arenas is None:
                borrowed = {name: self._executor.pools[name].borrow(size) for name, size in binding.arena_bytes.items()}
                arenas = self._arenas[number] = borrowed
            sizes = self._sizes[index]
        if sizes is None:
            raise ValueError("a program's step has sizes")
        run_program(step, sizes, self._frame, arenas)

    def _finish(self, index: int, failure: BaseException | None) -> None:
        step, number = self._plan.steps[index], self._order.region_of[index]
        with self._changed:
            self._running -= 1
            if failure is not None:
                self._failures.append((index, failure))
            else:
                for slot in writes_of(step):
                    self._shapes.setdefault(slot, shape_of(self._frame[slot]))
                self._free(step)
                self._undone[number] -= 1
                if not self._undone[number]:
                    self._give_back(number)
                for follower in self._order.followers[index]:
                    self._waits[follower] -= 1
                    if not self._waits[follower]:
                        heapq.heappush(self._ready, (-self._ranks[follower], follower))
            self._changed.notify_all()

    def _free(self, step: Step) -> None:
        for slot in {*reads_of(step)}:
            self._unread[slot] -= 1
        for slot in (*reads_of(step), *writes_of(step)):
            if not self._unread[slot] and slot in self._order.freed:
                self._frame[slot] = None

    def _bind(self, number: int) -> Binding:
        """Fix the sizes of a region, and before that of the regions that its values come from."""
        region = self._order.regions[number]
        for slot in region.entries:
            if slot not in self._shapes:
                self._bind(self._order.region_of[self._order.makers[slot]])
        binding = self._executor.binder.find(region, tuple(self._shapes[slot] for slot in region.entries))
        for index, sizes in zip(region.steps, binding.steps, strict=True):
            step = self._plan.steps[index]
            self._sizes[index] = sizes
            if isinstance(step, CopyStep):
                self._shapes[step.target] = self._shapes[step.source]
            elif sizes is not None and not step.program.makes_outputs:
                specs = zip(step.outputs, sizes.bound.outputs, strict=True)
                self._shapes.update((slot, spec.shape) for slot, spec in specs if spec is not None)
        self._bindings[number] = binding
        return binding

    def _give_back(self, number: int) -> None:
        arenas = self._arenas[number]
        self._arenas[number] = None
        for name, arena in (arenas or {}).items():
            self._executor.pools[name].give_back(arena)
