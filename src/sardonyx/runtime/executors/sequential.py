"""The sequential executor: one step after another, in the calling thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import OnnxValue
from sardonyx.provider import HOST, DeviceBuffer, PlainProgram, check_cancelled
from sardonyx.runtime.bind import Binder, Binding, Shapes, segment_binder
from sardonyx.runtime.executor_memory import ExecutorMemory, executor_memory
from sardonyx.runtime.memory import ArenaPool, arena_pools
from sardonyx.runtime.plan import CopyStep, Plan, ProgramStep, Segment, Step, needs_no_shapes
from sardonyx.runtime.result_memory import ResultMemory
from sardonyx.runtime.run_step import call, copy, output_in, place_targets, run_program, run_trivial, shape_of

__all__ = ["OnlyProgram", "SequentialExecutor", "TailedProgram"]


@dataclasses.dataclass(frozen=True, slots=True)
class OnlyProgram:
    """A plan that is one program of the host from inputs to outputs; the slots of its inputs are their numbers."""

    step: ProgramStep
    """The program."""
    results: tuple[int, ...]
    """For each output of the plan which of the program's it is."""
    bind: Callable[[Shapes], Binding]
    """Fixes the sizes for the shapes of the program's inputs."""
    take: Callable[[int], DeviceBuffer]
    """Makes memory for the intermediate tensors of its runs, so many bytes, of what earlier runs left where it fits."""
    shares: Collection[tuple[int, int]] = ()
    """(output, input) of the plan, by number, that may be one and the same array."""


@dataclasses.dataclass(frozen=True, slots=True)
class TailedProgram:
    """A plan that is one program of the host, behind some that prepare its inputs, and before some that read its results alone."""

    head: OnlyProgram
    """The first program, with all of its results."""
    tail: tuple[tuple[Callable[..., OnnxValue], tuple[int, ...]], ...]
    """What makes the results of the others, one after another: functions, and the places of their arguments among all results."""
    results: tuple[int, ...]
    """For each output of the plan its place among all results, those of the first program in front."""
    front: tuple[tuple[Callable[..., OnnxValue], tuple[int, ...]], ...] = ()
    """What makes inputs of the head of those of the plan, one after another: functions, and the places of their arguments among the
    plan's inputs and all that is made before. The inputs of the head are places there too."""


class SequentialExecutor:
    """Runs a plan; any number of threads may run it at a time, each with arenas of its own."""

    def __init__(self, plan: Plan, shared: ArenaPool | None = None) -> None:
        """Make an executor of `plan`, with empty tables and, where it has none of its own, `shared` arenas of the host."""
        self._plan, self._shared = plan, shared
        self._results = ResultMemory(len(plan.outputs))
        self._binder = segment_binder(plan, self._results)
        self._pools = arena_pools(plan, shared)
        self._template: list[OnnxValue] = [None] * plan.slot_count
        for slot, array in plan.constants:
            self._template[slot] = array
        self.only = self._find_only()
        """The plan's only program, where it is one of the host from inputs to outputs."""

    def maker(self) -> Callable[[], SequentialExecutor]:
        """Return what makes executors of the same plan that keep nothing of runs yet, and keeps nothing of this one's."""
        return functools.partial(SequentialExecutor, self._plan, self._shared)

    @property
    def shares(self) -> Collection[tuple[int, int]]:
        """(output, input), by number, that may be one and the same array."""
        return self._plan.shares

    def run(
        self, inputs: Sequence[OnnxValue], captures: Sequence[OnnxValue] = (), targets: Sequence[OnnxValue] = ()
    ) -> list[OnnxValue]:
        """Compute the graph's outputs, on the host; see `Executor.run`."""
        plan = self._plan
        if self.only is not None:
            return self._run_only(self.only, inputs, targets)
        frame = self._template.copy()
        if targets:
            place_targets(plan, frame, targets)
        for slot, value in zip(plan.inputs, inputs, strict=True):
            frame[slot] = value
        for slot, value in zip(plan.captures, captures, strict=True):
            frame[slot] = value
        for segment in plan.segments:
            if segment.trivial:
                self._run_trivial(segment, frame)
            else:
                self._run_segment(segment, frame)
        return [frame[slot] for slot in plan.outputs]

    def trim(self, *, arenas_only: bool = False) -> int:
        """Give back idle arenas and blocks of results, and bindings unless told otherwise; returns the bytes of the memory."""
        if not arenas_only:
            self._binder.clear()
        return sum(pool.trim() for pool in self._pools.values()) + self._results.trim()

    def memory(self) -> ExecutorMemory:
        """Return what it keeps between runs."""
        return executor_memory(self._plan, self._pools, self._results, self._binder.known())

    def find_tailed(self) -> TailedProgram | None:
        """Return the plan as a program and what follows from its results; None where it is something else."""
        plan = self._plan
        if len(plan.steps) < 2 or plan.captures or plan.constants or plan.inputs != tuple(range(len(plan.inputs))):
            return None
        given = {slot: slot for slot in plan.inputs}
        front, others = _plain_steps(plan.steps, given)
        head = others[0] if others else None
        segment = next((each for each in plan.segments if each.start == len(plan.steps) - len(others)), None)
        if not isinstance(head, ProgramStep) or head.program.makes_outputs or segment is None or segment.entries != head.inputs:
            return None
        if head.memory is not HOST or not given.keys() >= set(head.inputs):
            return None
        places = {slot: place for place, slot in enumerate(head.outputs)}
        tail, rest = _plain_steps(others[1:], places)
        if rest or not places.keys() >= set(plan.outputs):
            return None
        every = tuple(range(len(head.outputs)))
        head = dataclasses.replace(head, inputs=tuple(given[slot] for slot in head.inputs))
        head_only = OnlyProgram(head, every, functools.partial(_first_bound, self._binder, segment), self._pools[HOST.name].take)
        return TailedProgram(head_only, tuple(tail), tuple(places[slot] for slot in plan.outputs), tuple(front))

    def _find_only(self) -> OnlyProgram | None:
        step = _only_step(self._plan)
        if step is None:
            return None
        results = tuple(step.outputs.index(slot) for slot in self._plan.outputs)
        bind, take = functools.partial(self._binder.find, self._plan.segments[0]), self._pools[HOST.name].take
        return OnlyProgram(step, results, bind, take, self._plan.shares)

    def _run_only(self, only: OnlyProgram, inputs: Sequence[OnnxValue], targets: Sequence[OnnxValue]) -> list[OnnxValue]:
        """Run a plan that is one program of the host: its slots need no frame."""
        check_cancelled()
        step = only.step
        arguments = [inputs[slot] for slot in step.inputs]
        binding = only.bind(tuple([shape_of(argument) for argument in arguments]))
        sizes = binding.steps[0]
        if sizes is None:
            raise ValueError("a program's step has sizes")
        if targets:
            frame: list[OnnxValue] = [None] * self._plan.slot_count
            place_targets(self._plan, frame, targets)
            outputs = [output_in(frame[slot], sizes, index) for index, slot in enumerate(step.outputs)]
        else:
            outputs = [None if make is None else make() for make in sizes.makers]
        if not sizes.bound.scratch_bytes:
            results = call(step, sizes.bound, arguments, outputs, None)
        else:
            pool = self._pools[step.memory.name]
            arena = pool.borrow(binding.arena_bytes[step.memory.name])
            try:
                results = call(step, sizes.bound, arguments, outputs, arena[1])
            finally:
                pool.give_back(arena)
        return [results[place] for place in only.results]

    def _run_trivial(self, segment: Segment, frame: list[OnnxValue]) -> None:
        step = self._plan.steps[segment.start]
        assert isinstance(step, ProgramStep)
        check_cancelled()
        run_trivial(step, frame)
        _free(step, frame)

    def _run_segment(self, segment: Segment, frame: list[OnnxValue]) -> None:
        plan = self._plan
        shapes = tuple([shape_of(frame[slot]) for slot in segment.entries])
        binding = self._binder.find(segment, shapes)
        arenas = {name: self._pools[name].borrow(size) for name, size in binding.arena_bytes.items()}
        try:
            for step, sizes in zip(plan.steps[segment.start : segment.stop], binding.steps, strict=True):
                check_cancelled()
                if isinstance(step, CopyStep):
                    copy(step, frame)
                elif sizes is not None:
                    run_program(step, sizes, frame, arenas)
                _free(step, frame)
        finally:
            for name, arena in arenas.items():
                self._pools[name].give_back(arena)


def _plain_steps(
    steps: Sequence[Step], places: dict[int, int]
) -> tuple[list[tuple[Callable[..., OnnxValue], tuple[int, ...]]], Sequence[Step]]:
    """Return the calls of the first steps, as far as they are plain programs that read what has a place, and the other steps.

    What the calls make has the places after those of `places`, which gets the slots of their outputs.
    """
    found: list[tuple[Callable[..., OnnxValue], tuple[int, ...]]] = []
    first = len(places)
    for number, step in enumerate(steps):
        plain = step.program.plain_calls() if isinstance(step, ProgramStep) and isinstance(step.program, PlainProgram) else None
        if plain is None or not isinstance(step, ProgramStep) or step.memory is not HOST or not places.keys() >= set(step.inputs):
            return found, steps[number:]
        known = [places[slot] for slot in step.inputs]
        known += range(first + len(found), first + len(found) + len(plain.calls))
        found += [(call, tuple([known[place] for place in arguments])) for call, arguments in plain.calls]
        places |= {slot: known[place] for slot, place in zip(step.outputs, plain.outputs, strict=True)}
    return found, ()


def _only_step(plan: Plan) -> ProgramStep | None:
    """Return the step of a plan that is one program on the host from inputs to outputs, else None."""
    if len(plan.steps) != 1 or plan.captures or plan.constants:
        return None
    (step,) = plan.steps
    if not isinstance(step, ProgramStep) or needs_no_shapes(step) or not _is_first(plan, step):
        return None
    return step if set(plan.outputs) <= set(step.outputs) else None


def _is_first(plan: Plan, step: ProgramStep) -> bool:
    """Return whether a step is a program of the host that reads the inputs alone, whose slots are their numbers."""
    return step.memory is HOST and plan.inputs == tuple(range(len(plan.inputs))) and set(step.inputs) <= set(plan.inputs)


def _first_bound(binder: Binder[Segment], segment: Segment, shapes: Shapes) -> Binding:
    """Return the sizes of the first step of a segment."""
    found = binder.find(segment, shapes)
    return Binding(found.steps[:1], found.arena_bytes, found.indices[:1])


def _free(step: Step, frame: list[OnnxValue]) -> None:
    for slot in step.frees:
        frame[slot] = None
