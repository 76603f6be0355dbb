"""The functions of OrtApi that every kernel calls, as machine code: they answer from a frame's words in a few nanoseconds.

What they cannot answer (a new shape of an output, a type that the library is to release, a wrong index) they hand to the same
function in Python, whose address they find by the words. Where the kernel compiler does not work, Python answers all.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.types import I32, I64
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import host_target
from sardonyx.custom_ops.abi.chain import CHAIN_WORDS, FIRST, LAST, STATUS, STEP_WORDS, RunChain, run_in_python
from sardonyx.custom_ops.abi.frame import HEADER_WORDS, MADE
from sardonyx.custom_ops.abi.statuses import NULL_STATUS
from sardonyx.custom_ops.abi.values import COUNT, DATA, DIMS, OWNED, PRESENT, RANK, TYPE
from sardonyx.custom_ops.abi.values import FALLBACKS as FALLBACKS_WORD
from sardonyx.disk_cache import shared_cache
from sardonyx.dtypes import DataType
from sardonyx.errors import SardonyxError
from sardonyx.trace import event

__all__ = ["FALLBACKS", "native_functions"]

FALLBACKS = (
    "KernelContext_GetInput",
    "KernelContext_GetOutput",
    "GetTensorTypeAndShape",
    "ReleaseTensorTypeAndShapeInfo",
    "GetTensorMutableData",
    "GetTensorShapeElementCount",
)
"""The functions in Python that native ones call, in the order of the table whose address is in the words."""

_CONTEXT_FALLBACKS = 2
_RUN = "ort_run_chain"
_PLAIN = Address(I64, unique=False)


def native_functions() -> tuple[object, dict[str, int], RunChain]:
    """Compile the functions, or take them from the cache.

    Returns:
        The engine that owns them, the address of each by name, and what runs the kernels of a chain. Where they cannot be compiled
        the engine is None, and there are none.
    """
    try:
        engine = Engine(host_target(), cache=shared_cache())
        module = Module(engine.target)
        for name, (arguments, write) in _WRITERS.items():
            with module.function(f"ort_{name}", *arguments, returns=I64, export=True) as b:
                _refuse_null(b, name)
                write(b)
                b.give(b.const(I64, 0))
        with module.function(_RUN, _PLAIN, returns=I64, export=True) as b:
            _run(b)
        engine.add(module)
    except SardonyxError as error:
        event("custom_op.no_native_functions", error=str(error))
        return None, {}, run_in_python
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(engine.address(_RUN))
    return engine, {name: engine.address(f"ort_{name}") for name in _WRITERS}, run


def _refuse_null(b: Function, name: str) -> None:
    """Give a status where what is asked, or where the answer goes, is NULL; a release takes it, and a scalar has no dimensions."""
    if name == "ReleaseTensorTypeAndShapeInfo":
        return
    first, last = (_as_word(b, b.addresses[place]).eq(0) for place in (0, -1))
    if name == "GetDimensions":
        last = last & (b.arguments[0] > 0)
    with b.when(first | last):
        b.give(b.const(I64, NULL_STATUS))


def _call_python(b: Function, table: Pointer, name: str, *arguments: Register) -> None:
    """Return what the function in Python returns."""
    b.give(b.call(table.load_pointer(FALLBACKS.index(name), I64), *arguments, returns=I64))


def _fallbacks(value: Pointer) -> Pointer:
    return value.load_pointer(FALLBACKS_WORD, I64)


def _input_count(b: Function) -> None:
    context, out = b.addresses
    out.store(context.load(0))


def _output_count(b: Function) -> None:
    context, out = b.addresses
    out.store(context.load(1))


def _input(b: Function) -> None:
    context, out = b.addresses
    (index,) = b.arguments
    with b.when((index < 0) | (index >= context.load(0))):
        _call_python(b, context.load_pointer(_CONTEXT_FALLBACKS, I64), "KernelContext_GetInput", context, index, out)
    place = context.load(index + HEADER_WORDS)
    out.store(0)
    with b.when(place.ne(0)), b.when(context.load_pointer(index + HEADER_WORDS, I64).load(PRESENT).ne(0)):
        out.store(place)


def _as_word(b: Function, pointer: Pointer) -> Register:
    return b.value(f"ptrtoint ptr {pointer.ref} to i64", I64)


def _output(b: Function) -> None:
    context, dims, out = b.addresses
    index, count = b.arguments
    table = context.load_pointer(_CONTEXT_FALLBACKS, I64)
    arguments = context, index, dims, count, out
    with b.when((index < 0) | (index >= context.load(1)) | ((count > 0) & _as_word(b, dims).eq(0))):
        _call_python(b, table, "KernelContext_GetOutput", *arguments)
    place = index + context.load(0) + HEADER_WORDS
    with b.when(context.load(place).eq(0)):
        out.store(0)
        b.give(b.const(I64, 0))
    value = context.load_pointer(place, I64)
    with b.when(value.load(PRESENT).eq(0) | value.load(RANK).ne(count)):
        _call_python(b, table, "KernelContext_GetOutput", *arguments)
    known = value.load_pointer(DIMS, I64)
    with b.loop(0, count) as axis, b.when(known.load(axis).ne(dims.load(axis))):
        _call_python(b, table, "KernelContext_GetOutput", *arguments)
    value.store(MADE, PRESENT)
    out.store(_as_word(b, value))


def _type_and_shape(b: Function) -> None:
    value, out = b.addresses
    with b.when(value.load(OWNED).ne(0)):
        _call_python(b, _fallbacks(value), "GetTensorTypeAndShape", value, out)
    out.store(_as_word(b, value))


def _release_info(b: Function) -> None:
    (info,) = b.addresses
    with b.when(_as_word(b, info).eq(0)):
        b.give(b.const(I64, 0))
    with b.when(info.load(OWNED).ne(0)):
        _call_python(b, _fallbacks(info), "ReleaseTensorTypeAndShapeInfo", info)


def _element_type(b: Function) -> None:
    info, out = b.addresses
    out.of(I32).store(info.load(TYPE).to(I32))


def _dimensions_count(b: Function) -> None:
    info, out = b.addresses
    out.store(info.load(RANK))


def _dimensions(b: Function) -> None:
    info, out = b.addresses
    (count,) = b.arguments
    dims = info.load_pointer(DIMS, I64)
    with b.loop(0, b.min(count, info.load(RANK))) as axis:
        out.store(dims.load(axis), axis)


def _element_count(b: Function) -> None:
    info, out = b.addresses
    with b.when(info.load(COUNT) < 0):
        _call_python(b, _fallbacks(info), "GetTensorShapeElementCount", info, out)
    out.store(info.load(COUNT))


def _data(b: Function) -> None:
    value, out = b.addresses
    with b.when(value.load(TYPE).eq(int(DataType.STRING)) | value.load(PRESENT).eq(0)):
        _call_python(b, _fallbacks(value), "GetTensorMutableData", value, out)
    out.store(value.load(DATA))


def _run(b: Function) -> None:
    """Write the loop over the kernels of a chain; see `chain.run_in_python`, which does the same."""
    (words,) = b.addresses
    with b.loop(words.load(FIRST), words.load(LAST)) as number:
        step = words.at(number * STEP_WORDS + CHAIN_WORDS)
        frame = step.load_pointer(2, I64)
        count, outputs, needed = frame.load(1), frame.at(frame.load(0) + HEADER_WORDS), frame.load(3)
        with b.loop(0, count) as index, b.when(outputs.load(index).ne(0)):
            value = outputs.load_pointer(index, I64)
            value.store(b.min(value.load(PRESENT), 1), PRESENT)
        status = b.call(step.load_pointer(0, I64), step.load_pointer(1, I64), frame, returns=I64)
        with b.when((status.ne(0)) & (step.load(3).ne(0))):
            words.store(status, STATUS)
            b.give(number)
        with b.loop(0, count) as index, b.when(((needed >> index) & 1).ne(0) & outputs.load(index).ne(0)):
            value = outputs.load_pointer(index, I64)
            with b.when(value.load(PRESENT).ne(MADE)):
                words.store(0, STATUS)
                b.give(number)
    b.give(b.const(I64, -1))


_WRITERS: dict[str, tuple[tuple[Any, ...], Callable[[Function], None]]] = {
    "KernelContext_GetInputCount": ((_PLAIN, _PLAIN), _input_count),
    "KernelContext_GetOutputCount": ((_PLAIN, _PLAIN), _output_count),
    "KernelContext_GetInput": ((_PLAIN, I64, _PLAIN), _input),
    "KernelContext_GetOutput": ((_PLAIN, I64, _PLAIN, I64, _PLAIN), _output),
    "GetTensorTypeAndShape": ((_PLAIN, _PLAIN), _type_and_shape),
    "ReleaseTensorTypeAndShapeInfo": ((_PLAIN,), _release_info),
    "GetTensorElementType": ((_PLAIN, _PLAIN), _element_type),
    "GetDimensionsCount": ((_PLAIN, _PLAIN), _dimensions_count),
    "GetDimensions": ((_PLAIN, _PLAIN, I64), _dimensions),
    "GetTensorShapeElementCount": ((_PLAIN, _PLAIN), _element_count),
    "GetTensorMutableData": ((_PLAIN, _PLAIN), _data),
    "GetTensorData": ((_PLAIN, _PLAIN), _data),
}
"""Name -> the types of its arguments, and what writes its body."""
