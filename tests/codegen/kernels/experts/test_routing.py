"""Which experts are chosen, and where their rows lie."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.experts.routing import write_choose, write_collect, write_group, write_spread
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """All kernels."""
    engine, module = Engine(target), Module(target)
    for name, is_normalized, is_mixed in (("choose", False, False), ("normalized", True, False), ("mixed", True, True)):
        write_choose(module, name, is_normalized=is_normalized, is_mixed=is_mixed)
    write_group(module, "group")
    write_spread(module, "spread")
    for has_bias in (False, True):
        write_collect(module, f"collect{int(has_bias)}", has_bias=has_bias)
    engine.add(module)
    return engine


def _choose(engine: Engine, symbol: str, router: Array, k: int, *mixing: Array) -> tuple[Array, Array]:
    T, E = router.shape
    chosen, shares = np.full((T, k), 77, np.int32), np.full((T, k), 7, np.float32)
    call(engine, symbol, [router, chosen, shares, np.zeros((T, E), np.int32), *mixing], [E, k], 0, T)
    return chosen, shares


@pytest.mark.parametrize("E", [1, 3, 16, 33])
def test_the_greatest_are_chosen_in_order(engine: Engine, E: int) -> None:
    """With the softmax of the whole row as shares."""
    router = _RNG.standard_normal((5, E)).astype(np.float32)
    for k in {1, (E + 1) // 2, E}:
        chosen, shares = _choose(engine, "choose", router, k)
        expected = np.argsort(-router, axis=1, kind="stable")[:, :k]
        assert (chosen == expected).all()
        weights = np.exp(router.astype(np.float64))
        weights /= weights.sum(1, keepdims=True)
        np.testing.assert_allclose(shares, np.take_along_axis(weights, expected, 1), rtol=1e-6)


def test_shares_may_be_normalized_and_given(engine: Engine) -> None:
    """Their sum is 1; where it is 0 they stay 0."""
    router = _RNG.standard_normal((3, 6)).astype(np.float32)
    assert np.allclose(_choose(engine, "normalized", router, 3)[1].sum(1), 1)
    mixing = _RNG.random((3, 6)).astype(np.float32)
    mixing[1] = 0
    chosen, shares = _choose(engine, "mixed", router, 2, mixing)
    picked = np.take_along_axis(mixing, chosen.astype(np.int64), 1)
    totals = picked.sum(1, keepdims=True)
    np.testing.assert_allclose(shares, picked / np.where(totals == 0, 1, totals), rtol=1e-6)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1, 1, 1, 1], [0, 1, 2, 3]),
        ([0.0, -0.0, 0.0, -0.0], [0, 1, 2, 3]),
        ([np.nan, -np.inf, np.nan, 2], [3, 1, 0, 2]),
        ([np.nan] * 4, [0, 1, 2, 3]),
        ([-np.inf, np.inf, -np.inf, -1e30], [1, 3, 0, 2]),
    ],
)
def test_equal_and_special_elements(engine: Engine, row: list[float], expected: list[int]) -> None:
    """The first of equal ones; NaN after all others; no expert twice."""
    assert _choose(engine, "choose", np.array([row], np.float32), 4)[0].tolist() == [expected]


def test_rows_of_an_expert_follow_one_another(engine: Engine) -> None:
    """In the order of tokens; experts that nobody chose have none."""
    chosen = np.array([[2, 0], [2, 5], [0, 2]], np.int32)
    offsets, places = np.full(7 + 1, 99, np.int64), np.full((3, 2), 99, np.int64)
    owners = np.full(6 + 1, 99, np.int32)
    call(engine, "group", [chosen, offsets, places, owners], [6, 6], 0, 1)
    assert offsets.tolist() == [0, 2, 2, 5, 5, 5, 6, 99]
    assert places.tolist() == [[2, 0], [3, 5], [1, 4]]
    assert owners.tolist() == [0, 0, 2, 2, 2, 5, 99]


@pytest.mark.parametrize("C", [1, 15, 16, 33])
def test_rows_go_out_and_come_back(engine: Engine, C: int) -> None:
    """Each token to the rows of its experts; their sum by its shares, with biases or without."""
    x, places = _RNG.standard_normal((3, C)).astype(np.float32), np.array([[2, 0], [3, 5], [1, 4]], np.int64)
    rows = np.full((6, C), 7, np.float32)
    call(engine, "spread", [x, places, rows], [C, 2], 0, 3)
    assert all((rows[places[t, p]] == x[t]).all() for t in range(3) for p in range(2))
    chosen = np.array([[2, 0], [2, 1], [0, 2]], np.int32)
    shares, bias = _RNG.random((3, 2)).astype(np.float32), _RNG.standard_normal((3, C)).astype(np.float32)
    rows = _RNG.standard_normal((6, C)).astype(np.float32)
    for has_bias in (False, True):
        y = np.full((3, C), 7, np.float32)
        call(engine, f"collect{int(has_bias)}", [rows, places, chosen, shares, y, bias], [C, 2], 0, 3)
        added = rows[places] + (bias[chosen] if has_bias else 0)
        np.testing.assert_allclose(y, (added.astype(np.float64) * shares[..., None]).sum(1), rtol=1e-5, atol=1e-6)
