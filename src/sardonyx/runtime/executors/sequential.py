"""The sequential executor: one step after another, in the calling thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EPFail, SardonyxError, blamed
from sardonyx.provider import HOST, Bound, check_cancelled
from sardonyx.runtime.bind import Binder, BoundStep
from sardonyx.runtime.memory import ArenaPool
from sardonyx.runtime.plan import CopyStep, Plan, ProgramStep, Segment

__all__ = ["SequentialExecutor"]


class SequentialExecutor:
    """Runs a plan; any number of threads may run it at a time, each with arenas of its own."""

    def __init__(self, plan: Plan) -> None:
        """Make an executor of `plan`, with empty tables."""
        self._plan = plan
        self._binder = Binder(plan)
        self._pools = {memory.name: ArenaPool(memory) for memory in plan.memories}
        self._template: list[Any] = [None] * plan.slot_count
        for slot, array in plan.constants:
            self._template[slot] = array
        self._only = _only_step(plan)

    def run(self, inputs: Sequence[Any], captures: Sequence[Any] = ()) -> list[Any]:
        """Compute the graph's outputs, on the host, from its inputs and captured values; values are Any by their ONNX type."""
        plan = self._plan
        if self._only is not None:
            return self._run_only(self._only, inputs)
        frame = self._template.copy()
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

    def trim(self) -> int:
        """Give back idle arenas and bindings; returns the bytes given back."""
        self._binder.clear()
        return sum(pool.trim() for pool in self._pools.values())

    def _run_only(self, step: ProgramStep, inputs: Sequence[Any]) -> list[Any]:
        """Run a plan that is one program of the host: its slots need no frame."""
        check_cancelled()
        arguments = [inputs[slot] for slot in step.inputs]
        binding = self._binder.find(self._plan.segments[0], tuple([_shape(argument) for argument in arguments]))
        sizes = binding.steps[0]
        if sizes is None:
            raise ValueError("a program's step has sizes")
        outputs = [None if make is None else make() for make in sizes.makers]
        if not sizes.bound.scratch_bytes:
            results = _call(step, sizes.bound, arguments, outputs, None)
        else:
            pool = self._pools[step.memory.name]
            arena = pool.borrow(binding.arena_bytes[step.memory.name])
            try:
                results = _call(step, sizes.bound, arguments, outputs, arena[1])
            finally:
                pool.give_back(arena)
        return [results[step.outputs.index(slot)] for slot in self._plan.outputs]

    def _run_trivial(self, segment: Segment, frame: list[Any]) -> None:
        step = self._plan.steps[segment.start]
        assert isinstance(step, ProgramStep)
        check_cancelled()
        bound = step.program.bind(())
        _store(step, frame, _call(step, bound, [frame[slot] for slot in step.inputs], (), None))

    def _run_segment(self, segment: Segment, frame: list[Any]) -> None:
        plan = self._plan
        shapes = tuple(_shape(frame[slot]) for slot in segment.entries)
        binding = self._binder.find(segment, shapes)
        arenas = {name: self._pools[name].borrow(size) for name, size in binding.arena_bytes.items()}
        try:
            for step, sizes in zip(plan.steps[segment.start : segment.stop], binding.steps, strict=True):
                check_cancelled()
                if isinstance(step, CopyStep):
                    _copy(step, frame)
                elif sizes is not None:
                    self._run_program(step, sizes, frame, arenas)
        finally:
            for name, arena in arenas.items():
                self._pools[name].give_back(arena)

    def _run_program(self, step: ProgramStep, sizes: BoundStep, frame: list[Any], arenas: dict[str, tuple[int, Any]]) -> None:
        memory, bound = step.memory, sizes.bound
        buffer = arenas[memory.name][1] if memory.name in arenas else None
        outputs = [
            None if make is None or spec is None
            else make() if offset is None
            else memory.view(buffer, offset, spec.dtype, spec.shape)
            for make, spec, offset in zip(sizes.makers, bound.outputs, sizes.offsets, strict=True)
        ]  # fmt: skip
        scratch = None
        if bound.scratch_bytes:
            scratch = memory.view(buffer, sizes.scratch_offset, DataType.UINT8, (bound.scratch_bytes,))
        _store(step, frame, _call(step, bound, [frame[slot] for slot in step.inputs], outputs, scratch))


def _only_step(plan: Plan) -> ProgramStep | None:
    """The step of a plan that is one program on the host from inputs to outputs, else None."""
    if len(plan.steps) != 1 or plan.captures or plan.constants:
        return None
    (step,) = plan.steps
    if not isinstance(step, ProgramStep) or step.program.makes_outputs or step.memory is not HOST:
        return None
    whole = plan.inputs == tuple(range(len(plan.inputs))) and set(step.inputs) <= set(plan.inputs)
    return step if whole and set(plan.outputs) <= set(step.outputs) else None


def _call(step: ProgramStep, bound: Bound, inputs: list[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
    try:
        values = step.program.run(bound, inputs, outputs, scratch)
        count = len(values)
    except EPFail as error:
        blamed(error, step.provider)
        raise
    except SardonyxError:
        raise
    except Exception as error:
        message = f"{step.provider} failed to run its partition {step.name}: {type(error).__name__}: {error}"
        raise blamed(EPFail(message), step.provider) from error
    if count != len(step.outputs):
        message = f"{step.provider} returned {count} values for partition {step.name}, expected {len(step.outputs)}"
        raise blamed(EPFail(message), step.provider)
    return values


def _store(step: ProgramStep, frame: list[Any], values: Sequence[Any]) -> None:
    for slot, value in zip(step.outputs, values, strict=True):
        frame[slot] = value
    for slot in step.frees:
        frame[slot] = None


def _copy(step: CopyStep, frame: list[Any]) -> None:
    value = frame[step.source]
    frame[step.target] = (
        step.target_memory.from_host(value) if step.source_memory.name == HOST.name else step.source_memory.to_host(value)
    )
    for slot in step.frees:
        frame[slot] = None


def _shape(value: Any) -> tuple[int, ...] | None:
    return value.shape if isinstance(value, np.ndarray) else getattr(value, "shape", None)
