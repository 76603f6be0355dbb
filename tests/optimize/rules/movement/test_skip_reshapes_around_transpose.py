"""Transposes of merged dimensions."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.skip_reshapes_around_transpose import SKIP_RESHAPES_AROUND_TRANSPOSE

SYMBOLS = {"b": 2, "s": 3}


def text(merged="[-1, 5, 4]", perm="[0, 2, 1]", split="[-1, 3, 4, 5]", x="b, 3, 5, 4", outputs="y"):
    return f"""graph(x: float[{x}]) -> ({outputs}) {{
        m: int64[{merged.count(",") + 1}] = {merged} p: int64[{split.count(",") + 1}] = {split}
        a = Reshape(x, m) t = Transpose(a) {{perm = {perm}}} y = Reshape(t, p) }}"""


@pytest.mark.parametrize(
    ("options", "left", "perm"),
    [
        ({}, ["Transpose"], (0, 1, 3, 2)),
        ({"x": "1, b, 3, 5, 4"}, ["Reshape", "Transpose"], (0, 1, 3, 2)),
        ({"x": "b, 2, 3, 4", "merged": "[0, 2, 12]", "split": "[0, 3, 4, 2]"}, ["Transpose"], (0, 2, 3, 1)),
        ({"x": "b, 5, 12", "merged": "[0, 60]", "perm": "[1, 0]", "split": "[5, 12, -1]"}, ["Transpose"], (1, 2, 0)),
        ({"x": "b, 1, 5, 4", "merged": "[0, 5, 4]", "split": "[0, 1, 4, 5]"}, ["Reshape", "Transpose"], None),
    ],
)
def test_fires_with_the_same_numbers(options, left, perm):
    """One transpose of the dimensions that there were, with a Reshape in front where dimensions of 1 come or go."""
    model, fired = apply_rule(SKIP_RESHAPES_AROUND_TRANSPOSE, text(**options), symbols=SYMBOLS)
    assert fired == 1
    assert operators(model) == left
    assert perm is None or list(model.graph)[-1].get("perm") == perm


def test_a_transpose_that_moves_nothing_goes_too() -> None:
    """What is left of three nodes is nothing then."""
    lines = text(x="b, 5, 12", merged="[0, 60]", perm="[0, 1]", split="[0, 5, 12]")
    lines = lines.replace("y = Reshape(t, p)", "r = Reshape(t, p) y = Neg(r)")
    model, fired = apply_rule(SKIP_RESHAPES_AROUND_TRANSPOSE, lines, symbols=SYMBOLS)
    assert (fired, operators(model)) == (1, ["Neg"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"split": "[-1, 3, 10, 2]"}, "so that the transpose can come behind"),
        ({"x": "b, 15, 4"}, "is not known to be"),
        ({"x": "b, 3, s, 4", "merged": "[-1, 6, 2]", "split": "[-1, 2, 6]"}, "is not known to be"),
        ({"outputs": "y, t"}, "no match"),
    ],
)
def test_declines(options, reason):
    """Dimensions that the transpose parts, others than there were, and a value between that is used."""
    assert reason in declines(SKIP_RESHAPES_AROUND_TRANSPOSE, text(**options))
