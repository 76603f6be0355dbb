"""Trees of element-wise operators, before any printer."""

import pytest

from sardonyx.codegen.emit.expr import OPERATORS, PRIMITIVES, ElementExpr, argument, constant, has_primitive, number, substitute
from sardonyx.codegen.emit.types import BOOL, F32, I64

X, Y = argument(0, F32), argument(1, F32)


def _primitives(*outputs: ElementExpr) -> list[str]:
    steps, _ = number(outputs)
    return [step.primitive for step in steps]


def test_equal_parts_are_numbered_once() -> None:
    """Two trees that compute the same node share its step, whoever built it."""
    first, second = OPERATORS["exp"](X + Y) * 2, OPERATORS["exp"](argument(0, F32) + Y) - 2
    assert _primitives(first, second) == ["argument", "argument", "add", "exp", "constant", "mul", "sub"]


def test_operands_come_first() -> None:
    """Each step refers to earlier ones only, and the outputs are found by number."""
    steps, outputs = number([X * Y + X, Y])
    assert all(operand < place for place, step in enumerate(steps) for operand in step.operands)
    assert [steps[place].primitive for place in outputs] == ["add", "argument"]


def test_signed_zeros_are_different_constants() -> None:
    """Equal by value is not equal by bits."""
    assert _primitives(X + constant(0.0, F32), X + constant(-0.0, F32)).count("constant") == 2


def test_a_long_chain_needs_no_recursion() -> None:
    """Ten thousand operators in a row are numbered."""
    chain = X
    for _ in range(10_000):
        chain = chain + 1
    assert len(number([chain])[0]) == 10_002


def test_types_that_differ_are_refused() -> None:
    """Nothing is converted in silence."""
    with pytest.raises(TypeError, match="i64"):
        X + argument(1, I64)


def test_relations_are_bools() -> None:
    """Comparisons give bools, which select takes."""
    assert (X < Y).type == BOOL
    assert OPERATORS["select"](X < Y, X, 0.0).type == F32


def test_arguments_are_replaced_by_trees() -> None:
    """A chain of two operators becomes one expression; parts that do not change are kept."""
    relu = OPERATORS["relu"](X)
    fused = substitute(relu, {0: X + Y})
    assert _primitives(fused) == ["argument", "argument", "add", "constant", "max"]
    assert substitute(relu, {}) is relu


def test_a_replacement_of_another_type_is_refused() -> None:
    """The message names both types."""
    with pytest.raises(TypeError, match=r"float.*i64"):
        substitute(X, {0: argument(0, I64)})


def test_small_powers_are_multiplied_out() -> None:
    """A square is one product; a power of 2.5 is a power."""
    assert _primitives(OPERATORS["power"](X, 2)) == ["argument", "mul"]
    assert "power" in _primitives(OPERATORS["power"](X, 2.5))


def test_operators_end_in_primitives() -> None:
    """What a printer must know is one list."""
    for name in ("mish", "selu", "celu", "shrink", "softsign", "hard_swish", "swish", "sign", "is_infinite"):
        assert set(_primitives(OPERATORS[name](X))) <= PRIMITIVES | {"argument", "constant"}


def test_an_expression_has_no_truth_value() -> None:
    """Python's `if` would take one side for all elements."""
    with pytest.raises(TypeError, match=r"no truth value.*choose by where\("):
        bool(X > 0)


def test_pythons_powers_and_absolute_values_are_expressions() -> None:
    """`x ** 2` is a product."""
    assert _primitives(X**2) == ["argument", "mul"]
    assert _primitives(abs(X)) == ["argument", "abs"]


def test_a_primitive_is_found_wherever_it_is() -> None:
    """At the root, in an operand, or nowhere."""
    x = argument(0, F32)
    assert [has_primitive(-(x * x) + 1.0, name) for name in ("add", "mul", "argument", "sub")] == [True, True, True, False]
