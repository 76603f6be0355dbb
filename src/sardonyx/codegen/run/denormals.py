"""Denormal numbers as zero in a thread that computes with NumPy, by the processor's control word (`control_word`)."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator

from sardonyx import config
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64
from sardonyx.codegen.run.control_word import flush_bits, read_control, write_control
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import host_target
from sardonyx.disk_cache import shared_cache
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["flushing_denormals"]


@dataclass(frozen=True, slots=True)
class _Control:
    """The control word of the calling thread."""

    read: Callable[[], int]
    write: Callable[[int], None]
    bits: int
    engine: Engine


@functools.cache
def _control() -> _Control:
    target = host_target(config.isa())
    module = Module(target)
    with module.function("control_read", returns=I64, export=True) as b:
        b.give(read_control(b))
    with module.function("control_write", I64, export=True) as b:
        write_control(b, b.arguments[0])
    engine = Engine(target, cache=shared_cache())
    engine.add(module)
    read = ctypes.CFUNCTYPE(ctypes.c_int64)(engine.address("control_read"))
    write = ctypes.CFUNCTYPE(None, ctypes.c_int64)(engine.address("control_write"))
    return _Control(read, write, flush_bits(target), engine)


@contextlib.contextmanager
def flushing_denormals() -> Iterator[None]:
    """Have this thread compute with zeros for denormal numbers while the context lasts; what it did before is restored."""
    control = _control()
    before = control.read()
    control.write(before | control.bits)
    try:
        yield
    finally:
        control.write(before)
