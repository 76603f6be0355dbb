"""Built-in functions of machine code, by which sessions and bindings run, and the words that they read.

A session has a function of its own, whose `self` is its EntryWords. Its arguments are those of the method that calls it, and for
whatever does not fit it calls another method with them.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.python_call import write_run, write_run_bound
from sardonyx.codegen.run.python_results import BLOCK_OFFSET, write_give_back
from sardonyx.codegen.run.python_words import BLOCK, BOUND, CALL, CAPSULE_POINTER, ENTRY, FUNCTIONS, MOST_ARRAYS, POOL
from sardonyx.codegen.target import host_target
from sardonyx.errors import SardonyxError
from sardonyx.forks import renew_in_child
from sardonyx.providers.cpu.library import edition, kernel_cache
from sardonyx.runtime.native_lanes import words
from sardonyx.trace import event

__all__ = ["BoundWords", "EntryWords", "NativeCode", "PoolWords", "native_code"]

_OLDEST, _NEWEST = (3, 11), (3, 14)
"""The versions of CPython whose objects are laid out as the function expects."""
_FASTCALL = 0x0080
_OF_NUMPY = {"PyArray_NewCopy": 85, "PyArray_NewFromDescr": 94, "PyArray_SetBaseObject": 282}
"""The places of NumPy's functions in its table."""


class EntryWords(ctypes.c_int64 * len(ENTRY)):  # type: ignore[misc]  # a type that ctypes makes
    """The words of a session, which keep what they point to."""

    kept: tuple[object, ...] = ()


class BoundWords(ctypes.c_int64 * len(BOUND)):  # type: ignore[misc]  # a type that ctypes makes
    """The words of a binding, which keep what they point to."""

    kept: tuple[object, ...] = ()


class PoolWords(ctypes.c_int64 * (len(POOL) + MOST_ARRAYS)):  # type: ignore[misc]  # a type that ctypes makes
    """The blocks of memory that no large result of a session lies in. Results keep it, as they give their blocks back to it."""

    @classmethod
    def of(cls, most: int) -> Self:
        """Make a pool that keeps at most `most` blocks, and has none yet."""
        pool = cls()
        pool[POOL.index("owner")], pool[POOL.index("most")] = id(pool), min(most, MOST_ARRAYS)
        return pool

    @property
    def idle_bytes(self) -> int:
        """How many bytes its blocks have."""
        return sum(_block_word(block, "capacity") for block in self._blocks)

    def trim(self) -> int:
        """Free its blocks; returns their bytes."""
        dropped, blocks = self.idle_bytes, self._blocks
        self[POOL.index("count")] = 0
        for block in blocks:
            _free(_block_word(block, "memory"))
        return dropped

    @property
    def _blocks(self) -> list[int]:
        first = POOL.index("blocks")
        return list(self[first : first + self[POOL.index("count")]])

    def __del__(self) -> None:
        self.trim()


_free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyMem_RawFree", ctypes.pythonapi))


def _block_word(block: int, name: str) -> int:
    return int(ctypes.c_int64.from_address(block - BLOCK_OFFSET + 8 * BLOCK.index(name)).value)


class _Method(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("text", ctypes.c_char_p))


class NativeCode:
    """The code of both functions, and the words of the process that it reads. Use `native_code`: there is one in a process."""

    def __init__(self, engine: Engine) -> None:
        """Take the addresses of what the code calls and compares with."""
        self._engine = engine
        self._methods = {kind: _Method(name, engine.address(symbol), _FASTCALL) for kind, (symbol, name) in _SYMBOLS.items()}
        objects = {"array_type": np.ndarray, "dict_type": dict, "list_type": list, "str_type": str, "none": None}
        numbers = {name: id(item) for name, item in objects.items()} | {name: _address(name) for name in FUNCTIONS}
        numbers |= {name: _numpy_functions()[place] for name, place in _OF_NUMPY.items()} | {"generation": 0}
        numbers["python_give_back"] = engine.address("python_give_back")
        self._words = words(numbers[name] for name in CALL)
        self.address = ctypes.addressof(self._words)
        """Where the words are."""
        renew_in_child(self)

    @property
    def generation(self) -> int:
        """How many forks lie between this process and the first one.

        Entries of another generation are not used: they name threads of the parent, which the child of a fork lacks.
        """
        return int(self._words[CALL.index("generation")])

    def after_fork(self) -> None:
        """Count the fork."""
        self._words[CALL.index("generation")] += 1

    def function(self, owner: EntryWords | BoundWords) -> Callable[..., Any]:
        """Return the built-in function that reads the words of a session, or those of a binding."""
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        method = self._methods[type(owner)]
        made: Callable[..., Any] = make(("PyCFunction_NewEx", ctypes.pythonapi))(ctypes.addressof(method), owner, None)
        return made


_SYMBOLS: dict[type, tuple[str, bytes]] = {
    EntryWords: ("python_run", b"run"),
    BoundWords: ("python_run_bound", b"run_with_iobinding"),
}


@functools.cache
def native_code() -> NativeCode | None:
    """Return the code; None where this interpreter, or NumPy, is none that it knows, or where it cannot be compiled."""
    if not _is_known():
        event("session.no_native_run", python=sys.version, numpy=np.__version__)
        return None
    try:
        engine = Engine(host_target(), cache=kernel_cache())
        engine.add_kernels(
            {"python_run": write_run, "python_run_bound": write_run_bound, "python_give_back": write_give_back}, edition()
        )
    except SardonyxError as error:
        event("session.no_native_run", error=str(error))
        return None
    return NativeCode(engine)


def _address(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def _numpy_functions() -> Any:  # a pointer, which is indexed
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    from_numpy = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]  # where its headers find it too
    return ctypes.cast(get(from_numpy, None), ctypes.POINTER(ctypes.c_int64))


def _is_known() -> bool:
    """Return whether objects are laid out as the function expects: by version, and by what memory shows."""
    if sys.implementation.name != "cpython" or not _OLDEST <= sys.version_info[:2] <= _NEWEST or sys.byteorder != "little":
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED") or sys.maxsize < 1 << 32 or np.lib.NumpyVersion(np.__version__).major != 2:
        return False
    array, listed, owner = np.zeros((3, 5), np.float32)[1:], ["a", "b"], EntryWords()
    _, kind, data, rank, sizes, _, _, dtype, flags = _memory(array, 9)
    _, list_type, length, items = _memory(listed, 4)
    found = [kind, data, rank & 0xFFFFFFFF, dtype, flags & 0xFFFFFFFF, list_type, length]
    expected = [id(np.ndarray), array.ctypes.data, 2, id(array.dtype), array.flags.num, id(list), 2]
    if found != expected or _memory(owner, 3)[1:] != [id(EntryWords), ctypes.addressof(owner)]:
        return False
    if _numpy_functions()[2] != id(np.ndarray) or not _knows_dtypes() or not _knows_capsules():
        return False
    return _words_at(sizes, 2) == [2, 5] and _words_at(items, 2) == [*map(id, listed)]


def _knows_dtypes() -> bool:
    """Return whether the fourth word of a dtype is its kind, letter, byte order, one byte more, and number."""
    found = [_memory(np.dtype(letter), 4)[3] for letter in "fl?"]
    expected = [[ord(kind.kind), ord(kind.char), ord(kind.byteorder), kind.num] for kind in map(np.dtype, "fl?")]
    return [[*(word & 0xFFFFFFFF).to_bytes(4, "little")[:3], word >> 32] for word in found] == expected


def _knows_capsules() -> bool:
    """Return whether the pointer of a capsule lies where the code reads it."""
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    return _memory(make(_FASTCALL, None, None), CAPSULE_POINTER + 1)[CAPSULE_POINTER] == _FASTCALL


def _memory(item: object, count: int) -> list[int]:
    return _words_at(id(item), count)


def _words_at(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address))
