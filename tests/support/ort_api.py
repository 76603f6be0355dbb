"""Calls of OrtApi as a library makes them: by the table's addresses."""

from __future__ import annotations

import ctypes
from typing import Any

from sardonyx.custom_ops.abi.names import INDEX
from sardonyx.custom_ops.abi.statuses import raise_status
from sardonyx.custom_ops.abi.table import shared_api

__all__ = ["ask", "call"]


def call(name: str, *arguments: Any, returns: Any = ctypes.c_void_p) -> Any:
    """Call a function of the table: ints are passed as 64 bits, texts as pointers, ctypes objects as they are."""
    address = ctypes.c_uint64.from_address(shared_api().api + 8 * INDEX[name]).value
    given = [ctypes.c_uint64(item) if isinstance(item, int) else item for item in arguments]
    return ctypes.CFUNCTYPE(returns)(address)(*given)


def ask(name: str, *arguments: Any, out: Any = ctypes.c_uint64) -> Any:
    """Call a function that returns a status and writes its result to its last argument; the result, or the error."""
    result = out()
    raise_status(call(name, *arguments, ctypes.byref(result)), name)
    return result.value
