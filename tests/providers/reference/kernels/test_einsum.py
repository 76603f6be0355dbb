"""Facts about Einsum."""

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "A": 2, ".": 6}


def operands(equation):
    rng = np.random.default_rng(len(equation))
    terms = equation.replace(" ", "").split("->")[0].replace("...", ".").split(",")
    return [rng.standard_normal([SIZES[label] for label in term]) for term in terms]


@pytest.mark.parametrize(
    "equation",
    [
        "ab,bc->ac",
        "ab,bc",
        "ba , bc -> ca",
        "aab,bc->ac",
        "aa->a",
        "aa",
        "ab->ba",
        "abc->b",
        "ab,ab->",
        "ab,ab->ab",
        "a,b->ab",
        "abc,abd->acd",
        "a...,b...->ab...",
        "...a,ab->...b",
        "...ab,...bc->...ac",
        "...",
        "...->...",
        "ab,bc,cd->ad",
        "a,ab,b->",
        "aA->Aa",
        "ab,cd->",
        "abc,cd,d->ba",
        "abab->ab",
    ],
)
def test_it_agrees_with_numpy(equation):
    """Products, sums, diagonals, transposes, outer products and ellipses are as in numpy.einsum."""
    inputs = operands(equation)
    y = run_op("Einsum", *inputs, equation=equation)
    expected = np.einsum(equation, *inputs)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-12)


def test_implicit_output_sorts_upper_case_first():
    """Without an arrow the labels that occur once are ordered as ASCII orders them."""
    x = np.zeros((2, 3, 4))
    assert run_op("Einsum", x, equation="bAa").shape == (3, 4, 2)


def test_axes_of_length_one_broadcast():
    """A label may have length 1 in one input and more in another."""
    x, y = np.array([[2.0], [3.0]]), np.ones((4, 5))
    assert run_op("Einsum", x, y, equation="ab,bc->ac").tolist() == [[8.0] * 5, [12.0] * 5]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.uint8, np.int64])
def test_every_type_stays_itself(dtype):
    """Half floats compute in float32 and round once; integers wrap."""
    y = run_op("Einsum", np.full((1, 300), 2, dtype), np.full((300, 1), 3, dtype), equation="ab,bc->ac")
    assert y.dtype == dtype
    assert y.tolist() == [[np.array(1800).astype(dtype)]]


def test_empty_sums_are_zero():
    """Summing over an axis of length 0 gives 0."""
    assert run_op("Einsum", np.zeros((2, 0)), np.zeros((0, 2)), equation="ab,bc->ac").tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ab,bc->ac", [(2, 3)], "2 terms for 1 inputs"),
        ("ab->a", [(2, 3, 4)], "names 2 axes"),
        ("ab,bc->ac", [(2, 3), (4, 5)], "length 3 in one input and 4"),
        ("ab->ad", [(2, 3)], "output"),
        ("ab->aa", [(2, 3)], "output"),
        ("a1->a", [(2, 3)], "letters"),
        ("a......->a", [(2, 3)], "letters"),
        ("...a,...b->ab", [(2, 3), (3,)], "ellipsis"),
        ("...abc->a", [(2, 3)], "ellipsis"),
    ],
)
def test_wrong_equations_are_refused(equation, shapes, message):
    """The message quotes the equation and names what is wrong with it."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("Einsum", *(np.ones(shape) for shape in shapes), equation=equation)


def test_a_huge_outer_product_is_refused_before_it_is_made():
    """The output's size is checked first."""
    x = np.broadcast_to(np.float32(1), (1 << 20,))
    with pytest.raises(InvalidArgument, match="bytes"):
        run_op("Einsum", x, x, equation="a,b->ab")
