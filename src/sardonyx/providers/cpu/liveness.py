"""Steps that anything reads: the others, such as shapes that only views were made of, are not run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sardonyx.cancellation import checked
from sardonyx.providers.cpu.steps import Buffer, KernelLaunch

__all__ = ["live_steps"]


def live_steps(steps: Sequence[KernelLaunch], outputs: Iterable[Buffer]) -> list[KernelLaunch]:
    """Return the steps that `outputs` depend on, in their order. O(steps)."""
    wanted = {buffer.root for buffer in outputs}
    live: list[KernelLaunch] = []
    for step in checked(reversed(steps)):
        if any(step.buffers[place].root in wanted for place in step.writes):
            live.append(step)
            wanted.update(buffer.root for buffer in step.buffers)
    return live[::-1]
