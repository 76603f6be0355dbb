"""Parameters and tasks of steps for given sizes."""

from __future__ import annotations

import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, symbol
from sardonyx.providers.cpu.planning import impossible_buffers, plan_steps
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer, Control, KernelLaunch, Mark
from sardonyx.providers.cpu.storage import Storage

_N = symbol("n")


def _step(*buffers: Buffer, control: Control | None = None, tasks: Dim = 3) -> KernelLaunch:
    return KernelLaunch("op", "op", "k", buffers, (len(buffers) - 1,), lambda sizes: ([7], sizes(tasks)), control=control)


def _floats(*shape: Dim) -> Buffer:
    return Buffer(DataType.FLOAT, shape)


def _chosen(step: KernelLaunch) -> list[KernelLaunch]:
    """The step in the first part of an If."""
    marks = [Mark(), Mark(), Mark()]
    branch, jump, join = (
        _step(STATUS, _floats(1), control=Control(own, to, True), tasks=1)
        for own, to in zip(marks, (marks[1], marks[2], marks[2]), strict=True)
    )
    return [branch, step, jump, join]


def test_steps_have_what_their_plans_say() -> None:
    """Where all that a step writes is empty, it has no tasks."""
    storage = Storage([_step(_floats(2)), _step(_floats(_N))], [], [])
    assert plan_steps(storage, Sizes({"n": 2})) == ([([7], 3), ([7], 3)], {})
    assert plan_steps(storage, Sizes({"n": 0})) == ([([7], 3), ([7], 0)], {})


def test_sizes_that_a_step_cannot_work_with_are_an_error() -> None:
    """A negative one, one beyond all memory."""
    for size in (-1, 1 << 60):
        with pytest.raises(InvalidArgument, match="op: "):
            plan_steps(Storage([_step(_floats(_N))], [], []), Sizes({"n": size}))


@pytest.mark.parametrize("size", [-1, 1 << 60])
def test_in_a_body_they_are_kept_for_when_it_runs(size: int) -> None:
    """So are those of all steps that use the same memory, which then takes none."""
    whole = _floats(_N)
    part = Buffer(DataType.FLOAT, (2,), base=whole)
    steps = _chosen(_step(whole))
    steps[2:2] = [_step(part)]
    storage, sizes = Storage(steps, [], []), Sizes({"n": size})
    _, broken = plan_steps(storage, sizes)
    assert impossible_buffers(steps, broken, sizes) == {whole}
    assert list(broken) == [1, 2]
    assert impossible_buffers(steps, {}, sizes) == set()
