"""ONNX's element-wise operators as expressions: what the nodes' attributes and constants make of them."""

import pytest
from support.models import graph

from sardonyx.codegen.emit.expr import argument, number
from sardonyx.codegen.emit.types import BF16, BOOL, F32, F64, I64, Type
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.providers.cpu.expressions import (
    argument_of,
    element_type,
    expression,
    expression_key,
    expression_symbol,
    is_data,
    scalar_of,
)


def _node(call: str, *, opset: int = 21, kind: str = "float") -> Node:
    body = f"graph(x: {kind}[2], z: {kind}[2]) -> (y) {{ k: float[1] = [3.0] l: float[2] = [3.0, 4.0] y = {call} }}"
    return next(iter(graph(body, opset=opset)))


def _steps(call: str, *, opset: int = 21) -> list[str]:
    node = _node(call, opset=opset)
    expr = expression(node, [None if value is None else argument(index, F32) for index, value in enumerate(node.inputs)])
    return [step.primitive if step.primitive != "constant" else step.value for step in number([expr])[0]]


def test_types_that_kernels_compute_with() -> None:
    """All numbers and bools; no strings, complex numbers or types below a byte."""
    assert element_type(DataType.FLOAT) == F32
    assert element_type(DataType.BFLOAT16) == BF16
    assert element_type(DataType.BOOL) == BOOL
    for dtype in (None, DataType.UNDEFINED, DataType.STRING, DataType.COMPLEX64, DataType.INT4, DataType.FLOAT8E4M3FN):
        assert element_type(dtype) is None
    assert argument_of(2, DataType.INT64).type == I64
    with pytest.raises(TypeError, match="string"):
        argument_of(0, DataType.STRING)


def test_attributes_have_the_defaults_of_the_standard() -> None:
    """Where a node leaves them out."""
    assert "0.01" in _steps("LeakyRelu(x)")
    assert any(step.startswith("0.3") for step in _steps("LeakyRelu(x) {alpha = 0.3}"))
    assert _steps("Elu(x)")[-1] == "select"


def test_limits_of_clip_are_attributes_or_inputs() -> None:
    """Attributes before opset 11, inputs since."""
    assert _steps("Clip(x) {min = -1.0, max = 2.0}", opset=6) == ["argument", "-1.0", "max", "2.0", "min"]
    assert _steps("Clip(x, x, z)", opset=13) == ["argument", "argument", "max", "argument", "min"]


def test_powers_by_a_constant_are_multiplied_out() -> None:
    """A constant of one element is a number."""
    assert _steps("Pow(x, k)") == ["argument", "mul", "mul"]
    assert "power" in _steps("Pow(x, l)")


def test_variadic_operators_fold() -> None:
    """From the first to the last; the mean divides by their number."""
    assert _steps("Sum(x, z, x)") == ["argument", "argument", "add", "argument", "add"]
    assert _steps("Mean(x, z)") == ["argument", "argument", "add", "0.5", "mul"]
    assert _steps("Max(x)", opset=13) == ["argument"]


def test_operators_with_two_meanings() -> None:
    """Gelu and Mod say by an attribute which one."""
    assert _steps("Gelu(x)")[-1] == "gelu"
    assert _steps('Gelu(x) {approximate = "tanh"}')[-1] == "gelu_tanh"
    assert _steps("Mod(x, z) {fmod = 1}")[-1] == "remainder"


def test_not_of_a_bool() -> None:
    """Any byte but 0 is True, so that its bits are not turned."""
    node = _node("Not(x)", kind="bool")
    expr = expression(node, [argument(0, BOOL)])
    assert (expr.primitive, expr.type) == ("eq", BOOL)


def test_types_that_an_operator_is_not_defined_for() -> None:
    """They are a TypeError."""
    with pytest.raises(TypeError):
        expression(_node("Add(x, z)"), [argument(0, F32), argument(1, I64)])
    with pytest.raises(TypeError):
        expression(_node("Not(x)"), [None])


def test_keys_are_equal_for_what_computes_the_same() -> None:
    """Whatever the order in which it was built."""
    x, y = argument(0, F32), argument(1, F32)
    assert expression_key([x + y, x * 2]) == expression_key([argument(0, F32) + argument(1, F32), x * 2])
    assert expression_key([x + y]) != expression_key([y + x])
    assert expression_key([x + y, x]) != expression_key([x, x + y])


def test_symbols_tell_expressions_apart() -> None:
    """By what they compute, on which types, with which constants; equal ones are equal."""
    x, target = argument(0, F32), host_target()
    different = (x + 1, x + 2, x * 1, argument(0, I64) + 1, argument(1, F32) + 1, x + 0.0, x + -0.0)
    assert len({expression_symbol(target, "map", [expr]) for expr in different}) == len(different)
    assert expression_symbol(target, "map", [x + 1], "oo", "") == expression_symbol(target, "map", [argument(0, F32) + 1], "oo")
    assert expression_symbol(target, "map", [x], "oo").startswith("map_oo_")
    assert expression_symbol(target, "map", [x]).endswith(f"_{target.isa}")


@pytest.mark.parametrize(
    ("op_type", "number", "kind", "is_one"),
    [
        ("Mul", 0.0473, F32, True),
        ("Mul", 0.0473, F64, True),
        ("Add", 17.0, F32, True),
        ("Div", float("nan"), F32, True),
        ("Sub", float("inf"), F32, True),
        ("Mul", 0.5, F32, False),
        ("Add", -4.0, F64, False),
        ("Mul", 0.0473, I64, False),
        ("Max", 0.0473, F32, False),
    ],
)
def test_numbers_of_many_bits_are_data(op_type: str, number: float, kind: Type, is_one: bool) -> None:
    """So that chains that differ by them are one kernel; of the others there are few."""
    assert is_data(op_type, 1, number, kind) is is_one


def test_numbers_in_the_code_are_few() -> None:
    """However a model chooses them, it has at most that many kernels of one form."""
    numbers = [*range(-5000, 5000), *(number / 16 for number in range(-5000, 5000)), *(number / 7 for number in range(-5000, 5000))]
    assert len({number for number in map(float, numbers) if not is_data("Mul", 1, number, F32)}) <= 129


def test_constants_of_one_element_are_numbers() -> None:
    """Others, and what is computed, are not."""
    assert scalar_of(_node("Mul(x, k)"), 1) == 3.0
    assert scalar_of(_node("Mul(x, l)"), 1) is None
    assert scalar_of(_node("Mul(x, z)"), 1) is None
    assert scalar_of(_node("Mul(x, z)"), 7) is None
