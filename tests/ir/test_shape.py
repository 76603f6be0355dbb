"""Dimensions: integers and symbolic expressions."""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sardonyx.ir.shape import (
    Dim,
    Expr,
    anonymous,
    at_least_zero,
    at_most,
    ceil_div,
    evaluate,
    is_anonymous,
    maximum,
    minimum,
    product,
    substitute,
    symbol,
    symbols_in,
)

N, C, H = symbol("N"), symbol("C"), symbol("H")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (N + C, C + N),
        (N * C, C * N),
        ((N + 1) * (N - 1), N * N - 1),
        (N + N, 2 * N),
        (N - N, 0),
        (N * 0, 0),
        (1 * N, N),
        (3 - N, -N + 3),
        ((2 * N + 6) // 2, N + 3),
        ((2 * N + 7) // 2, N + 3),
        ((4 * N + C) // 2, 2 * N + C // 2),
        ((2 * N) // 4, N // 2),
        ((N * C * H) // (C * H), N),
        ((N * N + 2 * N * C + C * C) // (N + C), N + C),
        (N // N, 1),
        (N // 1, N),
        (0 // N, 0),
        (N * C % C, 0),
        ((4 * N + 6) % 4, 2),
        ((5 * N) % 4, N % 4),
        (N % 1, 0),
        (ceil_div(N * 4, 4), N),
        (ceil_div(7, 2), 4),
        (maximum(N, N + 1), N + 1),
        (maximum(N, 0), N),
        (minimum(N, N + 1), N),
        (minimum(2, 3), 2),
        (maximum(N, C), maximum(C, N)),
        (product([]), 1),
        (product([2, N, 3]), 6 * N),
    ],
)
def test_equal_expressions_are_equal(found: Dim, expected: Dim) -> None:
    """Whatever the order of operations, expressions that simplify alike compare and hash alike."""
    assert found == expected
    assert hash(found) == hash(expected)


@pytest.mark.parametrize("dim", [N - N + 3, (N + 2) - N, N * C // (N * C)])
def test_what_ends_in_a_number_is_an_int(dim: Dim) -> None:
    """No expression without symbols exists."""
    assert type(dim) is int


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (N, "N"),
        (2 * N + 3, "2*N + 3"),
        (N - C, "-C + N"),
        (N * N * C, "C*N^2"),
        (N // 2, "floordiv(N, 2)"),
        (N // 5 // 2 // 2, "floordiv(N, 20)"),
        (((N + 1) // 2 + 1) // 2, "floordiv(N + 3, 4)"),
        ((3 * (N // 5) + 1) // 2, "floordiv(3*floordiv(N, 5) + 1, 2)"),
        ((N + 1) % 3, "mod(N + 1, 3)"),
        (maximum(N, 7), "max(7, N)"),
        (-N, "-N"),
    ],
)
def test_expressions_print_in_a_fixed_order(dim: Dim, text: str) -> None:
    """Text is the same for equal expressions: symbols by name, the constant last."""
    assert str(dim) == text


def test_unlike_symbols_differ() -> None:
    """Symbols are told apart by name, and no expression equals an integer."""
    assert N != C
    assert symbol("N") == N
    assert N != 1
    assert N // 2 != N // 3


@pytest.mark.parametrize(("dim", "name"), [(N, "N"), (2 * N, None), (N + 1, None), (N * N, None), (N // 2, None), (N + C, None)])
def test_only_a_single_symbol_has_a_name(dim: Dim, name: str | None) -> None:
    """`name` is that of the symbol itself, not of what contains it."""
    assert isinstance(dim, Expr)
    assert dim.name == name


def test_anonymous_dimensions_differ_from_one_another() -> None:
    """Two dimensions of which nothing is known are not the same dimension."""
    first, second = anonymous(), anonymous()
    assert first != second
    assert first == first * 1
    assert is_anonymous(first + N)
    assert not is_anonymous(N)
    assert not is_anonymous(3)


def test_symbols_are_found_inside_operations() -> None:
    """Arguments of floordiv and max count."""
    assert symbols_in(maximum(N // (C + 1), 3) + H) == {"N", "C", "H"}
    assert symbols_in(5) == set()


def test_substitution_simplifies() -> None:
    """Numbers and expressions take the place of symbols, inside operations too."""
    dim = (N + 3) // 2 + maximum(C, 4)
    assert substitute(dim, {"N": 7, "C": 2}) == 9
    assert substitute(dim, {"N": 2 * H - 3}) == H + maximum(C, 4)
    assert substitute(N, {}) == N
    assert substitute(3, {"N": 1}) == 3


def test_evaluation_names_what_is_missing() -> None:
    """The KeyError is the name of a symbol without a size."""
    assert evaluate(N * C + 1, {"N": 2, "C": 3}) == 7
    with pytest.raises(KeyError, match="C"):
        evaluate(N * C + 1, {"N": 2})


@pytest.mark.parametrize("divide", [operator.floordiv, operator.mod])
def test_division_by_zero_is_an_error(divide: Callable[[Dim, Dim], Dim]) -> None:
    """The message names the dividend."""
    with pytest.raises(ZeroDivisionError, match="N"):
        divide(N, 0)


@pytest.mark.parametrize(
    ("dim", "expected"),
    [(N, True), (N + 1, True), (0, True), (-1, False), (N - 1, False), (-N, False), (N * C // 2, True), (maximum(N - 5, 0), True)],
)
def test_sizes_are_known_to_be_at_least_zero(dim: Dim, expected: bool) -> None:
    """Symbols are sizes; what could be negative is not claimed."""
    assert at_least_zero(dim) is expected


def test_a_minimum_is_at_most_each_of_its_arguments() -> None:
    """`at_most` looks into a minimum on the left."""
    assert at_most(minimum(N, C), N)
    assert at_most(minimum(N, C), C)
    assert at_most(N, N + 1)
    assert not at_most(N, C)
    assert not at_most(N + 1, N)


def test_the_weight_counts_symbols_and_operations() -> None:
    """A single symbol weighs 1 and each operation adds to that."""
    weights = [dim.weight for dim in (N, N + C, N * C, N // 2, maximum(N // 2, C)) if isinstance(dim, Expr)]
    assert weights[0] == 1
    assert weights[1:3] == [2, 2]
    assert weights[3] > 1
    assert weights[4] > weights[3]


def test_a_product_of_long_sums_is_not_written_out() -> None:
    """Six sums of 40 symbols would have four thousand million terms; its value is the product all the same."""
    sums: list[Dim] = []
    for place in range(6):
        total: Dim = 0
        for number in range(40):
            total = total + symbol(f"s{place}_{number}")
        sums.append(total)
    found = product(sums)
    assert isinstance(found, Expr)
    assert found.weight < 300
    sizes = dict.fromkeys(symbols_in(found), 1)
    assert evaluate(found, sizes) == 40**6
    assert substitute(found, dict.fromkeys(sizes, 2)) == 80**6
    assert at_least_zero(found)
    assert sums[0] * sums[1] == sums[1] * sums[0]


SIZES = {"N": st.integers(1, 50), "C": st.integers(1, 50), "H": st.integers(1, 50)}
OPERATIONS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": maximum,
    "min": minimum,
    "ceil": ceil_div,
}
Tree = int | str | tuple[str, "Tree", "Tree"]
LEAVES = st.one_of(st.integers(-4, 12), st.sampled_from(sorted(SIZES)))
TREES = st.recursive(LEAVES, lambda inner: st.tuples(st.sampled_from(sorted(OPERATIONS)), inner, inner), max_leaves=7)


def built(tree: Tree, leaf: Callable[[str], Dim]) -> Dim:
    if isinstance(tree, tuple):
        return OPERATIONS[tree[0]](built(tree[1], leaf), built(tree[2], leaf))
    return leaf(tree) if isinstance(tree, str) else tree


@settings(max_examples=300, deadline=None)
@given(TREES, st.fixed_dictionaries(SIZES))
def test_arithmetic_on_symbols_agrees_with_arithmetic_on_sizes(tree: Tree, sizes: dict[str, int]) -> None:
    """Putting sizes in at the end gives what computing with the sizes gives, wherever no divisor is 0."""
    try:
        expected = built(tree, lambda name: sizes[name])
        dim = built(tree, symbol)
    except ZeroDivisionError:
        assume(False)
        return
    assert evaluate(dim, sizes) == expected


def test_a_quotient_by_a_size_of_0_counts_as_0() -> None:
    """As a division of integer elements by 0 does, and a remainder."""
    assert evaluate(N // C, {"N": 3, "C": 0}) == 0
    assert evaluate(N % C, {"N": 3, "C": 0}) == 0


def test_integers_of_numpy_count_as_integers() -> None:
    assert N * np.int64(3) == 3 * N


def test_anonymous_dimensions_are_not_kept() -> None:
    """They never come again: a process that makes sessions would fill the table of symbols with them."""
    gc.collect()
    before = sum(isinstance(item, Expr) for item in gc.get_objects())
    for _ in range(50):
        assert is_anonymous(substitute(anonymous() * 2, {}))
    assert sum(isinstance(item, Expr) for item in gc.get_objects()) - before < 10
