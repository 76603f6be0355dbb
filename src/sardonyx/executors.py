"""What a package needs to bring an executor of its own.

    class DevicesFirst(DataflowExecutor):
        def rank(self, index: int) -> int: ...

See docs/how-to/choose-an-executor.md. The names come from the packages below; only those listed here are kept from version to
version.
"""

from sardonyx.dtypes import OnnxValue
from sardonyx.provider import HOST, Memory
from sardonyx.runtime.executor_memory import ExecutorMemory
from sardonyx.runtime.executors.dataflow import DataflowExecutor
from sardonyx.runtime.executors.parallel import ParallelExecutor
from sardonyx.runtime.executors.sequential import SequentialExecutor
from sardonyx.runtime.installed_executors import MakesExecutor, RunsPlan
from sardonyx.runtime.memory import ArenaPool
from sardonyx.runtime.plan import CopyStep, Plan, ProgramStep, Step

__all__ = [
    "HOST",
    "ArenaPool",
    "CopyStep",
    "DataflowExecutor",
    "ExecutorMemory",
    "MakesExecutor",
    "Memory",
    "OnnxValue",
    "ParallelExecutor",
    "Plan",
    "ProgramStep",
    "RunsPlan",
    "SequentialExecutor",
    "Step",
]
