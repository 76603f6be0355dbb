"""An executor: it decides which of the parts that are ready runs next."""

from __future__ import annotations

from sardonyx.executors import HOST, ArenaPool, CopyStep, DataflowExecutor, Plan, ProgramStep

__all__ = ["DevicesFirst"]

_FAR_AHEAD = 1 << 40


class DevicesFirst(DataflowExecutor):
    """Runs what keeps a device busy before what keeps the processor busy, both by the longest way to the end."""

    def __init__(self, plan: Plan, threads: int, shared: ArenaPool | None = None) -> None:
        """Take a plan; one thread starts the parts, so `threads` says nothing here."""
        super().__init__(plan, shared)

    def rank(self, index: int) -> int:
        """Return how early a part should run: copies to devices and their programs before all else."""
        step = self.plan.steps[index]
        on_device = (isinstance(step, ProgramStep) and step.memory is not HOST) or (
            isinstance(step, CopyStep) and step.target_memory is not HOST
        )
        return super().rank(index) + _FAR_AHEAD * on_device
