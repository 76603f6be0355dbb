"""Running one step of a plan in a frame: the values of its slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sardonyx.dtypes import DataType, OnnxValue
from sardonyx.provider import HOST, Bound, DeviceBuffer
from sardonyx.runtime.bind import BoundStep
from sardonyx.runtime.failures import blame, check_copy, check_sizes, check_values
from sardonyx.runtime.plan import CopyStep, Plan, ProgramStep

__all__ = ["Arenas", "call", "copy", "output_in", "place_targets", "run_program", "run_trivial", "shape_of"]

Arenas = Mapping[str, tuple[int, DeviceBuffer]]
"""By the memory's name what `ArenaPool.borrow` gave."""


def run_program(step: ProgramStep, sizes: BoundStep, frame: list[OnnxValue], arenas: Arenas) -> None:
    """Run a program whose sizes are bound, its outputs and scratch memory in `arenas` where it has places there."""
    memory, bound, scratch = step.memory, sizes.bound, None
    try:
        buffer = arenas[memory.name][1] if memory.name in arenas else None
        outputs = [
            output_in(frame[slot], sizes, index)
            if offset is None or spec is None
            else memory.view(buffer, offset, spec.dtype, spec.shape)
            for index, (slot, spec, offset) in enumerate(zip(step.outputs, bound.outputs, sizes.offsets, strict=True))
        ]
        if bound.scratch_bytes:
            is_first = memory is HOST and not sizes.scratch_offset  # which needs no array of its own
            scratch = buffer if is_first else memory.view(buffer, sizes.scratch_offset, DataType.UINT8, (bound.scratch_bytes,))
    except Exception as error:
        if memory.name != HOST.name:
            blame(error, step, f"get memory for its {step.part}")
        raise
    _store(step, frame, call(step, bound, [frame[slot] for slot in step.inputs], outputs, scratch))


def place_targets(plan: Plan, frame: list[OnnxValue], targets: Sequence[OnnxValue]) -> None:
    """Put arrays of the host that outputs are to be computed in into their slots, where the slot's program fills arrays."""
    for slot, target in zip(plan.outputs, targets, strict=True):
        if target is not None and slot in plan.fillable and frame[slot] is None:
            frame[slot] = target


def output_in(target: OnnxValue, sizes: BoundStep, index: int) -> OnnxValue:
    """Return what a program fills as its output `index`: `target` where that fits, else new memory; None for what it makes."""
    make, spec = sizes.makers[index], sizes.bound.outputs[index]
    if make is None or spec is None:
        return None
    if target is None:
        return make()
    if target.shape != spec.shape or target.dtype != spec.dtype.numpy:
        return make()
    return target


def run_trivial(step: ProgramStep, frame: list[OnnxValue]) -> None:
    """Run a program that makes its outputs and is bound by itself: it needs no sizes."""
    try:
        bound = step.program.bind(())
    except Exception as error:
        blame(error, step, f"bind its {step.part}")
        raise
    _store(step, frame, call(step, bound, [frame[slot] for slot in step.inputs], (), None))


def call(
    step: ProgramStep, bound: Bound, inputs: list[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer
) -> Sequence[OnnxValue]:
    """Run a program; raises EPFail that names it where it raises what is no SardonyxError, or returns what does not fit."""
    try:
        values = step.program.run(bound, inputs, outputs, scratch)
    except Exception as error:
        blame(error, step, f"run its {step.part}")
        raise
    if values is not outputs:
        check_values(values, outputs, step)
        if step.reads:
            check_sizes(step, [shape_of(value) for value in inputs], [shape_of(value) for value in values])
    return values


def copy(step: CopyStep, frame: list[OnnxValue]) -> None:
    """Copy a tensor between the host and a device; raises EPFail that names the device's provider where that fails."""
    value = frame[step.source]
    to_device = step.source_memory.name == HOST.name
    try:
        copied = step.target_memory.from_host(value) if to_device else step.source_memory.to_host(value)
    except Exception as error:
        way = f"to {step.target_memory.name}" if to_device else f"from {step.source_memory.name}"
        blame(error, step, f"copy a tensor of shape {shape_of(value)} {way}")
        raise
    if not to_device:
        check_copy(copied, shape_of(value), step)
    frame[step.target] = copied


def shape_of(value: OnnxValue) -> tuple[int, ...] | None:
    """Return the shape of a tensor of any memory; None for what is no tensor, or shows no tuple."""
    shape = value.shape if isinstance(value, np.ndarray) else getattr(value, "shape", None)
    return shape if isinstance(shape, tuple) else None


def _store(step: ProgramStep, frame: list[OnnxValue], values: Sequence[OnnxValue]) -> None:
    for slot, value in zip(step.outputs, values, strict=True):
        frame[slot] = value
