"""Sessions that a library makes: an operator may run a model of its own.

    CreateEnv ─► CreateSessionOptions ─► CreateSession ─► Run ─► ReleaseSession

What makes a session lies above this package, and says so by `use_runtime` when it loads a library.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from sardonyx.custom_ops.abi.c_memory import allocate
from sardonyx.custom_ops.abi.entries.core import Registration
from sardonyx.custom_ops.abi.entries.kernels import info_of_type
from sardonyx.custom_ops.abi.entries.memory import check_allocator
from sardonyx.custom_ops.abi.entry import INT32, POINTER, SIZE, Entry, entry
from sardonyx.custom_ops.abi.handles import drop, find, keep
from sardonyx.custom_ops.abi.strings import bytes_of, read_text, write_pointer, write_size
from sardonyx.custom_ops.abi.values import HostValue, find_value, make_container, make_value
from sardonyx.dtypes import DataType, OnnxValue
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.errors import NotImplemented as NotSupported
from sardonyx.ir import TensorType
from sardonyx.ir.shape import anonymous, symbol

__all__ = ["ENTRIES", "Argument", "OwnOptions", "OwnRunOptions", "OwnSession", "Runtime", "use_runtime"]

ENTRIES: list[Entry] = []


class Argument(Protocol):
    """An input or output of a session."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def type(self) -> str:
        """Its type, such as "tensor(float)"."""

    @property
    def shape(self) -> Sequence[int | str | None]:
        """Its dimensions: sizes, names, or None."""


class OwnRunOptions(Protocol):
    """Options of one run."""

    terminate: bool
    """Set from another thread to end it."""


class OwnSession(Protocol):
    """A session of a library's model."""

    def get_inputs(self) -> Sequence[Argument]:
        """Return the inputs that a run must be given."""

    def get_outputs(self) -> Sequence[Argument]:
        """Return the outputs."""

    def run(self, names: Sequence[str], feed: Mapping[str, OnnxValue], options: Any, /) -> Sequence[OnnxValue]:
        """Compute outputs, with options that the same runtime made or None (Any: no other ones get here)."""


@dataclasses.dataclass(slots=True)
class OwnOptions(Registration):
    """The OrtSessionOptions that a library makes."""

    properties: dict[str, int | str] = dataclasses.field(default_factory=dict)
    """Property of SessionOptions -> its value."""


class Runtime(Protocol):
    """What makes sessions."""

    def open(self, model: str | bytes, options: OwnOptions) -> OwnSession:
        """Return a session of the model in a file, or of these bytes."""

    def run_options(self) -> OwnRunOptions:
        """Return options of a run."""


_RUNTIMES: list[Runtime] = []


def use_runtime(runtime: Runtime) -> None:
    """Have libraries make sessions by `runtime`, in place of the one before."""
    _RUNTIMES[:] = [runtime]


class _Env:
    """An OrtEnv: there is one runtime in a process."""


def _runtime() -> Runtime:
    if not _RUNTIMES:
        raise Fail("sessions can be made once a library was registered by SessionOptions")
    return _RUNTIMES[0]


@entry(ENTRIES, "CreateEnv", INT32, POINTER, POINTER)
def _create_env(severity: int, name: int | None, out: int | None) -> None:
    write_pointer(out, keep(_Env()))


@entry(ENTRIES, "CreateSessionOptions", POINTER)
def _create_options(out: int | None) -> None:
    write_pointer(out, keep(OwnOptions({}, [])))


@entry(ENTRIES, "CloneSessionOptions", POINTER, POINTER)
def _clone_options(options: int | None, out: int | None) -> None:
    held = find(options, OwnOptions)
    write_pointer(out, keep(OwnOptions(dict(held.config), list(held.domains), dict(held.properties))))


@entry(ENTRIES, "CreateRunOptions", POINTER)
def _create_run_options(out: int | None) -> None:
    write_pointer(out, keep(_RunOptions(_runtime().run_options())))


@dataclasses.dataclass(frozen=True, slots=True)
class _RunOptions:
    """An OrtRunOptions."""

    held: OwnRunOptions


@dataclasses.dataclass(frozen=True, slots=True)
class _Session:
    """An OrtSession."""

    held: OwnSession


def _set(name: str, function: str, value: bool | None = None) -> None:
    """Fill the function that sets a property: to `value`, or where that is None to the number that it is given."""

    def given(options: int | None, number: int) -> None:
        find(options, OwnOptions).properties[name] = number

    if value is None:
        entry(ENTRIES, function, POINTER, INT32)(given)
    else:
        entry(ENTRIES, function, POINTER)(functools.partial(given, number=value))


_set("intra_op_num_threads", "SetIntraOpNumThreads")
_set("inter_op_num_threads", "SetInterOpNumThreads")
_set("graph_optimization_level", "SetSessionGraphOptimizationLevel")
_set("execution_mode", "SetSessionExecutionMode")
_set("log_severity_level", "SetSessionLogSeverityLevel")
_set("log_verbosity_level", "SetSessionLogVerbosityLevel")
_set("enable_mem_pattern", "EnableMemPattern", True)
_set("enable_mem_pattern", "DisableMemPattern", False)
_set("enable_cpu_mem_arena", "EnableCpuMemArena", True)
_set("enable_cpu_mem_arena", "DisableCpuMemArena", False)
_set("use_per_session_threads", "DisablePerSessionThreads", False)


@entry(ENTRIES, "SetSessionLogId", POINTER, POINTER)
def _set_log_id(options: int | None, name: int | None) -> None:
    find(options, OwnOptions).properties["logid"] = read_text(name)


@entry(ENTRIES, "CreateSession", POINTER, POINTER, POINTER, POINTER)
def _create_session(env: int | None, path: int | None, options: int | None, out: int | None) -> None:
    _open(env, read_text(path), options, out)


@entry(ENTRIES, "CreateSessionFromArray", POINTER, POINTER, SIZE, POINTER, POINTER)
def _create_session_of_bytes(env: int | None, data: int | None, size: int, options: int | None, out: int | None) -> None:
    if not data:
        raise InvalidArgument("the library gave NULL where the bytes of a model are expected")
    _open(env, ctypes.string_at(data, size), options, out)


def _open(env: int | None, model: str | bytes, options: int | None, out: int | None) -> None:
    find(env, _Env)
    said = find(options, OwnOptions) if options else OwnOptions({}, [])
    if said.domains:
        raise NotSupported("a session that a library makes takes no domains of custom operators")
    write_pointer(out, keep(_Session(_runtime().open(model, said))))


@entry(ENTRIES, "SessionGetInputCount", POINTER, POINTER)
def _count_inputs(session: int | None, out: int | None) -> None:
    write_size(out, len(find(session, _Session).held.get_inputs()))


@entry(ENTRIES, "SessionGetOutputCount", POINTER, POINTER)
def _count_outputs(session: int | None, out: int | None) -> None:
    write_size(out, len(find(session, _Session).held.get_outputs()))


@entry(ENTRIES, "SessionGetInputName", POINTER, SIZE, POINTER, POINTER)
def _name_input(session: int | None, index: int, allocator: int | None, out: int | None) -> None:
    _write_name(find(session, _Session).held.get_inputs, index, allocator, out)


@entry(ENTRIES, "SessionGetOutputName", POINTER, SIZE, POINTER, POINTER)
def _name_output(session: int | None, index: int, allocator: int | None, out: int | None) -> None:
    _write_name(find(session, _Session).held.get_outputs, index, allocator, out)


@entry(ENTRIES, "SessionGetInputTypeInfo", POINTER, SIZE, POINTER)
def _type_input(session: int | None, index: int, out: int | None) -> None:
    write_pointer(out, info_of_type(_type_of(_at(find(session, _Session).held.get_inputs(), index))).address)


@entry(ENTRIES, "SessionGetOutputTypeInfo", POINTER, SIZE, POINTER)
def _type_output(session: int | None, index: int, out: int | None) -> None:
    write_pointer(out, info_of_type(_type_of(_at(find(session, _Session).held.get_outputs(), index))).address)


def _write_name(arguments: Callable[[], Sequence[Argument]], index: int, allocator: int | None, out: int | None) -> None:
    check_allocator(allocator)
    content = bytes_of(_at(arguments(), index).name) + b"\0"
    block = allocate(len(content))
    ctypes.memmove(block, content, len(content))
    write_pointer(out, block)


def _at(arguments: Sequence[Argument], index: int) -> Argument:
    if index >= len(arguments):
        raise InvalidArgument(f"the library asks for number {index} of {len(arguments)}")
    return arguments[index]


def _type_of(argument: Argument) -> TensorType | None:
    """Return the type of a tensor, None for other values; a dimension without a name is one that nobody knows."""
    if not argument.type.startswith("tensor("):
        return None
    shape = [dim if isinstance(dim, int) else anonymous() if dim is None else symbol(dim) for dim in argument.shape]
    return TensorType(DataType.parse(argument.type[len("tensor(") : -1]), tuple(shape))


@entry(ENTRIES, "RunOptionsSetTerminate", POINTER)
def _terminate(options: int | None) -> None:
    find(options, _RunOptions).held.terminate = True


@entry(ENTRIES, "RunOptionsUnsetTerminate", POINTER)
def _go_on(options: int | None) -> None:
    find(options, _RunOptions).held.terminate = False


@entry(ENTRIES, "Run", POINTER, POINTER, POINTER, POINTER, SIZE, POINTER, SIZE, POINTER)
def _run(
    session: int | None,
    options: int | None,
    input_names: int | None,
    inputs: int | None,
    input_count: int,
    output_names: int | None,
    output_count: int,
    outputs: int | None,
) -> None:
    held = find(session, _Session).held
    said = find(options, _RunOptions).held if options else None
    fed = [find_value(address).content for address in _words(inputs, input_count)]
    names = [read_text(address) for address in _words(output_names, output_count)]
    feed = dict(zip((read_text(address) for address in _words(input_names, input_count)), fed, strict=True))
    targets = _words(outputs, output_count)
    results = held.run(names, feed, said)
    made: list[HostValue] = []
    try:
        for target, result in zip(targets, results, strict=True):
            if target:
                _fill(find_value(target), result)
            else:
                made.append(_value_of(result))
    except BaseException:
        for value in made:
            value.forget()
        raise
    fresh = iter(made)
    for index, target in enumerate(targets):
        if not target and outputs:
            ctypes.c_uint64.from_address(outputs + 8 * index).value = next(fresh).address


def _words(address: int | None, count: int) -> list[int]:
    if not count:
        return []
    if not address:
        raise InvalidArgument(f"the library gave NULL where a list of {count} is expected")
    return list((ctypes.c_uint64 * count).from_address(address))


def _value_of(result: OnnxValue) -> HostValue:
    return make_value(result) if isinstance(result, np.ndarray) else make_container(result)


def _fill(target: HostValue, result: OnnxValue) -> None:
    """Store a result in a tensor that the library gave for it."""
    array = target.array
    if array is None or not isinstance(result, np.ndarray) or (array.shape, array.dtype) != (result.shape, result.dtype):
        found = f"{result.dtype} of shape {result.shape}" if isinstance(result, np.ndarray) else type(result).__name__
        raise InvalidArgument(f"an output is {found}, which does not fit the value that the library gave for it")
    target.encoded = None
    array[...] = result


def _release(name: str) -> None:
    entry(ENTRIES, name, POINTER, returns=None)(drop)


for _name in ("ReleaseEnv", "ReleaseSession", "ReleaseSessionOptions", "ReleaseRunOptions"):
    _release(_name)
