"""Which set of shapes the arrays of a call have, and a step table for it, as `python_call` needs them.

Shapes are known one by one, or as shapes that are alike (GROWTH): instructions compute of the sizes of the inputs whether they are,
what the sizes of the outputs are, and the words of the table that differ.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, I64, VOID
from sardonyx.codegen.emit.values import Pointer
from sardonyx.codegen.run.python_words import (
    ARRAY_DIMS,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_RANK,
    DENSE_AND_ALIGNED,
    DTYPE_KIND,
    ENTRY,
    GROWTH,
    INPUT,
    LANE,
    LANES,
    PLAIN,
    SHAPES,
    TYPE,
    call_python,
    field,
    half,
    set_field,
    word,
    words_at,
)
from sardonyx.codegen.run.replay import write_replay

__all__ = ["write_find", "write_take_lane"]

_ROW_MAJOR = 0
"""NPY_CORDER."""


def write_find(module: Module) -> Function:
    """(CALL, ENTRY, given) -> the set of shapes that the arrays have; 0 where they are not as the inputs' types say, or new.

    What is not dense is copied, in `given` too.
    """
    fits, matches = _write_fits(module), _write_matches(module, _write_grows(module))
    with module.function("python_find", PLAIN, PLAIN, PLAIN, returns=I64) as b:
        call, entry, given = b.addresses
        with b.when(~b.call(fits, call, entry, given)):
            b.give(b.const(I64, 0))
        latest = words_at(b, field(entry, ENTRY, "latest"))
        with b.when(b.call(matches, entry, latest, given)):
            b.give(latest.to(I64))
        table = words_at(b, field(entry, ENTRY, "shapes"))
        with b.loop(0, field(entry, ENTRY, "shapes_count")) as number:
            shapes = table.at(number * len(SHAPES))
            with b.when(b.call(matches, entry, shapes, given)):
                set_field(entry, ENTRY, "latest", shapes.to(I64))
                b.give(shapes.to(I64))
        b.give(b.const(I64, 0))
    return b


def _write_fits(module: Module) -> Function:
    """(CALL, ENTRY, given) -> whether each is an array of its input's type and rank; a dense copy takes the place of others."""
    with module.function("python_fits", PLAIN, PLAIN, PLAIN, returns=BOOL) as b:
        call, entry, given = b.addresses
        infos = words_at(b, field(entry, ENTRY, "inputs"))
        with b.loop(0, field(entry, ENTRY, "input_count")) as number:
            info, array = infos.at(number * len(INPUT)), words_at(b, given.load(number))
            with b.when(field(info, INPUT, "default").eq(0)):
                with b.when(array.load(TYPE).ne(word(call, "array_type"))):
                    b.give(b.const(BOOL, False))
                rank, flags = half(array, ARRAY_RANK), half(array, ARRAY_FLAGS)
                dtypes = words_at(b, array.load(ARRAY_DTYPE)), words_at(b, field(info, INPUT, "dtype"))
                is_other = dtypes[0].load(DTYPE_KIND).ne(dtypes[1].load(DTYPE_KIND)) | rank.ne(field(info, INPUT, "rank"))
                with b.when(is_other):
                    b.give(b.const(BOOL, False))
                with b.when((flags & DENSE_AND_ALIGNED).ne(DENSE_AND_ALIGNED)):
                    copy = call_python(b, call, "PyArray_NewCopy", given.load(number), b.const(I64, _ROW_MAJOR))
                    with b.when(copy.eq(0)):
                        b.give(b.const(BOOL, False))
                    call_python(b, call, "Py_DecRef", given.load(number), returns=VOID)
                    given.store(copy, number)
        b.give(b.const(BOOL, True))
    return b


def _write_grows(module: Module) -> Function:
    """(ENTRY, SHAPES, given) -> whether the arrays have shapes that are alike; if so the sizes of outputs are theirs."""
    replay = write_replay(module)
    with module.function("python_grows", PLAIN, PLAIN, PLAIN, returns=BOOL) as b:
        entry, shapes, given = b.addresses
        growth, infos = words_at(b, field(shapes, SHAPES, "growth")), words_at(b, field(entry, ENTRY, "inputs"))
        registers = words_at(b, field(growth, GROWTH, "registers"))
        place = b.variable(b.const(I64, 0))
        with b.loop(0, field(entry, ENTRY, "input_count")) as number:
            info = infos.at(number * len(INPUT))
            rank = field(info, INPUT, "rank")
            with b.when(field(info, INPUT, "default").eq(0)):
                sizes = words_at(b, words_at(b, given.load(number)).load(ARRAY_DIMS))
                with b.loop(0, rank) as axis:
                    registers.store(sizes.load(axis), place.value + axis)
            place.add(rank)
        instructions = words_at(b, field(growth, GROWTH, "instructions"))
        first, count = field(growth, GROWTH, "first"), field(growth, GROWTH, "instruction_count")
        with b.when(~b.call(replay, registers, instructions, first, count)):
            b.give(b.const(BOOL, False))
        dims, sizes = words_at(b, field(growth, GROWTH, "dims")), words_at(b, field(shapes, SHAPES, "output_dims"))
        with b.loop(0, field(growth, GROWTH, "dim_count")) as number:
            sizes.store(registers.load(dims.load(number)), number)
        b.give(b.const(BOOL, True))
    return b


def _write_matches(module: Module, grows: Function) -> Function:
    """(ENTRY, SHAPES, given) -> whether these are the shapes of the arrays, which have the inputs' ranks."""
    with module.function("python_matches", PLAIN, PLAIN, PLAIN, returns=BOOL) as b:
        entry, shapes, given = b.addresses
        with b.when(field(shapes, SHAPES, "lanes").eq(0)):
            b.give(b.const(BOOL, False))
        with b.when(field(shapes, SHAPES, "growth").ne(0)):
            b.give(b.call(grows, entry, shapes, given))
        infos, wanted = words_at(b, field(entry, ENTRY, "inputs")), words_at(b, field(shapes, SHAPES, "input_dims"))
        place = b.variable(b.const(I64, 0))
        with b.loop(0, field(entry, ENTRY, "input_count")) as number:
            info = infos.at(number * len(INPUT))
            rank = field(info, INPUT, "rank")
            with b.when(field(info, INPUT, "default").eq(0)):
                sizes = words_at(b, words_at(b, given.load(number)).load(ARRAY_DIMS))
                with b.loop(0, rank) as axis, b.when(sizes.load(axis).ne(wanted.load(place.value + axis))):
                    b.give(b.const(BOOL, False))
            place.add(rank)
        b.give(b.const(BOOL, True))
    return b


def write_take_lane(module: Module) -> Function:
    """(SHAPES) -> a lane that no run has, taken, its table written for the shapes that were found; 0 where there is none."""
    with module.function("python_take_lane", PLAIN, returns=I64) as b:
        shapes = b.addresses[0]
        lanes = words_at(b, field(shapes, SHAPES, "lanes"))
        with b.loop(0, LANES) as number:
            lane = lanes.at(number * len(LANE))
            with b.when(field(lane, LANE, "taken").eq(0) & field(lane, LANE, "table").ne(0)):
                set_field(lane, LANE, "taken", 1)
                with b.when(field(shapes, SHAPES, "growth").ne(0)):
                    _write_table(b, words_at(b, field(shapes, SHAPES, "growth")), words_at(b, field(lane, LANE, "table")))
                b.give(lane.to(I64))
        b.give(b.const(I64, 0))
    return b


def _write_table(b: Function, growth: Pointer, table: Pointer) -> None:
    """Write the words of a table that the sizes of the inputs decide."""
    registers, writes = words_at(b, field(growth, GROWTH, "registers")), words_at(b, field(growth, GROWTH, "writes"))
    with b.loop(0, field(growth, GROWTH, "write_count")) as number:
        table.store(registers.load(writes.load(number * 2)), writes.load(number * 2 + 1))
