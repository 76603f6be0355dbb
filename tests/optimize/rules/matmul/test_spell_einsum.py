"""Equations of tensor products, written in full."""

import numpy as np
import pytest
from support.cpu_run import run_cpu
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.spell_einsum import SPELL_EINSUM


def text(equation, *shapes, kind="float"):
    inputs = ", ".join(f"{name}: {kind}[{shape}]" for name, shape in zip("xyzw", shapes, strict=False))
    operands = ", ".join("xyzw"[: len(shapes)])
    return f'opset 21 graph({inputs}) -> (r) {{ r = Einsum({operands}) {{equation = "{equation}"}} }}'


CASES = pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", ("n, 3", "3, 4")),
        ("ba", ("n, 3",)),
        ("ij,ij", ("n, 3", "n, 3")),
        ("...i", ("n, 2, 3",)),
        ("...i,...i->...", ("n, 2, 3", "n, 2, 3")),
        ("...i,...j->...ij", ("n, 2, 3", "n, 2, 4")),
        ("...i,...->...i", ("n, 3", "1")),
        ("...ij,...jk->...ik", ("4, 1, 2, 3", "4, 5, 3, 2")),
        ("...ij,jk->...ik", ("4, 1, 2, 3", "3, 2")),
        ("ii->i", ("3, 3",)),
        ("ii", ("n, n",)),
        ("bii->bi", ("n, m, m",)),
        ("iji->j", ("3, n, 3",)),
        ("iii,ij->j", ("3, 3, 3", "3, n")),
        (" i i -> i ", ("3, 3",)),
    ],
)


@CASES
@pytest.mark.parametrize("kind", ["float", "int32", "float16"])
def test_fires_with_the_same_numbers(equation, shapes, kind):
    """Results that are implied, dots for no, one and several dimensions, diagonals of two and three."""
    model, fired = apply_rule(SPELL_EINSUM, text(equation, *shapes, kind=kind), symbols={"n": 2, "m": 3}, rtol=2e-3)
    assert fired == 1
    assert operators(model)[-1] == "Einsum"


@CASES
@pytest.mark.parametrize("kind", ["float", "double", "int64", "float16"])
def test_all_of_it_is_compiled(equation, shapes, kind):
    """Against NumPy."""
    sizes = {"n": 2, "m": 3}
    rng = np.random.default_rng(0)
    drawn = [rng.integers(-4, 5, [int(sizes.get(dim, dim)) for dim in shape.split(", ")]) for shape in shapes]
    dtype = {"float": "f4", "double": "f8", "int64": "i8", "float16": "f2"}[kind]
    feeds = {name: array.astype(dtype) for name, array in zip("xyzw", drawn, strict=False)}
    (found,) = run_cpu(text(equation, *shapes, kind=kind).removeprefix("opset 21 "), feeds)
    np.testing.assert_array_equal(found, np.einsum(equation, *drawn).astype(dtype))


@pytest.mark.parametrize(
    ("equation", "shapes", "reason"),
    [
        ("ij,jk->ik", ("2, 3", "3, 4"), "written in full"),
        ("...i,...i->...", ("2, 3", "4, 2, 3"), "different ranks"),
        ("ii->i", ("n, m",), "a diagonal of n and m"),
        ("ii->j", ("3, 3",), "other indices"),
    ],
)
def test_declines(equation, shapes, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(SPELL_EINSUM, text(equation, *shapes))
