"""Products of tensors."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.expand_einsum import EXPAND_EINSUM

SYMBOLS = {"b": 2, "s": 3, "t": 5}


def text(equation, *shapes, kind="float"):
    inputs = ", ".join(f"{name}: {kind}[{shape}]" for name, shape in zip("xyz", shapes, strict=False))
    operands = ", ".join("xyz"[: len(shapes)])
    return f'graph({inputs}) -> (r) {{ r = Einsum({operands}) {{equation = "{equation}"}} }}'


@pytest.mark.parametrize(
    ("equation", "shapes", "left"),
    [
        ("ij,jk->ik", ("s, 4", "4, t"), ["MatMul"]),
        ("ij,kj->ki", ("s, 4", "t, 4"), ["Transpose", "MatMul"]),
        ("bhid,bhdj->bhij", ("b, 2, s, 8", "b, 2, 8, t"), ["MatMul"]),
        ("bihd,bjhd->bhij", ("b, s, 2, 8", "b, t, 2, 8"), ["Transpose", "Transpose", "MatMul"]),
        ("aecd,abcd->acbe", ("b, t, 2, 8", "b, s, 2, 8"), ["Transpose", "Transpose", "MatMul"]),
        ("bhij, bjhd -> bihd", ("b, 2, s, t", "b, t, 2, 8"), ["Transpose", "MatMul", "Transpose"]),
        ("ibh,hnd->ibnd", ("s, b, 6", "6, 2, 4"), ["Reshape", "MatMul", "Reshape"]),
        ("ibnd,hnd->ibh", ("s, b, 2, 4", "6, 2, 4"), ["Reshape", "Transpose", "Reshape", "MatMul"]),
        ("byhwc,hkc->byhwk", ("b, 1, 3, 2, 4", "3, 5, 4"), ["Transpose", "Reshape", "Transpose", "MatMul", "Reshape", "Transpose"]),
        ("...i,ij->...j", ("b, s, 4", "4, 3"), ["MatMul"]),
        ("...ij,...jk->...ik", ("b, s, 4, 3", "b, s, 3, 2"), ["MatMul"]),
        ("ijbn->bnij", ("s, t, b, 2",), ["Transpose"]),
    ],
)
@pytest.mark.parametrize("kind", ["float", "double"])
def test_fires_with_the_same_numbers(equation, shapes, left, kind):
    """Each order of the indices, and each number of them, becomes one product."""
    model, fired = apply_rule(EXPAND_EINSUM, text(equation, *shapes, kind=kind), symbols=SYMBOLS)
    assert fired == 1
    assert sorted(operators(model)) == sorted(left)


@pytest.mark.parametrize(
    ("equation", "shapes", "reason"),
    [
        ("ij,jk,kl->il", ("2, 3", "3, 4", "4, 5"), "no match"),
        ("ij,jk", ("2, 3", "3, 4"), "has no result"),
        ("ij->i", ("2, 3",), "more than a transpose"),
        ("ii->i", ("3, 3",), "repeats an index"),
        ("iij,jk->ik", ("2, 2, 3", "3, 4"), "repeats an index"),
        ("ijl,jk->ik", ("2, 3, 5", "3, 4"), "sums over one operand alone"),
        ("bi,bi->b", ("2, 3", "2, 3"), "no product of rows and columns"),
        ("i,j->ij", ("2", "3"), "no product of rows and columns"),
        ("bij,bjk->bik", ("1, 2, 3", "4, 3, 5"), "b of bij,bjk->bik counts 1 and 4"),
        ("...ij,...jk->...ik", ("2, 2, 3", "3, 5"), "has different ranks"),
        ("bij,bk->ijk", ("b, s, t", "b, 2"), None),
        ("bsij,bsjk->bsik", ("b, s, t, u", "b, s, u, v"), None),
        ("ibh,hnd->ibnd", ("s, b, 6", "6, n, m"), "are not known"),
        ("bijd,bkd->bijk", ("b, s, t, 4", "b, 5, 4"), "are not known"),
    ],
)
def test_declines(equation, shapes, reason):
    """Each case that the rule leaves alone, beside similar ones that it does not."""
    if reason is None:
        symbols = {**SYMBOLS, "u": 4, "v": 6}
        assert apply_rule(EXPAND_EINSUM, text(equation, *shapes), symbols=symbols)[1] == 1
    else:
        assert reason in declines(EXPAND_EINSUM, text(equation, *shapes))


def test_declines_small_integers():
    """Products of small integers are left to the operator."""
    assert "a type with products" in declines(EXPAND_EINSUM, text("ij,jk->ik", "2, 3", "3, 4", kind="int16"))


def test_half():
    """The product is rounded once."""
    model, fired = apply_rule(EXPAND_EINSUM, text("bij,bjk->bik", "4, 3, 5", "4, 5, 6", kind="float16"), rtol=2e-3)
    assert (fired, operators(model)) == (1, ["MatMul"])
