"""In which order steps run that are not all run once: who lives through a loop, and where steps that decide may go.

    0 a   1 enter   2 b   3 c   4 next   5 d        steps 2 and 3 run any number of times between 1 and 4

What a loop reads from before it is read in each iteration, so that it lives until the loop ends; what is read after a loop is
written in each, so that it lives from where the loop begins. Branches are lines in which one part is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, Control, KernelLaunch, Move

__all__ = ["Flow"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Loop:
    """A loop among the steps."""

    first: int
    """The step that enters it."""
    last: int
    """The step that goes back."""
    moved: tuple[tuple[int, Move], ...]
    """Pointers that move, by their distance from the first pointer of the last step, and how."""


class Flow:
    """The flow of control through the steps of a program."""

    def __init__(self, steps: Sequence[KernelLaunch]) -> None:
        """Read the steps once: O(steps + moves x steps of their loops)."""
        self._places = {step.control.mark: index for index, step in enumerate(steps) if step.control is not None}
        self._loops = {
            index: _loop(steps, self._places[step.control.target], index)
            for index, step in enumerate(steps)
            if step.control is not None and step.control.moves is not None
        }
        self._depths = self._count_depths(steps)
        self.has_bodies = bool(self._places)
        """Whether there are steps that do not run once."""

    def extend(self, first: dict[Buffer, int], last: dict[Buffer, int]) -> None:
        """Extend the spans of buffers, from the first step that uses one to the last, over the loops that they live through.

        Costs O(buffers x depth of loops).
        """
        if not self._loops:
            return
        around = self._loops_around(max(last.values(), default=0) + 1)
        for buffer, begin in first.items():
            end = last[buffer]
            outer = [loop.last for loop in around[end] if begin < loop.first]
            before = [loop.first for loop in around[begin] if loop.first < begin and loop.last < end]
            last[buffer], first[buffer] = max([end, *outer]), min([begin, *before])

    def _loops_around(self, count: int) -> list[tuple[_Loop, ...]]:
        """Return for each of the first `count` steps the loops that it lies in, with those that it begins or ends."""
        begun = {loop.first: loop for loop in self._loops.values()}
        found, now = [], tuple[_Loop, ...]()
        for index in range(count):
            now = (begun[index], *now) if index in begun else now
            found.append(now)
            now = now[1:] if now and now[0].last == index else now
        return found

    def is_conditional(self, index: int) -> bool:
        """Return whether a step lies in a body, so that it need not run."""
        return self._depths[index] > 0

    def params(self, index: int, control: Control, params: Sequence[int], sizes: Sizes) -> list[int]:
        """Return the parameters of a step that decides, `params` being what its plan says."""
        target = self._places[control.target] + control.is_beyond
        distance = target - index - 1
        loop = self._loops.get(index)
        if loop is None:
            return [distance, *params]
        words = [distance, len(loop.moved), *params]
        for where, move in loop.moved:
            words += (where, move.role, sizes(move.number), 0, sizes(move.step_bytes), 0)
        return words

    def _count_depths(self, steps: Sequence[KernelLaunch]) -> list[int]:
        """Return for each step in how many bodies it lies."""
        changes = [0] * (len(steps) + 1)
        for index, step in enumerate(steps):
            if step.control is None:
                continue
            target = self._places[step.control.target]
            begin, end = (index + 1, target) if target > index else (target + 1, index)
            if step.control.moves is None and begin < end:
                changes[begin] += 1
                changes[end] -= 1
        depths = []
        depth = 0
        for change in changes[:-1]:
            depth += change
            depths.append(depth)
        return depths


def _loop(steps: Sequence[KernelLaunch], first: int, last: int) -> _Loop:
    """Return a loop whose pointers are found: those of its buffers that move, and of views of them."""
    control = steps[last].control
    moves = {} if control is None else {move.buffer: move for move in control.moves or ()}
    pointers = sum(len(step.buffers) for step in steps[first + 1 : last])
    moved: list[tuple[int, Move]] = []
    for step in steps[first + 1 : last]:
        for buffer in step.buffers:
            found: Buffer | None = buffer
            while found is not None:
                if found in moves:
                    moved.append((-pointers, moves[found]))
                found = found.base
            pointers -= 1
    return _Loop(first, last, tuple(moved))
