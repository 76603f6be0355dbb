"""The profile of a session, in the form of Chrome's trace events and with the names that onnxruntime gives them.

    [{"cat": "Session", "pid": 7, "tid": 7, "dur": 180, "ts": 4617, "ph": "X", "name": "model_run", "args": {}}, ...]

    model_loading_uri, model_loading_array, session_initialization, model_run     of a session
    <partition or node>_kernel_time                                               of a step of a run

Times are microseconds since the session was begun. A step is a partition: a provider runs its nodes as one program, so their times
are not told apart.
"""

from __future__ import annotations

import datetime
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx.dtypes import OnnxValue
from sardonyx.forks import new_lock
from sardonyx.provider import Bound, DeviceBuffer, Partition, Program
from sardonyx.trace import Event

__all__ = ["Profiler", "TimedProgram"]

_MOST_EVENTS = 1_000_000
"""As many as onnxruntime keeps."""
_NAMES = {"session.build": "session_initialization"}


class Profiler:
    """Collects the events of one session, from any number of threads, until `end` writes them."""

    def __init__(self, prefix: str, source: str) -> None:
        """Begin.

        Args:
            prefix: what the name of the file begins with; the time follows.
            source: "uri" or "array", by what the model is loaded from.
        """
        self.start_time_ns = time.time_ns()
        """When it began, in nanoseconds since the epoch."""
        self._begin_ns, self._source = time.perf_counter_ns(), source
        now = datetime.datetime.now()
        self._path = Path(f"{prefix}_{now:%Y-%m-%d_%H-%M-%S}_{now.microsecond // 1000:03}.json")
        self._events: list[dict[str, object]] | None = []
        self._lock, self._thread, self._process = new_lock(), threading.get_ident(), os.getpid()

    def observe(self, what: Event) -> None:
        """Record a span of the building of the session, which happens in the thread that made this profiler."""
        if what.duration_ns and threading.get_ident() == self._thread and what.name.startswith("session."):
            name = f"model_loading_{self._source}" if what.name == "session.load" else _NAMES.get(what.name, what.name)
            self.record("Session", name, what.start_ns, what.start_ns + what.duration_ns, {})

    def record(self, category: str, name: str, start_ns: int, end_ns: int, details: Mapping[str, object]) -> None:
        """Record what took from `start_ns` to `end_ns` of `time.perf_counter_ns`; after `end`, and beyond a million, nothing."""
        made = {
            "cat": category,
            "pid": os.getpid(),
            "tid": threading.get_native_id(),
            "dur": (end_ns - start_ns) // 1000,
            "ts": (start_ns - self._begin_ns) // 1000,
            "ph": "X",
            "name": name,
            "args": details,
        }
        with self._lock:
            if self._events is not None and len(self._events) < _MOST_EVENTS:
                self._events.append(made)

    def end(self) -> str:
        """Write the file and return its name; "" where that was done before. Raises OSError where it cannot be written."""
        with self._lock:
            events, self._events = self._events, None
        if events is None:
            return ""
        self._path.write_text("[\n" + ",\n".join(map(json.dumps, events)) + "\n]\n", encoding="utf-8")
        return str(self._path)

    def end_unasked(self) -> None:
        """Write the file where nobody did so before; not in the child of a fork, whose parent writes it."""
        if os.getpid() == self._process:
            self.end()


class TimedProgram:
    """A program whose runs are recorded; else it does what `program` does."""

    def __init__(self, program: Program, partition: Partition, provider: str, profiler: Profiler) -> None:
        """Wrap the program of `partition`, which `provider` compiled."""
        self._program, self._profiler = program, profiler
        self.makes_outputs = program.makes_outputs
        nodes = partition.nodes
        operators = dict.fromkeys(node.op_type for node in nodes)
        self._name = f"{nodes[0].name or partition.name if len(nodes) == 1 else partition.name}_kernel_time"
        self._details = {"op_name": ",".join(operators), "provider": provider, "node_count": str(len(nodes))}

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Bind the program."""
        return self._program.bind(shapes)

    def run(
        self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer
    ) -> Sequence[OnnxValue]:
        """Run the program and record how long it took, with the types and shapes of what it read and made."""
        start_ns = time.perf_counter_ns()
        results = self._program.run(bound, inputs, outputs, scratch)
        end_ns = time.perf_counter_ns()
        details = {**self._details, "input_type_shape": _types(inputs), "output_type_shape": _types(results)}
        details["activation_size"], details["output_size"] = str(_bytes(inputs)), str(_bytes(results))
        self._profiler.record("Node", self._name, start_ns, end_ns, details)
        return results


def _types(values: object) -> list[dict[str, list[int]]]:
    """Return for each tensor its type and shape; what a provider returned may be anything."""
    found = values if isinstance(values, (list, tuple)) else []
    return [{str(value.dtype): list(value.shape)} for value in found if hasattr(value, "dtype") and hasattr(value, "shape")]


def _bytes(values: object) -> int:
    return sum(getattr(value, "nbytes", 0) for value in values) if isinstance(values, (list, tuple)) else 0
