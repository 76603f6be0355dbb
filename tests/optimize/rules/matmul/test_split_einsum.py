"""Tensor products that are no products of matrices."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.split_einsum import SPLIT_EINSUM


def text(equation, *shapes, kind="float", opset=21):
    inputs = ", ".join(f"{name}: {kind}[{shape}]" for name, shape in zip("xyzw", shapes, strict=False))
    operands = ", ".join("xyzw"[: len(shapes)])
    return f'opset {opset} graph({inputs}) -> (r) {{ r = Einsum({operands}) {{equation = "{equation}"}} }}'


@pytest.mark.parametrize(
    ("equation", "shapes", "left"),
    [
        ("ij->i", ("n, 3",), ["ReduceSum"]),
        ("ij->", ("n, 3",), ["ReduceSum"]),
        ("ijk->ki", ("n, 3, 4",), ["ReduceSum", "Transpose"]),
        ("ijl,jk->ik", ("n, 3, 5", "3, 4"), ["ReduceSum", "Einsum"]),
        ("bi,bi->b", ("n, 3", "n, 3"), ["Mul", "ReduceSum"]),
        ("bi,bi->", ("n, 3", "n, 3"), ["Mul", "ReduceSum"]),
        ("bi,bi->ib", ("n, 3", "n, 3"), ["Transpose", "Transpose", "Mul"]),
        ("i,j->ij", ("n", "3"), ["Unsqueeze", "Unsqueeze", "Mul"]),
        ("i,j->ji", ("n", "3"), ["Unsqueeze", "Unsqueeze", "Mul"]),
        ("bij,bj->bi", ("n, 3, 4", "n, 4"), ["Unsqueeze", "Mul", "ReduceSum"]),
        ("ij,jk,kl->il", ("n, 3", "3, 4", "4, 5"), ["Einsum", "Einsum"]),
        ("a,b,c,d->dcba", ("2", "3", "4", "5"), ["Einsum", "Einsum"]),
    ],
)
@pytest.mark.parametrize("kind", ["float", "double"])
def test_fires_with_the_same_numbers(equation, shapes, left, kind):
    """Sums, element-wise and outer products, and more than two operands."""
    model, fired = apply_rule(SPLIT_EINSUM, text(equation, *shapes, kind=kind), symbols={"n": 2})
    assert fired >= 1
    if len(shapes) < 3:
        assert operators(model) == left


@pytest.mark.parametrize(
    ("equation", "shapes", "reason"),
    [
        ("ij,jk->ik", ("n, 3", "3, 4"), "a product of matrices"),
        ("ij->ji", ("n, 3",), "a transpose"),
        ("ij,jk", ("n, 3", "3, 4"), "has no result"),
        ("...i->...", ("n, 3",), "leaves out indices"),
        ("ii->i", ("3, 3",), "is repeated"),
        ("bi,bi->b", ("n, 3", "n, 1"), "i counts 3 and 1"),
    ],
)
def test_declines(equation, shapes, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(SPLIT_EINSUM, text(equation, *shapes))


def test_declines_small_integers():
    """Sums of small integers are left to the operator."""
    assert "a type with sums" in declines(SPLIT_EINSUM, text("ij->i", "2, 3", kind="int16"))
