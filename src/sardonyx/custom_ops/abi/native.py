"""The functions of OrtApi that every kernel calls, as machine code: they answer from a frame's words in a few nanoseconds.

What they cannot answer (a new shape of an output, a type that the library is to release, a wrong index) they hand to the same
function in Python, whose address they find by the words. Where the kernel compiler does not work, Python answers all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.types import I32, I64
from sardonyx.codegen.emit.values import Pointer, Value
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import host_target
from sardonyx.custom_ops.abi.frame import HEADER_WORDS
from sardonyx.custom_ops.abi.values import COUNT, DATA, DIMS, OWNED, PRESENT, RANK, SLOT_WORDS, TYPE
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
_PLAIN = Address(I64, unique=False)


def native_functions() -> tuple[Any, dict[str, int]]:
    """Compile the functions, or take them from the cache; the engine that owns them, and the address of each by name.

    Where they cannot be compiled the engine is None, and there are none.
    """
    try:
        engine = Engine(host_target(), cache=shared_cache())
        module = Module(engine.target)
        for name, (arguments, write) in _WRITERS.items():
            with module.function(f"ort_{name}", *arguments, returns=I64, export=True) as b:
                write(b)
                b.give(b.const(I64, 0))
        engine.add(module)
    except SardonyxError as error:
        event("custom_op.no_native_functions", error=str(error))
        return None, {}
    return engine, {name: engine.address(f"ort_{name}") for name in _WRITERS}


def _call_python(b: Function, table: Pointer, name: str, *arguments: Value) -> None:
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
    outside = (index < 0) | (index >= context.load(0))
    with b.when(outside):
        _call_python(b, context.load_pointer(_CONTEXT_FALLBACKS, I64), "KernelContext_GetInput", context, index, out)
    value = context.at(index * SLOT_WORDS + HEADER_WORDS)
    out.store(0)
    with b.when(value.load(PRESENT).ne(0)):
        out.of(I64).store(_as_word(b, value))


def _as_word(b: Function, pointer: Pointer) -> Value:
    return b.value(f"ptrtoint ptr {pointer.ref} to i64", I64)


def _output(b: Function) -> None:
    context, dims, out = b.addresses
    index, count = b.arguments
    table = context.load_pointer(_CONTEXT_FALLBACKS, I64)
    arguments = context, index, dims, count, out
    with b.when((index < 0) | (index >= context.load(1))):
        _call_python(b, table, "KernelContext_GetOutput", *arguments)
    value = context.at((index + context.load(0)) * SLOT_WORDS + HEADER_WORDS)
    with b.when(value.load(PRESENT).eq(0) | value.load(RANK).ne(count)):
        _call_python(b, table, "KernelContext_GetOutput", *arguments)
    known = value.load_pointer(DIMS, I64)
    with b.loop(0, count) as axis, b.when(known.load(axis).ne(dims.load(axis))):
        _call_python(b, table, "KernelContext_GetOutput", *arguments)
    value.store(2, PRESENT)
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
