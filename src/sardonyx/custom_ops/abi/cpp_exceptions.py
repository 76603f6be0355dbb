"""Functions of a library that may throw C++ exceptions: what they throw is caught before it reaches us, and becomes an error.

    Python, or the loop over a chain ─► guard(words, …) ─► function of the library
                                          ▲                       │ throws
                                          └─ landing ◄─ unwinder ◄┘

The guard is machine code with a table for the unwinder, by which it catches everything. The C interface allows no exceptions,
and without a guard the unwinder finds nobody and ends the process, with a line on standard error that names the exception.

    words = function | first argument | what was thrown | mask of the result | result where something was thrown

Guards work on Linux for x86-64, for libraries that throw by the shared libgcc_s, as compilers link by default.

Source: System V ABI, AMD64 supplement (calls, DWARF register numbers); Itanium C++ ABI, "Exception Handling" (personality routines)
and "Run-Time Type Information"; DWARF 4, section 6.4 (call frame information).
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

from sardonyx.codegen.run.elf import Pages, is_supported
from sardonyx.errors import RuntimeException
from sardonyx.trace import event

__all__ = ["GuardedCall", "protect"]

_PERSONALITY, _TABLES = 0x30, 0x90
_BODY_BYTES, _LANDING = 0x27, 0x1D
_GUARD = bytes.fromhex(
    "55"  # push rbp
    "4889e5"  # mov rbp, rsp
    "53"  # push rbx
    "4883ec08"  # sub rsp, 8
    "4889fb"  # mov rbx, rdi
    "488b7b08"  # mov rdi, [rbx + 8]
    "ff13"  # call [rbx]
    "48234318"  # and rax, [rbx + 24]
    "4883c408"  # add rsp, 8
    "5b5dc3"  # pop rbx; pop rbp; ret
    "48894310"  # landing: mov [rbx + 16], rax
    "488b4320"  # mov rax, [rbx + 32]
    "ebef"  # jmp to the add
)
_THROWN = 2
_GNU_CLASS = 0x474E5543432B2B00
"""The exception class of C++ exceptions that GCC and Clang throw, but for the last byte."""
_HEADER_BYTES = 32
"""Of an _Unwind_Exception, behind which the object that was thrown lies."""
_NO_LOAD = 4  # RTLD_NOLOAD of dlfcn.h
_DO_CATCH, _WHAT = 4, 2
"""Places in the tables of virtual functions of std::type_info and std::exception."""

Words = ctypes.c_int64 * 5


def _personality(base: int, set_register: int, set_address: int) -> bytes:
    """Return the routine that the unwinder asks: it catches all that is thrown, and nothing that ends a thread."""
    return b"".join(
        (
            bytes.fromhex("40f6c601 7544"),  # test sil, 1 (search phase); jnz found
            bytes.fromhex("40f6c608 7544"),  # test sil, 8 (forced); jnz onwards
            bytes.fromhex("40f6c604 743e"),  # test sil, 4 (handler frame); jz onwards
            bytes.fromhex("53 4c89c3 4889ca 4c89c7 31f6"),  # push rbx; mov rbx, r8; mov rdx, rcx; mov rdi, r8; xor esi, esi
            b"\x48\xb8" + struct.pack("<Q", set_register) + b"\xff\xd0",  # rax = what was thrown
            b"\x48\xbe" + struct.pack("<Q", base + _LANDING),
            bytes.fromhex("4889df"),  # mov rdi, rbx
            b"\x48\xb8" + struct.pack("<Q", set_address) + b"\xff\xd0",
            bytes.fromhex("b807000000 5b c3"),  # _URC_INSTALL_CONTEXT
            bytes.fromhex("b806000000 c3"),  # found: _URC_HANDLER_FOUND
            bytes.fromhex("b808000000 c3"),  # onwards: _URC_CONTINUE_UNWIND
        )
    )


def _tables(base: int) -> bytes:
    """Return what the unwinder reads of the guard: where its caller's registers lie, and its personality."""
    common = struct.pack("<IB4sBBBBBQB", 0, 1, b"zPR\0", 1, 0x78, 16, 10, 0, base + _PERSONALITY, 0)
    common += bytes.fromhex("0c0708 9001")  # the frame begins at rsp + 8; the return address lies 8 before
    common += bytes(-len(common) % 8 + 4)
    own = struct.pack("<IQQB", len(common) + 8, base, _BODY_BYTES, 0)
    own += bytes.fromhex("41 0e10 8602 43 0d06 41 8303")  # rbp 16 before; the frame begins at rbp + 16; rbx 24 before
    own += bytes(-len(own) % 8 + 4)
    return struct.pack("<I", len(common)) + common + struct.pack("<I", len(own)) + own + bytes(4)


@functools.cache
def _guard() -> tuple[int, Pages] | None:
    """Return the guard's address, and the memory that it lies in until the process ends; None where there is none."""
    if not is_supported():
        return None
    try:
        unwinder = ctypes.CDLL("libgcc_s.so.1")
        register, set_register, set_address = (
            ctypes.cast(getattr(unwinder, name), ctypes.c_void_p).value or 0
            for name in ("__register_frame", "_Unwind_SetGR", "_Unwind_SetIP")
        )
    except (OSError, AttributeError) as error:
        event("custom_op.no_guard", error=str(error))
        return None
    pages = Pages(4096)
    base = pages.address
    content = _GUARD.ljust(_PERSONALITY, b"\xcc") + _personality(base, set_register, set_address)
    pages.fill(content.ljust(_TABLES, b"\xcc") + _tables(base))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(register)(base + _TABLES)
    return base, pages


class GuardedCall:
    """A function of a library that is called with one first argument, guarded where guards work; for one call at a time."""

    __slots__ = ("_words", "argument", "function", "is_guarded")

    def __init__(self, function: int, argument: int, *, returns_status: bool) -> None:
        """Prepare calls.

        Args:
            function: the address.
            argument: what it gets first.
            returns_status: whether what it returns counts; else a guarded call returns 0. Where it throws, 1 is returned.
        """
        guard = _guard()
        self._words = Words(function, argument, 0, -1 if returns_status else 0, 1)
        self.is_guarded = guard is not None
        self.function, self.argument = (function, argument) if guard is None else (guard[0], ctypes.addressof(self._words))

    def raise_thrown(self, place: str) -> None:
        """Raise RuntimeException where the last call threw something; `place` is what messages call it."""
        _raise_thrown(self._words, place)


def protect(function: int, result: Any, arguments: Sequence[Any], place: str) -> Callable[..., Any]:
    """Return a function of a library, of up to four integer arguments and at least one, as Python calls it.

    Args:
        function: the address.
        result: the ctypes type of its result, None for none.
        arguments: those of its arguments.
        place: what messages call it.

    Returns:
        A function that raises RuntimeException where the library throws a C++ exception and guards work.
    """
    guard = _guard()
    if guard is None:
        plain: Callable[..., Any] = ctypes.CFUNCTYPE(result, *arguments)(function)
        return plain
    guarded = ctypes.CFUNCTYPE(result, ctypes.c_void_p, *arguments[1:])(guard[0])

    def call(first: int | None, *others: object) -> Any:
        words = Words(function, first or 0, 0, -1, 0)
        found = guarded(ctypes.addressof(words), *others)
        if words[_THROWN]:
            _raise_thrown(words, place)
        return found

    return call


def _raise_thrown(words: Any, place: str) -> None:
    thrown, words[_THROWN] = words[_THROWN], 0
    if thrown:
        raise RuntimeException(
            f"{place}: the library threw {_describe(thrown)} out of its function; a library of the C interface returns a status"
        )


def _describe(thrown: int) -> str:
    """Return the type of what was thrown, and its text where it is a std::exception; it is freed."""
    runtime = _cpp_runtime() if ctypes.c_uint64.from_address(thrown).value & ~0xFF == _GNU_CLASS else None
    if runtime is None:
        ctypes.CDLL("libgcc_s.so.1")._Unwind_DeleteException(ctypes.c_void_p(thrown))
        return "an exception"
    is_primary = ctypes.c_uint64.from_address(thrown).value == _GNU_CLASS  # the object follows; else it is another exception's
    runtime.__cxa_begin_catch(thrown)
    try:
        kind = runtime.__cxa_current_exception_type()
        name = (ctypes.c_char_p.from_address(kind + 8).value or b"").lstrip(b"*")
        text = _text_of(runtime, kind, thrown + _HEADER_BYTES) if is_primary else ""
        return f"a C++ exception of type {_readable(runtime, name)}" + (f" ({text})" if text else "")
    finally:
        runtime.__cxa_end_catch()


def _text_of(runtime: Any, kind: int, instance: int) -> str:
    """Return what() of an object of a class that derives from std::exception; "" for others."""
    base = ctypes.addressof(ctypes.c_char.in_dll(runtime, "_ZTISt9exception"))
    place = ctypes.c_void_p(instance)
    derives = ctypes.CFUNCTYPE(ctypes.c_bool, *(ctypes.c_void_p,) * 3, ctypes.c_uint)(_virtual(base, _DO_CATCH))
    if not derives(base, kind, ctypes.addressof(place), 1) or not place.value:
        return ""
    what = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(_virtual(place.value, _WHAT))
    return (what(place.value) or b"").decode("utf-8", "replace")


def _virtual(instance: int, place: int) -> int:
    table = ctypes.c_uint64.from_address(instance).value
    return ctypes.c_uint64.from_address(table + 8 * place).value


def _readable(runtime: Any, name: bytes) -> str:
    status = ctypes.c_int()
    made = runtime.__cxa_demangle(name, None, None, ctypes.byref(status))
    if not made:
        return name.decode("ascii", "replace")
    text = ctypes.string_at(made).decode("utf-8", "replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(made))
    return text


@functools.cache
def _cpp_runtime() -> Any:
    """Return the C++ runtime library of the process; None where a library brought one of its own that nobody sees."""
    try:
        runtime = ctypes.CDLL("libstdc++.so.6", mode=_NO_LOAD)
    except OSError:
        return None
    runtime.__cxa_begin_catch.argtypes = (ctypes.c_void_p,)
    runtime.__cxa_current_exception_type.restype = ctypes.c_void_p
    runtime.__cxa_demangle.restype = ctypes.c_void_p
    return runtime
