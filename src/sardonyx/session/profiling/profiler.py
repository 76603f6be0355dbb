"""The profile of a session, in the form of Chrome's trace events and with the names that onnxruntime gives them.

    [{"cat": "Session", "pid": 7, "tid": 7, "dur": 180.0, "ts": 4617.0, "ph": "X", "name": "model_run", "args": {}}, ...]

    model_loading_uri, model_loading_array, session_initialization, model_run     of a session
    <node>_kernel_time                                                            of a step of a run
    <partition>_run                                                               of the partition that has these steps
    (inputs)_kernel_time, (results)_kernel_time                                   of what a native run does around its programs

Times are microseconds since the session was begun. A run keeps numbers only; texts are made of them when the profile ends.
"""

from __future__ import annotations

import datetime
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.forks import new_lock
from sardonyx.held_memory import HeldMemory
from sardonyx.ir import Model, Node
from sardonyx.native_program import TimedCall, TimesNativeCalls
from sardonyx.partition.contexts import is_context
from sardonyx.partition.explain import SaysPrecisions
from sardonyx.partition.part import Cut
from sardonyx.provider import (
    BindsShapes,
    Bound,
    DeviceBuffer,
    PlainCalls,
    PlainProgram,
    Program,
    ReportsMemory,
    TimedRun,
    TimesSteps,
)
from sardonyx.session.origins import Origins
from sardonyx.session.profiling.steps import facts_of_nodes, steps_of
from sardonyx.trace import Event, event

__all__ = ["NO_THREAD", "Profiler", "TimedProgram"]

_MOST_EVENTS = 1_000_000
"""As many as onnxruntime keeps."""
_SECOND_NS = 1_000_000_000
NO_THREAD = -1
"""No thread's number."""
_NAMES = {"session.build": "session_initialization"}


class _Span(NamedTuple):
    """One event as it is recorded."""

    category: str
    name: str
    start_ns: int
    end_ns: int
    thread: int
    details: Mapping[str, object]


class _ProgramRun(NamedTuple):
    """One run of a program with its steps as it is recorded."""

    program: TimedProgram
    start_ns: int
    end_ns: int
    times: Array
    symbols: Mapping[str, int]
    thread: int
    scratch_bytes: int


class _WholeRun(NamedTuple):
    """A whole run of a session by machine code, with what little of it is called from Python, as it is recorded."""

    start_ns: int
    end_ns: int
    head: _ProgramRun
    others: Sequence[_Span]
    """Programs before and after the head, in order."""


_Recorded: TypeAlias = _Span | _ProgramRun | _WholeRun
_PlainRun: TypeAlias = "tuple[TimedProgram, int, int, Sequence[OnnxValue], OnnxValue]"
"""One call of a function that a program without steps is made of: when it began and ended, its arguments and its result."""


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
        self.origins: Origins | None = None
        """The nodes of the model as it was given; None before it is loaded."""
        self._begin_ns, self._source = time.perf_counter_ns(), source
        now = datetime.datetime.now()
        self._path = Path(f"{prefix}_{now:%Y-%m-%d_%H-%M-%S}_{now.microsecond // 1000:03}.json")
        self._events: list[_Recorded] | None = []
        self._count = 0
        self._lock, self._thread, self._process = new_lock(), threading.get_ident(), os.getpid()
        self.plain_runs: list[_PlainRun] = []
        """The calls of functions of programs without steps in the run that `plain_thread` makes by machine code."""
        self.plain_thread = NO_THREAD
        """The thread that makes such a run now."""
        self.went_to_python = False
        """Whether that run, which machine code could not end, was made in Python and recorded so."""

    def remember(self, model: Model) -> None:
        """Note the nodes of the model as it was given, before it is optimized."""
        self.origins = Origins(model)

    def observe(self, what: Event) -> None:
        """Record a span of the building of the session, which happens in the thread that made this profiler."""
        if what.duration_ns and threading.get_ident() == self._thread and what.name.startswith("session."):
            name = f"model_loading_{self._source}" if what.name == "session.load" else _NAMES.get(what.name, what.name)
            self.record("Session", name, what.start_ns, what.start_ns + what.duration_ns, {})

    def record(self, category: str, name: str, start_ns: int, end_ns: int, details: Mapping[str, object]) -> None:
        """Record what took from `start_ns` to `end_ns` of `time.perf_counter_ns`; after `end`, and beyond a million, nothing."""
        if name == "model_run" and threading.get_ident() == self.plain_thread:
            self.went_to_python = True
        self._keep(_Span(category, name, start_ns, end_ns, threading.get_native_id(), details), 1)

    def record_steps(self, program: TimedProgram, start_ns: int, end_ns: int, run: TimedRun, scratch_bytes: int) -> None:
        """Record one run of a program and its steps, whose times were measured."""
        if run.times is not None:
            thread = threading.get_native_id()
            made = _ProgramRun(program, start_ns, end_ns, run.times, run.symbols, thread, scratch_bytes)
            self._keep(made, len(run.times))

    def record_whole(self, program: TimedProgram, start_ns: int, end_ns: int, run: TimedRun, scratch_bytes: int) -> None:
        """Record a run of a session that machine code made, with the steps of its program and `plain_runs`."""
        if run.times is None:
            return
        thread = threading.get_native_id()
        times_ns = [_SECOND_NS * int(run.times[place, 0]) + int(run.times[place, 1]) for place in (0, -1)]
        head = _ProgramRun(program, times_ns[0], times_ns[1], run.times, run.symbols, thread, scratch_bytes)
        others = [_plain_span(list(calls), thread) for _, calls in itertools.groupby(self.plain_runs, lambda call: id(call[0]))]
        self._keep(_WholeRun(start_ns, end_ns, head, others), len(run.times) + len(others))

    def timed(self, program: Program, part: Cut) -> TimedProgram:
        """Return the program that a provider compiled of `part`, whose graph is still whole, with its runs recorded here."""
        return TimedProgram(program, part, self)

    def end(self) -> str:
        """Write the file and return its name; "" where that was done before. Raises OSError where it cannot be written."""
        with self._lock:
            events, self._events = self._events, None
        if events is None:
            return ""
        with self._path.open("w", encoding="utf-8") as file:
            separator = "[\n"
            for made in self._made(events):
                file.write(separator + json.dumps(made))
                separator = ",\n"
            file.write("\n]\n" if separator != "[\n" else "[]\n")
        return str(self._path)

    def end_unasked(self) -> None:
        """Write the file where nobody did so before; not in the child of a fork, whose parent writes it.

        Nobody is there to hear that it cannot be written, but the trace.
        """
        if os.getpid() == self._process:
            try:
                self.end()
            except OSError as error:
                event("profile.unwritten", file=str(self._path), error=str(error))

    def _keep(self, what: _Recorded, count: int) -> None:
        events = self._events
        if events is not None and self._count < _MOST_EVENTS:
            events.append(what)  # a list's own lock does: the count may be off by what threads add at the same time
            self._count += count

    def _made(self, events: Sequence[_Recorded]) -> Iterator[dict[str, object]]:
        """Yield the events as the file has them, in the order in which they ended."""
        process = os.getpid()
        for span in (span for item in events for span in _spans(item)):
            yield {
                "cat": span.category,
                "pid": process,
                "tid": span.thread,
                "dur": (span.end_ns - span.start_ns) / 1000,
                "ts": (span.start_ns - self._begin_ns) / 1000,
                "ph": "X",
                "name": span.name,
                "args": span.details,
            }


def _with_executor(span: _Span) -> tuple[_Span, ...]:
    """Return a span; a run also as onnxruntime's event of its executor."""
    return (span._replace(name="SequentialExecutor::Execute"), span) if span.name == "model_run" else (span,)


def _spans(item: _Recorded) -> Iterator[_Span]:
    if isinstance(item, _Span):
        yield from _with_executor(item)
    elif isinstance(item, _ProgramRun):
        yield from _program_spans(item)
    else:
        yield from _whole_spans(item)


def _program_spans(run: _ProgramRun) -> Iterator[_Span]:
    names, details = run.program.step_names, run.program.step_details(run.symbols)
    times_ns = [_SECOND_NS * seconds + rest for seconds, rest in run.times[:, :2].tolist()]
    counts = run.times[1:, 2].tolist() if run.times.shape[1] > 2 else [1] * len(times_ns)
    memory = _memory(run.scratch_bytes)
    for name, said, start_ns, end_ns, count in zip(names, details, times_ns, times_ns[1:], counts, strict=False):
        if count:
            said = {**_repeated(said, count), **memory, **_scheduling(run.thread, start_ns, end_ns)}
            yield _Span("Node", name, start_ns, end_ns, run.thread, said)
    yield _Span("Partition", run.program.name, run.start_ns, run.end_ns, run.thread, run.program.details)


def _whole_spans(run: _WholeRun) -> Iterator[_Span]:
    """Yield the events of a run by machine code: what lies around its programs are steps too, of the run itself."""
    head, now_ns, around = run.head, run.start_ns, "(inputs)"
    programs = sorted([(head.start_ns, head.end_ns), *[(span.start_ns, span.end_ns) for span in run.others]])
    yield from (span for span in run.others if span.start_ns < head.start_ns)
    yield from _program_spans(head)
    yield from (span for span in run.others if span.start_ns >= head.start_ns)
    for start_ns, end_ns in [*programs, (run.end_ns, run.end_ns)]:
        if start_ns > now_ns:
            said = {**_facts_around(around), **_scheduling(head.thread, now_ns, start_ns)}
            yield _Span("Node", f"{around}_kernel_time", now_ns, start_ns, head.thread, said)
        if start_ns == head.start_ns:
            around = "(results)"
        now_ns = end_ns
    yield from _with_executor(_Span("Session", "model_run", run.start_ns, run.end_ns, head.thread, {}))


def _facts_around(name: str) -> dict[str, object]:
    """Return the details of a step that computes no node, with the keys of those that do."""
    names, sizes = ("op_name", "fused"), ("activation_size", "parameter_size", "output_size")
    lists: tuple[str, ...] = ("input_type_shape", "output_type_shape", "nodes", "original_nodes")
    unknown = dict.fromkeys(("provider", "node_index", "kernel"), "")
    return {**dict.fromkeys(names, name), **unknown, **dict.fromkeys(sizes, "0"), **{key: [] for key in lists}}


def _plain_span(calls: Sequence[_PlainRun], thread: int) -> _Span:
    """Return the event of a program whose functions were called one after another."""
    (program, start_ns, _, arguments, _), (_, _, end_ns, _, result) = calls[0], calls[-1]
    return _Span("Node", program.run_name, start_ns, end_ns, thread, program.run_details(arguments, [result], 0, start_ns, end_ns))


def _repeated(said: Mapping[str, object], count: int) -> Mapping[str, object]:
    """Return the details of a step that ran so often in one run: its operations and bytes are those of all times together."""
    if count == 1:
        return said
    totals = {key: value * count for key in ("flops", "bytes") if isinstance(value := said.get(key), int)}
    return {**said, **totals, "repeats": count}


def _memory(scratch_bytes: int) -> dict[str, object]:
    """Return onnxruntime's facts about memory: an arena is planned, so all of it is held from the begin of a run to its end."""
    held = ("mem_bytes_in_use", "mem_bytes_requested_in_use", "mem_in_use_peak", "mem_arena_held")
    changes = ("mem_in_use_delta", "mem_requested_in_use_delta", "mem_arena_held_delta")
    return {**dict.fromkeys(held, str(scratch_bytes)), **dict.fromkeys(changes, "0")}


def _scheduling(thread: int, start_ns: int, end_ns: int) -> dict[str, object]:
    """Return onnxruntime's facts about the threads of a step: which one began it, and how many microseconds it took.

    What is not measured is as it is there before anything was: numbers of 0, an unknown core, empty lists.
    """
    times = {"Distribution": 0, "DistributionEnqueue": 0, "Run": (end_ns - start_ns) // 1000, "Wait": 0, "WaitRevoke": 0}
    main = {"thread_pool_name": "sardonyx", "thread_id": str(thread), "block_size": [], "core": -1, **times}
    return {"thread_scheduling_stats": {"main_thread": main, "sub_threads": {}}}


class TimedProgram:
    """A program whose runs are recorded; else it does what `program` does."""

    def __init__(self, program: Program, part: Cut, profiler: Profiler) -> None:
        """Wrap the program that a provider compiled of `part`, whose graph is still whole."""
        self._program, self._profiler = program, profiler
        self.makes_outputs = program.makes_outputs
        self.precisions = program.precisions if isinstance(program, SaysPrecisions) else ()
        self.binds_shapes = isinstance(program, BindsShapes) and program.binds_shapes
        partition, self._provider = part.partition, part.provider.name
        nodes = facts_of_nodes(partition.nodes, part, profiler.origins)
        self._stepping = program if isinstance(program, TimesSteps) else None
        if self._stepping is not None and program.makes_outputs and len(self._stepping.describe_steps()) == 1:
            self._stepping = None  # its inputs and outputs, whose shapes are known here, are those of the only step
        known = [] if is_context(partition.nodes[0]) else nodes  # the nodes that a compiled model's program counts are not at hand
        self._steps = steps_of(self._stepping.describe_steps(), known) if self._stepping is not None else []
        self._said: dict[tuple[tuple[str, int], ...], list[dict[str, object]]] = {}
        self.run_name = f"{nodes[0].name or partition.name if len(nodes) == 1 else partition.name}_kernel_time"
        """What the event of the whole program is called, where its steps have none."""
        self.name = f"{partition.name}_run"
        """What the event of the whole program is called, where its steps have events of their own."""
        operators = dict.fromkeys(node.operator for node in nodes)
        self.details: dict[str, object] = {
            "op_name": ",".join(operators),
            "provider": self._provider,
            "node_index": "0",
            "node_count": str(len(nodes)),
            "parameter_size": str(_constant_bytes(partition.nodes)),
            "nodes": [node.name for node in nodes],
            "original_nodes": list(dict.fromkeys(name for node in nodes for name in node.origins)),
        }
        """What is said of it in any run."""
        self.step_names = [f"{step.name}_kernel_time" for step in self._steps]
        """What the events of its steps are called."""

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Bind the program."""
        return self._program.bind(shapes)

    def run(
        self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer
    ) -> Sequence[OnnxValue]:
        """Run the program and record how long it and its steps took, with the types and shapes of what they read and made."""
        start_ns = time.perf_counter_ns()
        if self._stepping is not None:
            timed = self._stepping.run_timed(bound, inputs, outputs, scratch)
            if timed.times is not None:
                self._profiler.record_steps(self, start_ns, time.perf_counter_ns(), timed, bound.scratch_bytes)
                return timed.results
            results = timed.results
        else:
            results = self._program.run(bound, inputs, outputs, scratch)
        end_ns = time.perf_counter_ns()
        said = self.run_details(inputs, results, bound.scratch_bytes, start_ns, end_ns)
        self._profiler.record("Node", self.run_name, start_ns, end_ns, said)
        return results

    def run_details(
        self, inputs: Sequence[OnnxValue], results: Sequence[OnnxValue], scratch_bytes: int, start_ns: int, end_ns: int
    ) -> dict[str, object]:
        """Return what is said of a run of the program as one step, from `start_ns` to `end_ns`, in this thread."""
        details = {**self.details, "input_type_shape": _types(inputs), "output_type_shape": _types(results)}
        details["activation_size"], details["output_size"] = str(_bytes(inputs)), str(_bytes(results))
        return details | {**_memory(scratch_bytes), **_scheduling(threading.get_native_id(), start_ns, end_ns)}

    def plain_calls(self) -> PlainCalls | None:
        """Return functions that make the outputs, whose calls in a run by machine code are noted; None where only `run` will do."""
        plain = self._program.plain_calls() if isinstance(self._program, PlainProgram) else None
        if plain is None:
            return None
        return plain._replace(calls=tuple([(self._noted(call), arguments) for call, arguments in plain.calls]))

    def _noted(self, call: Callable[..., OnnxValue]) -> Callable[..., OnnxValue]:
        profiler, clock, thread = self._profiler, time.perf_counter_ns, threading.get_ident

        def noted(*arguments: OnnxValue) -> OnnxValue:
            if profiler.plain_thread != thread():
                return call(*arguments)
            start_ns = clock()
            result = call(*arguments)
            profiler.plain_runs.append((self, start_ns, clock(), arguments, result))
            return result

        return noted

    def timed_call(self, bound: Bound) -> TimedCall | None:
        """Return a native call that notes the times of the steps; None where only `run` will do."""
        program = self._program
        return program.native_timed_call(bound) if self._steps and isinstance(program, TimesNativeCalls) else None

    @property
    def profiler(self) -> Profiler:
        """What records its runs."""
        return self._profiler

    def memory_held(self) -> Sequence[HeldMemory]:
        """Return what the program itself keeps, as far as it says."""
        return self._program.memory_held() if isinstance(self._program, ReportsMemory) else ()

    def binding_bytes(self, bound: Bound) -> int:
        """Return what the program itself keeps of a binding, as far as it says."""
        return self._program.binding_bytes(bound) if isinstance(self._program, ReportsMemory) else 0

    def step_details(self, symbols: Mapping[str, int]) -> list[dict[str, object]]:
        """Return the details of its steps' events, where symbolic dimensions are `symbols`."""
        key = tuple(sorted(symbols.items()))
        if key not in self._said:
            self._said[key] = [step.arguments(self._provider, symbols) for step in self._steps]
        return self._said[key]


def _types(values: object) -> list[dict[str, list[int]]]:
    """Return for each tensor its type and shape; what a provider returned may be anything."""
    found = values if isinstance(values, (list, tuple)) else []
    return [{_type_name(value.dtype): list(value.shape)} for value in found if hasattr(value, "dtype") and hasattr(value, "shape")]


def _type_name(dtype: object) -> str:
    """Return the name in ONNX of a dtype of NumPy; that of any other as text."""
    return str(DataType.from_numpy(dtype)) if isinstance(dtype, np.dtype) else str(dtype)


def _constant_bytes(nodes: Sequence[Node]) -> int:
    """Return how many bytes the constants have that nodes read, each counted once."""
    constants = {value for node in nodes for value in node.inputs if value is not None and value.constant is not None}
    return sum(value.constant.size_bytes for value in constants if value.constant is not None)


def _bytes(values: object) -> int:
    return sum(getattr(value, "nbytes", 0) for value in values) if isinstance(values, (list, tuple)) else 0
