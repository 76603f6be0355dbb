"""The arrays that a call returns, as `python_call` makes them.

Large results lie in blocks of memory (BLOCK) that a pool (POOL) keeps while no result lies in them: the system clears each page of
new memory when it is first written to, which takes longer than to copy a cache there. A capsule is the base of the array;
with it ends the array's use of the block.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, I32, I64, PTR, VOID
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.run.python_words import (
    ARRAY_DATA,
    BLOCK,
    CAPSULE_POINTER,
    COUNT,
    DENSE_AND_ALIGNED,
    ENTRY,
    LANE,
    OUTPUT,
    PLAIN,
    POOL,
    SHAPES,
    WRITEABLE,
    call_python,
    field,
    set_field,
    word,
    words_at,
)

__all__ = ["BLOCK_OFFSET", "LEAST_POOLED_BYTES", "write_cut", "write_give_back", "write_make", "write_release"]

LEAST_POOLED_BYTES = 1 << 16
"""From which size on results lie in a pool."""
_MOST_RANK = 64
BLOCK_OFFSET = 64
"""How many bytes before a block its words begin; blocks are aligned to as many."""
_PAGE = 4096
_GROWTH_BITS = 4
"""A block is larger by one part in 2 ** 4 than what it is made for, so that a cache which grows by a row in each run fits again."""


def write_make(module: Module, release: Function) -> Function:
    """(CALL, ENTRY, SHAPES, made) -> whether arrays could be made for the outputs; where not, there are none."""
    pooled = _write_pooled(module, _write_take(module))
    with module.function("python_make", PLAIN, PLAIN, PLAIN, PLAIN, returns=BOOL) as b:
        call, entry, shapes, made = b.addresses
        infos, sizes = words_at(b, field(entry, ENTRY, "outputs")), b.variable(field(shapes, SHAPES, "output_dims"))
        may_pool = field(shapes, SHAPES, "counts").eq(0)
        with b.loop(0, field(entry, ENTRY, "output_count")) as number:
            info = infos.at(number * len(OUTPUT))
            dtype, rank, size_bytes = (field(info, OUTPUT, name) for name in ("dtype", "rank", "item_bytes"))
            total, array = b.variable(size_bytes), b.variable(b.const(I64, 0))
            with b.loop(0, rank) as axis:
                total.set(total.value * words_at(b, sizes.value).load(axis))
            with b.when(may_pool & (total.value >= LEAST_POOLED_BYTES)):
                array.set(b.call(pooled, call, entry, info, sizes.value, total.value))
            with b.when(array.value.eq(0)):
                array.set(_new_array(b, call, (dtype, rank, sizes.value), b.const(I64, 0), b.const(I64, 0)))
            with b.when(array.value.eq(0)):
                b.call(release, call, made, number)
                b.give(b.const(BOOL, False))
            made.store(array.value, number)
            sizes.add(rank * 8)
        b.give(b.const(BOOL, True))
    return b


def _new_array(b: Function, call: Pointer, spec: tuple[Register, Register, Register], data: Register, flags: Register) -> Register:
    """Return a new array of a dtype, a rank and sizes, in memory of its own where `data` is 0; 0 where it cannot be made."""
    dtype, rank, sizes = spec
    call_python(b, call, "Py_IncRef", dtype, returns=VOID)  # which the call takes over
    kind, nothing = word(call, "array_type"), b.const(I64, 0)
    return call_python(b, call, "PyArray_NewFromDescr", kind, dtype, rank, sizes, nothing, data, flags, nothing)


def _write_pooled(module: Module, take: Function) -> Function:
    """(CALL, ENTRY, OUTPUT, sizes, bytes) -> an array in a block of the pool; 0 where it cannot be made."""
    with module.function("python_pooled", PLAIN, PLAIN, PLAIN, I64, I64, returns=I64) as b:
        call, entry, info = b.addresses
        sizes, size_bytes = b.arguments
        pool, nothing = words_at(b, field(entry, ENTRY, "pool")), b.const(I64, 0)
        block = b.call(take, call, pool, size_bytes)
        with b.when(block.eq(0)):
            b.give(nothing)
        capsule = call_python(b, call, "PyCapsule_New", block, nothing, word(call, "python_give_back"))
        with b.when(capsule.eq(0)):
            call_python(b, call, "PyMem_RawFree", field(_head(b, block), BLOCK, "memory"), returns=VOID)
            b.give(nothing)
        call_python(b, call, "Py_IncRef", field(pool, POOL, "owner"), returns=VOID)
        spec = field(info, OUTPUT, "dtype"), field(info, OUTPUT, "rank"), sizes
        array = _new_array(b, call, spec, block, b.const(I64, DENSE_AND_ALIGNED | WRITEABLE))
        b.branch(
            array.eq(0),
            lambda: call_python(b, call, "Py_DecRef", capsule, returns=VOID),
            lambda: call_python(b, call, "PyArray_SetBaseObject", array, capsule, returns=I32),  # which takes over the reference
        )
        b.give(array)
    return b


def _write_take(module: Module) -> Function:
    """(CALL, POOL, bytes) -> a block, the smallest that is kept and not much too large, or a new one; 0 where there is no memory.

    As a new one is made one that is kept is freed, the smallest: results that grow leave blocks that are too small.
    """
    with module.function("python_take", PLAIN, PLAIN, I64, returns=I64) as b:
        call, pool = b.addresses
        (needed,) = b.arguments
        count, blocks = field(pool, POOL, "count"), pool.at(POOL.index("blocks"))
        nothing = b.const(I64, -1)
        fitting, least = b.variable(nothing), b.variable(nothing)
        capacities = b.variable(needed * 2), b.variable(b.const(I64, 1 << 62))
        with b.loop(0, count) as number:
            capacity = field(_head(b, blocks.load(number)), BLOCK, "capacity")
            with b.when((capacity >= needed) & (capacity <= capacities[0].value)):
                fitting.set(number)
                capacities[0].set(capacity)
            with b.when(capacity < capacities[1].value):
                least.set(number)
                capacities[1].set(capacity)
        found = b.variable(b.const(I64, 0))
        chosen = b.variable(b.select(fitting.value >= 0, fitting.value, least.value))
        with b.when(chosen.value >= 0):
            found.set(blocks.load(chosen.value))
            blocks.store(blocks.load(count - 1), chosen.value)
            set_field(pool, POOL, "count", count - 1)
        with b.when(fitting.value >= 0):
            b.give(found.value)
        with b.when(found.value.ne(0)):
            call_python(b, call, "PyMem_RawFree", field(_head(b, found.value), BLOCK, "memory"), returns=VOID)
        room = (needed + (needed >> _GROWTH_BITS) + _PAGE - 1) & -_PAGE
        memory = call_python(b, call, "PyMem_RawMalloc", room + 2 * BLOCK_OFFSET)
        with b.when(memory.eq(0)):
            b.give(memory)
        block = (memory + 2 * BLOCK_OFFSET - 1) & -BLOCK_OFFSET
        head = _head(b, block)
        for name, value in (("call", call.to(I64)), ("pool", pool.to(I64)), ("capacity", room), ("memory", memory)):
            set_field(head, BLOCK, name, value)
        b.give(block)
    return b


def write_give_back(module: Module, symbol: str) -> None:
    """Write the destructor of the capsules that blocks lie in: the pool keeps the block, or frees it where it has enough."""
    with module.function(symbol, I64, export=True) as b:
        (capsule,) = b.arguments
        block = words_at(b, capsule).load(CAPSULE_POINTER)
        head = _head(b, block)
        call, pool = words_at(b, field(head, BLOCK, "call")), words_at(b, field(head, BLOCK, "pool"))
        count, owner = field(pool, POOL, "count"), field(pool, POOL, "owner")
        is_kept = count < field(pool, POOL, "most")
        with b.when(is_kept):
            pool.at(POOL.index("blocks")).store(block, count)
            set_field(pool, POOL, "count", count + 1)
        with b.when(~is_kept):
            call_python(b, call, "PyMem_RawFree", field(head, BLOCK, "memory"), returns=VOID)
        call_python(b, call, "Py_DecRef", owner, returns=VOID)
        b.give()


def _head(b: Function, block: Register) -> Pointer:
    """Return the words before a block."""
    return words_at(b, block - BLOCK_OFFSET)


def write_cut(module: Module) -> Function:
    """(CALL, ENTRY, SHAPES, LANE, made) -> whether all outputs have their true sizes, which the run has shown.

    What fills most of its memory is a view of it; a smaller part is copied, so that the memory is free again.
    """
    with module.function("python_cut", *[PLAIN] * 5, returns=BOOL) as b:
        call, entry, shapes, lane, made = b.addresses
        counts = words_at(b, field(shapes, SHAPES, "counts"))
        with b.when(field(shapes, SHAPES, "counts").eq(0)):
            b.give(b.const(BOOL, True))
        infos, sizes = words_at(b, field(entry, ENTRY, "outputs")), b.variable(field(shapes, SHAPES, "output_dims"))
        dims = b.stack(I64, _MOST_RANK)
        with b.loop(0, field(entry, ENTRY, "output_count")) as number:
            info, count = infos.at(number * len(OUTPUT)), counts.at(number * len(COUNT))
            rank, axis = field(info, OUTPUT, "rank"), field(count, COUNT, "axis")
            with b.when(axis >= 0):
                length = words_at(b, field(lane, LANE, "scratch") + field(count, COUNT, "count_bytes")).load()
                rest = b.variable(field(count, COUNT, "item_bytes"))
                with b.loop(0, rank) as place:
                    size = words_at(b, sizes.value).load(place)
                    dims.store(b.select(place.eq(axis), length, size), place)
                    rest.set(b.select(place.eq(axis), rest.value, rest.value * size))
                most = words_at(b, sizes.value).load(axis)
                with b.when(length.ne(most)):
                    is_view = length * 2 >= most
                    _take_part(b, call, info, (made, number), dims, length * rest.value, is_view)
                    with b.when(call_python(b, call, "PyErr_Occurred").ne(0)):
                        b.give(b.const(BOOL, False))
            sizes.add(rank * 8)
        b.give(b.const(BOOL, True))
    return b


def _take_part(
    b: Function,
    call: Pointer,
    info: Pointer,
    place: tuple[Pointer, Register],
    dims: Pointer,
    size_bytes: Register,
    is_view: Register,
) -> None:
    """Replace an array by one of the sizes `dims`, a view of its first bytes or a copy of them; what fails leaves an exception."""
    made, number = place
    whole, dtype = made.load(number), field(info, OUTPUT, "dtype")
    data = words_at(b, whole).load(ARRAY_DATA)
    nothing, flags = b.const(I64, 0), b.const(I64, DENSE_AND_ALIGNED | WRITEABLE)
    spec = dtype, field(info, OUTPUT, "rank"), dims.to(I64)
    part = _new_array(b, call, spec, b.select(is_view, data, nothing), b.select(is_view, flags, nothing))
    with b.when(part.ne(0)):
        made.store(part, number)
        with b.when(is_view):
            call_python(b, call, "PyArray_SetBaseObject", part, whole, returns=I32)  # which takes over the reference
        with b.when(~is_view):
            b.intrinsic("memcpy", PTR, [words_at(b, part).load(ARRAY_DATA).to(PTR), data.to(PTR), size_bytes])
            call_python(b, call, "Py_DecRef", whole, returns=VOID)


def write_release(module: Module) -> Function:
    """(CALL, objects, count): give up a reference to each."""
    with module.function("python_release", PLAIN, PLAIN, I64) as b:
        call, objects = b.addresses
        with b.loop(0, b.arguments[0]) as number:
            call_python(b, call, "Py_DecRef", objects.load(number), returns=VOID)
    return b
