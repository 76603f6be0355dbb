"""The executor of a plan, as the settings of a session ask for it."""

from __future__ import annotations

from sardonyx import config
from sardonyx.codegen.run.processors import available_processors
from sardonyx.forks import without_fork
from sardonyx.runtime.executor import Executor, make_executor
from sardonyx.runtime.plan import Plan, ProgramStep
from sardonyx.session.settings.settings import ExecutionSettings

__all__ = ["executor_for"]


def executor_for(plan: Plan, settings: ExecutionSettings) -> Executor:
    """Return the executor of a plan.

    Where the settings leave the threads of a parallel one open there is one for each processor, and at least one for each
    provider, which may be busy without a processor.
    """
    shared = None
    if settings.shares_arenas:
        with without_fork():
            from sardonyx.session.memory.arenas import shared_pool  # which few sessions do

        shared = shared_pool()
    if settings.executor == "sequential":
        return make_executor(plan, settings.executor, 1, shared)
    providers = {step.provider for step in plan.steps if isinstance(step, ProgramStep)}
    threads = settings.inter_op_threads or max(len(providers), config.num_threads() or available_processors())
    return make_executor(plan, settings.executor, threads, shared)
