"""What machine code that Python calls shares: the words of the process, and how code reads words and objects.

Words are 64 bits; a record is a row of them, whose places are named by a tuple: `field(entry, ENTRY, "inputs")`.

Sources: CPython's C interface; NumPy's `PyArrayObject_fields`, whose layout is part of its binary interface.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Address
from sardonyx.codegen.emit.types import I32, I64, PTR, Type
from sardonyx.codegen.emit.values import Pointer, Register

__all__ = [
    "CALL",
    "FUNCTIONS",
    "PLAIN",
    "TYPE",
    "WORDS",
    "call_python",
    "field",
    "half",
    "set_field",
    "type_of",
    "word",
    "words_at",
]

FUNCTIONS = (
    "PyDict_GetItemWithError",
    "PyDict_Size",
    "PyErr_CheckSignals",
    "PyErr_Clear",
    "PyErr_Occurred",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyList_New",
    "PyList_SetItem",
    "PyObject_Vectorcall",
    "PyUnicode_Compare",
    "PyWeakref_NewRef",
    "Py_DecRef",
    "Py_IncRef",
)
"""The functions of CPython that are called; all are exported by every CPython since 3.9."""

CALL = (
    *FUNCTIONS,
    "PyArray_NewFromDescr",
    "PyArray_SetBaseObject",
    "array_type",
    "dict_type",
    "list_type",
    "str_type",
    "none",
    "generation",
)
"""Words of the process: addresses of functions and of objects; `generation` counts the forks."""

PLAIN = Address(I64, unique=False)
"""An argument that is the address of words."""
TYPE, WORDS = 1, 2
"""Places in an object: its type; and, in one of ctypes, the address of its memory."""


def call_python(b: Function, call: Pointer, name: str, *arguments: Register, returns: Type = I64) -> Register:
    """Call a function of CPython or NumPy by its name; objects are integers of 64 bits."""
    return b.call(Register(b, PTR, word(call, name).to(PTR).ref), *arguments, returns=returns)


def word(call: Pointer, name: str) -> Register:
    """Return a word of the process."""
    return call.load(CALL.index(name))


def field(record: Pointer, names: tuple[str, ...], name: str) -> Register:
    """Return the word of a record."""
    return record.load(names.index(name))


def set_field(record: Pointer, names: tuple[str, ...], name: str, value: Register | int) -> None:
    """Write the word of a record."""
    record.store(value, names.index(name))


def words_at(b: Function, address: Register) -> Pointer:
    """Return the words at an address, or of an object."""
    return Pointer(b, address.to(PTR).ref, I64)


def type_of(b: Function, item: Register) -> Register:
    """Return the type of an object."""
    return words_at(b, item).load(TYPE)


def half(record: Pointer, place: int) -> Register:
    """Return the lower 32 bits of a word, on machines with the lower half first."""
    return record.of(I32).load(2 * place).to(I64)
