"""A Python function of machine code: it takes a dict of arrays, runs a step table without the GIL, and returns a list of arrays.

    function(session, output_names, input_feed, None)
        │ its entry: names and types of inputs and outputs, tables for the shapes met so far
        │ every array is as a table expects it          ── no ──► the method in Python, which also words the errors
        ▼
    results made, bases written, driver called, list filled

What it knows of a call lies in records of words (`python_words`): `CALL` (the process), `ENTRY` (one session), `INPUT`, `OUTPUT`,
`SHAPES` (one set of input shapes, or shapes that are alike) and `LANE` (a step table, for one run at a time). Python writes them,
this code reads them; of a lane it writes whether it is taken, and the sizes in its table. All of that happens under the GIL.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, I32, I64, PTR, VOID
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.run.python_results import write_cut, write_make, write_release
from sardonyx.codegen.run.python_shapes import write_find, write_take_lane
from sardonyx.codegen.run.python_words import (
    ARRAY_DATA,
    BOUND,
    ENTRY,
    INPUT,
    LANE,
    LIST_ITEMS,
    LIST_SIZE,
    MOST_ARRAYS,
    OUTPUT,
    PLAIN,
    WORDS,
    call_python,
    field,
    set_field,
    type_of,
    word,
    words_at,
)
from sardonyx.codegen.run.step_table import DONE, PAUSED

__all__ = ["write_run", "write_run_bound"]

_RUN_ARGUMENTS, _BOUND_ARGUMENTS = 4, 2


def write_run(module: Module, symbol: str) -> None:
    """Write a function as METH_FASTCALL has it: (owner of ENTRY, arguments, their number) -> list.

    The arguments are those of the method `run` with the session in front, and go to `fallback` as they are.
    """
    enter = _write_enter(module)
    with module.function(symbol, PLAIN, PLAIN, I64, returns=I64, export=True) as b:
        entry, arguments = b.addresses[0].load_pointer(WORDS, I64), b.addresses[1]
        call, result = words_at(b, field(entry, ENTRY, "call")), b.variable(b.const(I64, 0))
        is_current = field(entry, ENTRY, "generation").eq(word(call, "generation"))
        with b.when(is_current & b.arguments[0].eq(_RUN_ARGUMENTS)):
            _, names, feed, options = (arguments.load(place) for place in range(_RUN_ARGUMENTS))
            with b.when(options.eq(word(call, "none")) & type_of(b, feed).eq(word(call, "dict_type"))):
                result.set(b.call(enter, call, entry, names, feed))
        _fall_back(b, call, result, field(entry, ENTRY, "fallback"))
        b.give(result.value)


def write_run_bound(module: Module, symbol: str) -> None:
    """Write a function as METH_FASTCALL has it: (owner of BOUND, arguments, their number) -> None.

    The arguments are a session and a binding, and go to `fallback` as they are.
    """
    with module.function(symbol, PLAIN, PLAIN, I64, returns=I64, export=True) as b:
        bound = b.addresses[0].load_pointer(WORDS, I64)
        call, result = words_at(b, field(bound, BOUND, "call")), b.variable(b.const(I64, 0))
        is_current = words_at(b, field(bound, BOUND, "current")).load().eq(word(call, "generation"))
        is_its_own = b.variable(b.arguments[0].eq(_BOUND_ARGUMENTS))
        with b.when(is_its_own.value):
            is_its_own.set(b.addresses[1].load().eq(field(bound, BOUND, "session")))
        with b.when(is_current & is_its_own.value & field(bound, BOUND, "taken").eq(0)):
            set_field(bound, BOUND, "taken", 1)
            with b.when(_call_driver(b, call, bound, BOUND)):
                result.set(word(call, "none"))
                call_python(b, call, "Py_IncRef", result.value, returns=VOID)
            set_field(bound, BOUND, "taken", 0)
        _fall_back(b, call, result, field(bound, BOUND, "fallback"))
        b.give(result.value)


def _fall_back(b: Function, call: Pointer, result: Variable, fallback: Register) -> None:
    """Call the method in Python with the arguments where there is no result, nor an exception of a signal's handler."""
    arguments, count = (b.addresses[1], b.arguments[0])
    is_interrupted = b.variable(result.value.eq(0))
    with b.when(is_interrupted.value):
        is_interrupted.set(call_python(b, call, "PyErr_Occurred").ne(0))
    with b.when(result.value.eq(0) & ~is_interrupted.value):
        result.set(call_python(b, call, "PyObject_Vectorcall", fallback, arguments.to(I64), count, b.const(I64, 0)))


def _call_driver(b: Function, call: Pointer, record: Pointer, names: tuple[str, ...]) -> Register:
    """Run the table of a record without the GIL; returns whether it ran to its end.

    Where it pauses, signals are handled: what a handler raises ends the run, and stays raised.
    """
    table, resume = field(record, names, "table"), field(record, names, "resume")
    interrupted = b.variable(b.const(I64, 0))
    state = call_python(b, call, "PyEval_SaveThread")
    result = b.variable(b.call(Register(b, PTR, field(record, names, "function").to(PTR).ref), table, returns=I64))
    call_python(b, call, "PyEval_RestoreThread", state, returns=VOID)
    with b.repeat() as pausing:
        pausing.stop_if(result.value.ne(PAUSED))
        interrupted.set(call_python(b, call, "PyErr_CheckSignals", returns=I32).to(I64))
        pausing.stop_if(interrupted.value.ne(0))
        state = call_python(b, call, "PyEval_SaveThread")
        result.set(b.call(Register(b, PTR, resume.to(PTR).ref), table, b.const(I64, 0), returns=I64))
        call_python(b, call, "PyEval_RestoreThread", state, returns=VOID)
    set_field(record, names, "interrupted", interrupted.value)
    return result.value.eq(DONE)


def _write_enter(module: Module) -> Function:
    """(CALL, ENTRY, names, feed) -> the list of results; 0 where Python must run, which then has seen nothing of it."""
    select, look_up, release = _write_select(module), _write_look_up(module), write_release(module)
    find, take, make, run = write_find(module), write_take_lane(module), write_make(module, release), _write_run_lane(module)
    cut = write_cut(module)
    with module.function("python_enter", PLAIN, PLAIN, I64, I64, returns=I64) as b:
        call, entry = b.addresses
        names, feed = b.arguments
        chosen, given, made = (b.stack(I64, MOST_ARRAYS) for _ in range(3))
        count = b.call(select, call, entry, names, chosen)
        with b.when(count < 0):
            b.give(b.const(I64, 0))
        found = b.call(look_up, call, entry, feed, given)
        inputs, outputs = field(entry, ENTRY, "input_count"), field(entry, ENTRY, "output_count")
        result = b.variable(b.const(I64, 0))
        is_done, is_interrupted = b.variable(b.const(BOOL, False)), b.variable(b.const(BOOL, False))
        with b.when(found.eq(inputs)):
            result.set(call_python(b, call, "PyList_New", count))  # before arrays are read: it may collect garbage
            with b.when(result.value.ne(0)):
                shapes = b.call(find, call, entry, given)
                with b.when(shapes.ne(0)):
                    lane = b.call(take, words_at(b, shapes))
                    with b.when(lane.ne(0)):
                        with b.when(b.call(make, call, entry, words_at(b, shapes), made)):
                            with b.when(b.call(run, call, entry, words_at(b, lane), given, made)):
                                is_done.set(b.call(cut, call, entry, words_at(b, shapes), words_at(b, lane), made))
                            with b.when(is_done.value):
                                _fill(b, call, result.value, (chosen, made, count))
                            b.call(release, call, made, outputs)
                            is_interrupted.set(field(words_at(b, lane), LANE, "interrupted").ne(0))
                        set_field(words_at(b, lane), LANE, "taken", 0)
        b.call(release, call, given, found)
        with b.when(~is_done.value):
            with b.when(result.value.ne(0)):
                call_python(b, call, "Py_DecRef", result.value, returns=VOID)
            with b.when(~is_interrupted.value):
                call_python(b, call, "PyErr_Clear", returns=VOID)
            result.set(0)
        b.give(result.value)
    return b


def _write_select(module: Module) -> Function:
    """(CALL, ENTRY, names, chosen) -> how many outputs are asked for, their numbers in `chosen`; -1 for what Python must read."""
    with module.function("python_select", PLAIN, PLAIN, I64, PLAIN, returns=I64) as b:
        call, entry, chosen = b.addresses
        (names,) = b.arguments
        outputs, infos = field(entry, ENTRY, "output_count"), words_at(b, field(entry, ENTRY, "outputs"))
        with b.when(names.eq(word(call, "none"))):
            with b.loop(0, outputs) as index:
                chosen.store(index, index)
            b.give(outputs)
        with b.when(type_of(b, names).ne(word(call, "list_type"))):
            b.give(b.const(I64, -1))
        count = words_at(b, names).load(LIST_SIZE)
        with b.when((count < 1) | (count > outputs)):
            b.give(b.const(I64, -1))
        taken = b.stack(I64, MOST_ARRAYS)
        with b.loop(0, outputs) as number:
            taken.store(0, number)
        with b.loop(0, count) as place:
            number = _output_called(b, call, infos, outputs, words_at(b, words_at(b, names).load(LIST_ITEMS)).load(place))
            with b.when(number < 0):
                b.give(b.const(I64, -1))
            with b.when(taken.load(number).ne(0)):
                b.give(b.const(I64, -1))
            taken.store(1, number)
            chosen.store(number, place)
        b.give(count)
    return b


def _output_called(b: Function, call: Pointer, infos: Pointer, outputs: Register, name: Register) -> Register:
    """Return the number of an output, -1 where there is none of this name."""
    found = b.variable(b.const(I64, -1))
    with b.loop(0, outputs) as number, b.when(field(infos.at(number * len(OUTPUT)), OUTPUT, "name").eq(name)):
        found.set(number)
    with b.when(found.value.eq(-1) & type_of(b, name).eq(word(call, "str_type"))), b.loop(0, outputs) as number:
        known = field(infos.at(number * len(OUTPUT)), OUTPUT, "name")
        with b.when(found.value.eq(-1)):
            is_same = call_python(b, call, "PyUnicode_Compare", known, name, returns=I32).eq(0)
            found.set(b.select(is_same, number, found.value))
    return found.value


def _write_look_up(module: Module) -> Function:
    """(CALL, ENTRY, feed, given) -> how many values are in `given`, with a reference each: all inputs where none is missing."""
    with module.function("python_look_up", PLAIN, PLAIN, I64, PLAIN, returns=I64) as b:
        call, entry, given = b.addresses
        (feed,) = b.arguments
        with b.when(call_python(b, call, "PyDict_Size", feed).ne(field(entry, ENTRY, "needed"))):
            b.give(b.const(I64, 0))
        infos = words_at(b, field(entry, ENTRY, "inputs"))
        with b.loop(0, field(entry, ENTRY, "input_count")) as number:
            info = infos.at(number * len(INPUT))
            value = b.variable(word(call, "none"))
            with b.when(field(info, INPUT, "default").eq(0)):
                value.set(call_python(b, call, "PyDict_GetItemWithError", feed, field(info, INPUT, "name")))
            with b.when(value.value.eq(0)):
                b.give(number)
            call_python(b, call, "Py_IncRef", value.value, returns=VOID)
            given.store(value.value, number)
        b.give(field(entry, ENTRY, "input_count"))
    return b


def _write_run_lane(module: Module) -> Function:
    """(CALL, ENTRY, LANE, given, made) -> whether the table ran to its end."""
    with module.function("python_run_lane", *[PLAIN] * 5, returns=BOOL) as b:
        call, entry, lane, given, made = b.addresses
        bases, infos = words_at(b, field(lane, LANE, "bases")), words_at(b, field(entry, ENTRY, "inputs"))
        bases.store(field(lane, LANE, "scratch"))
        bases.store(0, 1)
        arguments, count = words_at(b, field(entry, ENTRY, "arguments")), field(entry, ENTRY, "argument_count")
        with b.loop(0, count) as place:
            number = arguments.load(place)
            data = b.variable(field(infos.at(number * len(INPUT)), INPUT, "default"))
            with b.when(data.value.eq(0)):
                data.set(words_at(b, given.load(number)).load(ARRAY_DATA))
            bases.store(data.value, place + 2)
        results = words_at(b, field(entry, ENTRY, "results"))
        with b.loop(0, field(entry, ENTRY, "output_count")) as place:
            bases.store(words_at(b, made.load(results.load(place))).load(ARRAY_DATA), place + count + 2)
        weak = b.stack(I64, MOST_ARRAYS)
        with b.loop(0, field(entry, ENTRY, "input_count")) as number:
            weak.store(0, number)
            with b.when(field(infos.at(number * len(INPUT)), INPUT, "default").eq(0)):
                # an array that has one cannot be resized: not by another thread while this one reads it, whatever it asks for
                weak.store(call_python(b, call, "PyWeakref_NewRef", given.load(number), b.const(I64, 0)), number)
        is_done = _call_driver(b, call, lane, LANE)
        with b.loop(0, field(entry, ENTRY, "input_count")) as number, b.when(weak.load(number).ne(0)):
            call_python(b, call, "Py_DecRef", weak.load(number), returns=VOID)
        b.give(is_done)
    return b


def _fill(b: Function, call: Pointer, result: Register, parts: tuple[Pointer, Pointer, Register]) -> None:
    """Put the outputs that are asked for into the list."""
    chosen, made, count = parts
    with b.loop(0, count) as place:
        array = made.load(chosen.load(place))
        call_python(b, call, "Py_IncRef", array, returns=VOID)
        call_python(b, call, "PyList_SetItem", result, place, array, returns=I32)
