"""Products of transposed matrices and vectors."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.turn_vector_product import TURN_VECTOR_PRODUCT


def text(product, perm="[0, 2, 1]", shape="2, 3, 4", result="y", vector="n"):
    return f"graph(a: float[{shape}], v: float[{vector}]) -> ({result}) {{ t = Transpose(a) {{perm = {perm}}} y = {product} }}"


@pytest.mark.parametrize(("product", "size"), [("MatMul(t, v)", 3), ("MatMul(v, t)", 4)])
@pytest.mark.parametrize(("perm", "shape"), [("[0, 2, 1]", "2, 3, 4"), ("[1, 0]", "3, 4"), ("[0, 1, 3, 2]", "1, 2, 3, 4")])
def test_fires_with_the_same_numbers(product, size, perm, shape):
    """From either side, of matrices and stacks of them."""
    model, fired = apply_rule(TURN_VECTOR_PRODUCT, text(product, perm, shape), symbols={"n": size})
    assert fired == 1
    assert operators(model) == ["MatMul"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"vector": "3, 5"}, "expected a vector"),
        ({"perm": "[1, 2, 0]", "vector": "2"}, "moves other dimensions"),
        ({"result": "y, t"}, "no match"),
    ],
)
def test_declines(given, reason):
    """Matrices, other orders, other users of what is transposed."""
    assert reason in declines(TURN_VECTOR_PRODUCT, text("MatMul(t, v)", **given))
