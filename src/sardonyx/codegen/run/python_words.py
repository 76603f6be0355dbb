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
    "ARRAY_DATA",
    "ARRAY_DIMS",
    "ARRAY_DTYPE",
    "ARRAY_FLAGS",
    "ARRAY_RANK",
    "BLOCK",
    "BOUND",
    "CALL",
    "CAPSULE_POINTER",
    "COUNT",
    "DENSE_AND_ALIGNED",
    "DTYPE_KIND",
    "ENTRY",
    "FUNCTIONS",
    "GROWTH",
    "INPUT",
    "LANE",
    "LANES",
    "LIST_ITEMS",
    "LIST_SIZE",
    "MOST_ARRAYS",
    "OUTPUT",
    "PLAIN",
    "POOL",
    "SHAPES",
    "TYPE",
    "WORDS",
    "WRITEABLE",
    "call_python",
    "field",
    "half",
    "set_field",
    "type_of",
    "word",
    "words_at",
]

FUNCTIONS = (
    "PyCapsule_New",
    "PyDict_GetItemWithError",
    "PyDict_Size",
    "PyErr_CheckSignals",
    "PyErr_Clear",
    "PyErr_Occurred",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyList_New",
    "PyList_SetItem",
    "PyMem_RawFree",
    "PyMem_RawMalloc",
    "PyObject_Vectorcall",
    "PyUnicode_Compare",
    "PyWeakref_NewRef",
    "Py_DecRef",
    "Py_IncRef",
)
"""The functions of CPython that are called; all are exported by every CPython since 3.9."""

CALL = (
    *FUNCTIONS,
    "PyArray_NewCopy",
    "PyArray_NewFromDescr",
    "PyArray_SetBaseObject",
    "python_give_back",
    "array_type",
    "dict_type",
    "list_type",
    "str_type",
    "none",
    "generation",
)
"""Words of the process: addresses of functions and of objects; `generation` counts the forks."""

ENTRY = (
    "call",
    "fallback",
    "generation",
    "input_count",
    "needed",
    "inputs",
    "output_count",
    "outputs",
    "shapes_count",
    "shapes",
    "latest",
    "argument_count",
    "arguments",
    "results",
    "pool",
)
"""Words of a session; `fallback` is what runs in Python. `needed` inputs must be fed; `arguments` are the numbers of the inputs
that the program reads and `results` those of the outputs that it fills, in its order; `pool` is the address of POOL."""
INPUT = ("name", "dtype", "rank", "default")
"""Words of an input; `default` is the address of its elements where it is never fed, else 0."""
OUTPUT = ("name", "dtype", "rank", "item_bytes")
"""Words of an output; `item_bytes` are those of an element."""
SHAPES = ("input_dims", "output_dims", "counts", "growth", "lanes")
"""Words of a set of shapes: the sizes of all inputs in a row, and those of all outputs; `counts` is the address of COUNT for each
output, 0 where the sizes of all are known; `growth` that of GROWTH for shapes that are alike, without `input_dims` then; without
`lanes` there is none."""
GROWTH = ("registers", "first", "instructions", "instruction_count", "writes", "write_count", "dims", "dim_count")
"""Words of shapes that are alike: registers, which begin with the sizes of all inputs; which of them takes the result of the first
instruction; instructions as of `replay`; registers, each with the number of the table's word that it is written to; and for the
sizes of all outputs in a row their registers."""
COUNT = ("axis", "count_bytes", "item_bytes")
"""Words of an output whose sizes are the most that it may have: the dimension whose length the run shows, where in its scratch
memory, and the bytes of an element; of one whose sizes are known the dimension is -1."""
LANE = ("taken", "function", "table", "bases", "scratch", "resume", "interrupted")
"""Words of a lane: whether a run has it, what to call with which table, where its bases are, and the memory that it works in; one
without `table` is none. `resume` goes on after a pause, and `interrupted` is whether a signal's handler raised in the last one."""
POOL = ("owner", "most", "count", "blocks")
"""Words of the memory that large results lie in: the object that has these words, how many blocks without a result are kept at
most, how many there are, and their addresses, MOST_ARRAYS words from `blocks` on."""
BLOCK = ("call", "pool", "capacity", "memory")
"""Words before a block: `capacity` in bytes, and where the memory begins that is to be freed."""
LANES = 8
"""How many lanes a set of shapes has."""
MOST_ARRAYS = 256
"""How many inputs, and how many outputs, a session may have at most."""

BOUND = ("call", "fallback", "current", "session", "taken", "function", "table", "resume", "interrupted")
"""Words of a binding: `current` is the address of the generation for which it is, `session` whose it is; the bases of the table
are what is bound."""

PLAIN = Address(I64, unique=False)
"""An argument that is the address of words."""
TYPE, WORDS = 1, 2
"""Places in an object: its type; and, in one of ctypes, the address of its memory."""
CAPSULE_POINTER, LIST_SIZE, LIST_ITEMS = 2, 2, 3
ARRAY_DATA, ARRAY_RANK, ARRAY_DIMS, ARRAY_DTYPE, ARRAY_FLAGS = 2, 3, 4, 7, 8
"""Places in a capsule, a list and an array."""
DTYPE_KIND = 3
"""The word of a dtype that has its kind, its letter, its byte order and its number: dtypes of numbers that agree in it are equal,
also where they are not one object, as in arrays that were unpickled."""
DENSE_AND_ALIGNED, WRITEABLE = 0x101, 0x400
"""Flags of arrays."""


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
