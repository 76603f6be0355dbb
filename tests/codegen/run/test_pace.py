"""When a run looks up: flags, times, the main thread."""

from __future__ import annotations

import ctypes
import time

import pytest

from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.types import BOOL, I64
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.pace import NEVER, PERIOD_NS, begin_pace, next_chunk, write_pace
from sardonyx.codegen.run.step_table import PACE_WORDS
from sardonyx.codegen.target import host_target


@pytest.fixture(scope="module")
def engine() -> Engine:
    """`begin` (state, watch, in the main thread), `look` (state), `next` (chunk, nanoseconds)."""
    module = Module(host_target())
    pace = write_pace(module)
    with module.function("begin", Address(I64, unique=False), I64, I64, returns=I64, export=True) as b:
        b.give(begin_pace(b, b.addresses[0], b.arguments[0], b.arguments[1].ne(0)).to(I64))
    with module.function("look", Address(I64, unique=False), returns=I64, export=True) as b:
        b.give(b.call(pace.look, b.addresses[0]))
    with module.function("next", I64, I64, returns=I64, export=True) as b:
        b.give(next_chunk(b, *b.arguments))
    made = Engine(host_target())
    made.add(module)
    assert BOOL.bits == 1
    return made


class _Run:
    """One call: its state, its watch and the functions on them."""

    def __init__(self, engine: Engine, *, wake_ns: int = NEVER, watched: bool = True, in_main_thread: bool = False) -> None:
        self._engine = engine
        self._state = (ctypes.c_int64 * PACE_WORDS)()
        self.flags = ctypes.c_int64(), ctypes.c_int64()
        self._watch = (ctypes.c_int64 * 3)(*map(ctypes.addressof, self.flags), wake_ns)
        watch = ctypes.addressof(self._watch) if watched else 0
        begin = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(engine.address("begin"))
        self.looks = bool(begin(ctypes.addressof(self._state), watch, in_main_thread) & 1)

    def look(self) -> int:
        """Look once."""
        call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self._engine.address("look"))
        return int(call(ctypes.addressof(self._state)))


@pytest.mark.parametrize(("watched", "main", "looks"), [(False, False, False), (True, False, True), (False, True, True)])
def test_who_looks(engine: Engine, watched: bool, main: bool, looks: bool) -> None:
    """A run that has a watch, and any run in the main thread; others read no clock."""
    assert _Run(engine, watched=watched, in_main_thread=main).looks is looks


@pytest.mark.parametrize("number", [0, 1])
def test_a_flag_pauses_at_once(engine: Engine, number: int) -> None:
    """Either of the two does."""
    run = _Run(engine)
    assert run.look() >= 0
    run.flags[number].value = 1
    assert run.look() == -1


def test_a_time_pauses_when_it_has_come(engine: Engine) -> None:
    """Not before; one in the past pauses at the first look."""
    run = _Run(engine, wake_ns=time.monotonic_ns() + 40_000_000)
    assert run.look() == 0
    time.sleep(0.1)
    assert run.look() == -1
    assert _Run(engine, wake_ns=1).look() == -1


def test_the_main_thread_pauses_periodically(engine: Engine) -> None:
    """Others go on for as long as nobody ends them."""
    main, other = _Run(engine, watched=False, in_main_thread=True), _Run(engine)
    assert (main.look(), other.look()) == (0, 0)
    time.sleep(3e-9 * PERIOD_NS)
    assert main.look() == -1
    assert other.look() > PERIOD_NS


def test_chunks_grow_until_the_clock_notices_them(engine: Engine) -> None:
    """Twice as large, as they are, or half of that, but at least one task."""
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(engine.address("next"))
    assert [call(6, 0), call(6, 4_000_000), call(6, 40_000_000), call(1, 40_000_000)] == [12, 6, 3, 1]
