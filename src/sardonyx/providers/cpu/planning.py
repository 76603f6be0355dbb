"""What each step of a program does for given sizes: parameters and tasks, or why it cannot work with them."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.config import LIMITS
from sardonyx.errors import InvalidArgument, SardonyxError, located
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer, KernelLaunch
from sardonyx.providers.cpu.storage import Storage, addressed_bytes, size_bytes

__all__ = ["impossible_buffers", "plan_step", "plan_steps"]


def plan_steps(storage: Storage, sizes: Sizes) -> tuple[list[tuple[Sequence[int], int]], dict[int, SardonyxError]]:
    """Return the parameters and tasks of each step, and the errors of those in bodies that cannot work with such sizes.

    These are errors of the run only if it comes to them.
    """
    flow, planned = storage.flow, []
    broken: dict[int, SardonyxError] = {}
    for index, step in enumerate(storage.steps):
        try:
            params, tasks = plan_step(step, sizes)
        except SardonyxError as error:
            if not flow.is_conditional(index):
                raise
            broken[index] = error
            params, tasks = (), 0
        planned.append((params if step.control is None else flow.params(index, step.control, params, sizes), tasks))
    return planned, broken


def plan_step(step: KernelLaunch, sizes: Sizes) -> tuple[Sequence[int], int]:
    """Return the parameters and tasks of a step; raises InvalidArgument where it cannot work with such sizes."""
    if step.unless is not None and step.unless(sizes):
        return (), 0
    _check_sizes(step, sizes)
    return _planned(step, sizes)


def impossible_buffers(steps: Sequence[KernelLaunch], broken: dict[int, SardonyxError], sizes: Sizes) -> set[Buffer]:
    """Return buffers of steps in `broken` that no memory can hold, and add all other steps that use them to `broken`."""
    roots = {buffer.root: error for index, error in broken.items() for buffer in steps[index].buffers}
    found = {root: error for root, error in roots.items() if not 0 <= size_bytes(root, sizes) <= LIMITS.tensor_bytes}
    for index, step in enumerate(steps if found else ()):
        error = next((found[buffer.root] for buffer in step.buffers if buffer.root in found), None)
        if error is not None:
            broken.setdefault(index, error)
    return set(found)


def _planned(step: KernelLaunch, sizes: Sizes) -> tuple[Sequence[int], int]:
    """Return the parameters and tasks of a step.

    Where all that it writes is empty there may be any number of rows of nothing: then no task is done, but of kernels that check
    indices the first ones.
    """
    try:
        params, tasks = step.plan(sizes)
    except SardonyxError as error:
        raise located(error, step.place) from error
    for shape in (sizes.shape(buffer.shape) for buffer in step.buffers):
        if min(shape, default=0) < 0:
            raise InvalidArgument(
                f"{step.place}: a tensor would have shape {shape}, where no size can be negative; check the inputs that set it"
            )
    if not any(sizes.product(step.buffers[index].shape) for index in step.writes):
        tasks = min(tasks, _FEW_TASKS) if STATUS in step.buffers else 0
    if tasks <= 0:
        return [max(_LEAST, min(word, _GREATEST)) for word in params], 0
    if not all(_LEAST <= word <= _GREATEST for word in params):
        raise InvalidArgument(
            f"{step.place}: it would have to count beyond 64 bits; check its attributes and the shapes of its inputs, which are "
            f"{[sizes.shape(buffer.shape) for buffer in step.buffers]} with its outputs"
        )
    for buffer in step.buffers:
        _check_begin(step, buffer, sizes)
    return params, tasks


_FEW_TASKS = 64
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
"""The range of a parameter."""


def _check_sizes(step: KernelLaunch, sizes: Sizes) -> None:
    """Refuse what a step would write where it is beyond `LIMITS.tensor_bytes`, before anything is allocated for it."""
    for index in step.writes:
        needed = addressed_bytes(step.buffers[index], sizes)
        if needed > LIMITS.tensor_bytes:
            shape = sizes.shape(step.buffers[index].shape)
            raise InvalidArgument(
                f"{step.place}: the output would have shape {shape}, that is {needed} bytes; at most {LIMITS.tensor_bytes} are "
                "allowed: check the inputs that set the shape, or raise SARDONYX_MAX_TENSOR_BYTES"
            )


def _check_begin(step: KernelLaunch, buffer: Buffer, sizes: Sizes) -> None:
    """Refuse a part that begins outside of its tensor; an empty one may lie anywhere."""
    if not sizes.product(buffer.shape):
        return
    offset = 0
    while buffer.base is not None:
        offset += sizes(buffer.offset)
        buffer = buffer.base
    if not 0 <= offset < max(sizes.product(buffer.shape), 1):
        raise InvalidArgument(
            f"{step.place}: a part of a tensor of shape {sizes.shape(buffer.shape)} would begin at element {offset}; check the "
            "inputs that set where it begins"
        )
