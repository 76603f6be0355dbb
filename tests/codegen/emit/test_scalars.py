"""Numbers that come with a call of a kernel."""

import struct

import numpy as np
import pytest

from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument, constant, number
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.scalars import lift_scalars, scalar, scalar_word
from sardonyx.codegen.emit.types import F32, F64, I8, I16, I32, U8, U16, Type
from sardonyx.codegen.kernels.elementwise import Access, MapParams, write_map
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import Buffer, KernelCall, StepTable
from sardonyx.codegen.target import available_levels, host_target


def _key(expr: ElementExpr) -> list[object]:
    return [step.key for step in number([expr])[0]]


def test_expressions_that_differ_by_scalars_are_one() -> None:
    """The numbers become words, in the order in which they are met."""
    ((one,), first), ((other,), second) = (
        lift_scalars(argument(0, F32) * scalar(x, F32) + scalar(y, F32)) for x, y in ((2, 3), (5, 7))
    )
    assert _key(one) == _key(other)
    assert (first, second) == (
        (scalar_word(2.0, F32), scalar_word(3.0, F32)),
        (scalar_word(5.0, F32), scalar_word(7.0, F32)),
    )


def test_a_number_that_is_used_twice_is_one_word() -> None:
    """A scale by which is divided and then multiplied."""
    (expr,), words = lift_scalars(argument(0, F32) / scalar(0.3, F32) * scalar(0.3, F32))
    assert len(words) == 1
    assert [step.primitive for step in number([expr])[0]].count("parameter") == 1


def test_equal_words_of_two_types_are_two() -> None:
    """Each is read as its own type."""
    expr = argument(0, I8) * scalar(3, I8) + (argument(1, U8) * scalar(3, U8)).to(I8)
    assert lift_scalars(expr)[1] == (3, 3)


def test_expressions_of_one_kernel_share_their_scalars() -> None:
    """A number in two of them is one word."""
    (one, other), words = lift_scalars(argument(0, F32) * scalar(0.3, F32), argument(0, F32) * scalar(0.3, F32) + scalar(0.7, F32))
    assert len(words) == 2
    assert _key(one) == _key(other)[:3]


def test_constants_stay() -> None:
    """They are part of the code."""
    expr = argument(0, F32) * constant(0.5, F32)
    assert lift_scalars(expr) == ((expr,), ())


@pytest.mark.parametrize(
    ("value", "kind", "packed"),
    [
        (0.1, F32, struct.pack("<f", 0.1)),
        (0.1, F64, struct.pack("<d", 0.1)),
        (-7, I8, b"\xf9"),
        (200, U8, b"\xc8"),
        (-9, I32, b"\xf7"),
    ],
)
def test_a_word_begins_with_the_bytes_of_the_number(value: float, kind: Type, packed: bytes) -> None:
    """As an element of its type lies in memory."""
    assert struct.pack("<q", scalar_word(value, kind)).startswith(packed)


@pytest.mark.parametrize("level", available_levels())
@pytest.mark.parametrize(("kind", "value"), [(F32, 0.3), (U8, 200), (I8, -100), (U16, 60000), (I16, -30000)])
def test_a_kernel_reads_the_scalars_of_its_call(level: str, kind: Type, value: float) -> None:
    """Of every type, beside another one, through the driver, in a step after one that has more scalars."""
    target = host_target(level)
    (expr,), words = lift_scalars(argument(0, F32) * scalar(2.5, F32) + scalar(value, kind).to(F32))
    module, engine = Module(target), Engine(target)
    accesses = [Access.ORDERED, Access.ORDERED]
    write_map(module, "map", [F32], [expr], accesses)
    engine.add(module)
    x, y, z = np.arange(37, dtype=np.float32), np.zeros(37, np.float32), np.zeros(37, np.float32)
    params = MapParams.over(x.shape, [(1,)] * 2, accesses)
    address = engine.address("map")
    steps = [
        KernelCall(address, [Buffer(1), Buffer(2)], params.words(), 1, scalars=(*words, 1, 2, 3)),
        KernelCall(address, [Buffer(1), Buffer(3)], params.words(), 1, scalars=words),
    ]
    table = StepTable(steps, 3)
    table.set_bases([x.ctypes.data, y.ctypes.data, z.ctypes.data])
    assert Driver(target).run(table) == -1
    expected = x * np.float32(2.5) + np.float32(value)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z, expected)


def test_only_kernels_have_scalars() -> None:
    """A function has no parameters of a call."""
    module = Module(host_target())
    with module.function("f") as f, pytest.raises(TypeError, match="f is no kernel, so it has no scalars"):
        write_expressions(f, lift_scalars(scalar(0.3, F32))[0], [])


def test_what_is_computed_of_scalars_is_one() -> None:
    """As float32 computes it, a product and a sum rounded once; and nothing is where an argument is part of it."""
    a, b, c = scalar(0.1, F32), scalar(0.7, F32), scalar(3, U8)
    ratio = a / b + OPERATORS["multiply_add"](a, b, c.to(F32)) * 2.0 - 1.0
    (expr,), words = lift_scalars(argument(0, F32) * ratio)
    x, y = np.float32(0.1), np.float32(0.7)
    expected = x / y + np.float32(np.float64(x) * np.float64(y) + 3) * np.float32(2) - np.float32(1)
    assert [step.primitive for step in number([expr])[0]] == ["argument", "parameter", "mul"]
    assert words == (scalar_word(float(expected), F32),)
