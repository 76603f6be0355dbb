"""Which executor a session's options ask for."""

from __future__ import annotations

from sardonyx import config
from sardonyx.codegen.processors import available_processors
from sardonyx.errors import InvalidArgument
from sardonyx.runtime.executor import EXECUTORS, Executor, make_executor
from sardonyx.runtime.plan import Plan, ProgramStep
from sardonyx.session.options import ExecutionMode, SessionOptions

__all__ = ["EXECUTOR_ENTRY", "executor_for", "executor_name"]

EXECUTOR_ENTRY = "session.executor"
"""The config entry that names an executor, above what `execution_mode` says."""


def executor_name(options: SessionOptions) -> str:
    """One of EXECUTORS; raises InvalidArgument where the config entry is none."""
    text = options.session_config_entries.get(EXECUTOR_ENTRY)
    if text is None:
        if options.execution_mode not in list(ExecutionMode):
            raise InvalidArgument(f"execution_mode is one of {', '.join(map(str, ExecutionMode))}, got {options.execution_mode!r}")
        return "parallel" if options.execution_mode == ExecutionMode.ORT_PARALLEL else "sequential"
    if text not in EXECUTORS:
        raise InvalidArgument(f"config entry {EXECUTOR_ENTRY} must be one of {', '.join(EXECUTORS)}, got {text!r}")
    return text


def executor_for(plan: Plan, options: SessionOptions) -> Executor:
    """The executor of a plan; `inter_op_num_threads` is how many threads a parallel one uses.

    With 0 there is one for each processor, and at least one for each provider, which may be busy without a processor.
    """
    providers = {step.provider for step in plan.steps if isinstance(step, ProgramStep)}
    threads = options.inter_op_num_threads or max(len(providers), config.num_threads() or available_processors())
    return make_executor(plan, executor_name(options), threads)
