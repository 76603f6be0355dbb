"""Memory of the C library."""

from __future__ import annotations

import ctypes

from sardonyx.custom_ops.abi.c_memory import allocate, fallback_table, free, idle_function


def test_memory_can_be_written() -> None:
    """Also where nothing is asked for there is an address."""
    address = allocate(16)
    ctypes.memset(address, 7, 16)
    assert ctypes.string_at(address, 2) == b"\7\7"
    free(address)
    free(allocate(0))


def test_the_idle_function_returns_success() -> None:
    """Whatever it is given."""
    idle = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(idle_function())
    assert [idle(None, 0), idle(1234, 99)] == [0, 0]


def test_the_fallback_table_stays_where_it_is() -> None:
    """Values carry its address."""
    assert fallback_table() == fallback_table()
