"""Transposes of what is unsqueezed."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.move_unsqueeze import MOVE_UNSQUEEZE


def text(axes="[1]", perm="[0, 2, 1, 3]", shape="b, s, 4", result="y"):
    count = axes.count(",") + 1
    return f"""graph(x: float[{shape}]) -> ({result}) {{ a: int64[{count}] = {axes} u = Unsqueeze(x, a)
        y = Transpose(u) {{perm = {perm}}} }}"""


@pytest.mark.parametrize(
    ("given", "axes"),
    [
        ({}, [2]),
        ({"axes": "[-1]", "perm": "[3, 0, 1, 2]"}, [0]),
        ({"axes": "[0, 3]", "perm": "[1, 0, 3, 2, 4]"}, [1, 2]),
    ],
)
def test_fires_with_the_same_numbers(given, axes):
    """The new dimensions come where the transpose put them."""
    model, fired = apply_rule(MOVE_UNSQUEEZE, text(**given))
    (node,) = model.graph
    assert (fired, node.op_type, node.inputs[1].constant.numpy().tolist()) == (1, "Unsqueeze", axes)


def test_axes_that_are_an_attribute():
    """Of older versions."""
    older = "graph(x: float[2, 3]) -> (y) { u = Unsqueeze(x) {axes = [0]} y = Transpose(u) {perm = [1, 0, 2]} }"
    model, fired = apply_rule(MOVE_UNSQUEEZE, older, opset="11")
    assert fired == 1
    assert [(node.op_type, node.get("axes")) for node in model.graph] == [("Unsqueeze", (1,))]


def test_an_axis_may_be_a_number_of_no_dimension():
    """Exporters write that, and runtimes take it."""
    scalar = "graph(x: float[2, 3]) -> (y) { a: int64[] = 0 u = Unsqueeze(x, a) y = Transpose(u) {perm = [1, 0, 2]} }"
    model, fired = apply_rule(MOVE_UNSQUEEZE, scalar)
    assert (fired, [node.inputs[1].constant.numpy().tolist() for node in model.graph]) == (1, [[1]])


def test_an_unsqueeze_with_other_users_stays():
    """Beside the new one."""
    model, _ = apply_rule(MOVE_UNSQUEEZE, text(result="y, u"))
    assert sorted(operators(model)) == ["Unsqueeze", "Unsqueeze"]


def test_declines():
    """A transpose that moves the dimensions of x."""
    assert "order of other dimensions" in declines(MOVE_UNSQUEEZE, text(perm="[0, 3, 1, 2]"))
