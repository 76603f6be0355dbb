"""Which executor a session's options ask for."""

from __future__ import annotations

from sardonyx import config
from sardonyx.codegen.run.processors import available_processors
from sardonyx.errors import InvalidArgument
from sardonyx.runtime.executor import EXECUTORS, Executor, make_executor
from sardonyx.runtime.plan import Plan, ProgramStep
from sardonyx.session.options import ExecutionMode, SessionOptions

__all__ = ["EXECUTOR_ENTRY", "executor_for", "executor_name", "thread_count"]

EXECUTOR_ENTRY = "session.executor"
"""The config entry that names an executor, above what `execution_mode` says."""
_MODE_ENTRY = "session.execution_mode"
"""onnxruntime's text form of `execution_mode`, which it stands above."""
_MODES = ("sequential", "parallel")


def executor_name(options: SessionOptions) -> str:
    """One of EXECUTORS; raises InvalidArgument where a config entry is none."""
    entries = options.session_config_entries
    text = entries.get(EXECUTOR_ENTRY)
    if text is None and _MODE_ENTRY in entries:
        if entries[_MODE_ENTRY] not in _MODES:
            raise InvalidArgument(f"config entry {_MODE_ENTRY} must be one of {', '.join(_MODES)}, got {entries[_MODE_ENTRY]!r}")
        return entries[_MODE_ENTRY]
    if text is None:
        if options.execution_mode not in list(ExecutionMode):
            raise InvalidArgument(f"execution_mode is one of {', '.join(map(str, ExecutionMode))}, got {options.execution_mode!r}")
        return "parallel" if options.execution_mode == ExecutionMode.ORT_PARALLEL else "sequential"
    if text not in EXECUTORS:
        raise InvalidArgument(f"config entry {EXECUTOR_ENTRY} must be one of {', '.join(EXECUTORS)}, got {text!r}")
    return text


def executor_for(plan: Plan, options: SessionOptions) -> Executor:
    """The executor of a plan; `thread_count` of "inter_op" is how many threads a parallel one uses.

    With 0 there is one for each processor, and at least one for each provider, which may be busy without a processor.
    """
    providers = {step.provider for step in plan.steps if isinstance(step, ProgramStep)}
    threads = thread_count(options, "inter_op") or max(len(providers), config.num_threads() or available_processors())
    return make_executor(plan, executor_name(options), threads)


def thread_count(options: SessionOptions, kind: str) -> int:
    """How many threads are asked for, 0 where that is left open; raises InvalidArgument for what is no such number.

    Args:
        options: the session's; the config entry `session.intra_op_num_threads` counts where the property of that name is 0.
        kind: "intra_op" (within a part) or "inter_op" (for parts that run at once).
    """
    name = f"{kind}_num_threads"
    asked = getattr(options, name) or options.session_config_entries.get(f"session.{name}", 0)
    if not str(asked).isdigit():
        raise InvalidArgument(f"{name} is a number of at least 0, which leaves it open, got {asked!r}")
    return int(asked)
