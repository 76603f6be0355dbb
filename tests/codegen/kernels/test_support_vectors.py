"""Sums of kernel values per class, against float64, for every level of instructions."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import OPERATORS, argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.support_vectors import (
    FEATURE_BLOCK,
    FIRST_NUMBER,
    MachineParams,
    Outcome,
    pack_panels,
    panel_table,
    scratch_elements,
    write_machine,
)
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, host_target

RNG = np.random.default_rng(11)
X = argument(0, F32)
TARGETS = [host_target(level) for level in available_levels()]


def engine_of(target: Target, outcome: Outcome, *, is_distance: bool) -> Engine:
    module = Module(target)
    value = OPERATORS["exp"](-argument(1, F32) * X) if is_distance else argument(1, F32) * X + argument(2, F32)
    write_machine(module, "machine", is_distance=is_distance, value=value, outcome=outcome)
    engine = Engine(target)
    engine.add(module)
    return engine


def sums(x, vectors, weights, counts, *, is_distance):
    """T in float64: (N, R, C)."""
    x, vectors = x.astype(np.float64), vectors.astype(np.float64)
    if is_distance:
        values = np.exp(-0.5 * ((x[:, None] - vectors) ** 2).sum(axis=2))
    else:
        values = 0.5 * (x @ vectors.T) + 2
    ends = np.cumsum(counts)
    parts = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    return np.stack([values[:, part] @ weights[:, part].astype(np.float64).T for part in parts], axis=2)


def run(target, outcome, x, counts, *, is_distance, vectors, weights, rho, begin=0, end=None):
    N, C, lanes = len(x), len(counts), target.lanes(32)
    params = MachineParams.blocked(target, N, x.shape[1], C, sum(counts), 2)
    scores = np.full((N, {Outcome.PAIR: 2, Outcome.DECISIONS: C * (C - 1) // 2}.get(outcome, 1)), np.nan, np.float32)
    chosen, labels = np.full(N, -9, np.int64), np.arange(C) * 3 + 1
    arrays = [
        x,
        pack_panels(vectors.T, counts, lanes),
        pack_panels(weights, counts, lanes),
        panel_table(counts, lanes),
        rho,
        np.zeros((2, scratch_elements(target, C))),
        scores,
        labels,
        chosen,
    ]
    engine = engine_of(target, outcome, is_distance=is_distance)
    assert len(params.words()) == FIRST_NUMBER
    call(engine, "machine", arrays, [*params.words(), 0.5, 2.0, 0.0], begin, params.tasks() if end is None else end)
    return scores, chosen


def drawn(N, F, counts):
    V, R = sum(counts), max(len(counts) - 1, 1)
    x, vectors = (RNG.standard_normal((size, F)).astype(np.float32) for size in (N, V))
    return (
        x,
        vectors,
        RNG.standard_normal((R, V)).astype(np.float32),
        RNG.standard_normal(max(R * (R + 1) // 2, 1)).astype(np.float32),
    )


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
@pytest.mark.parametrize("is_distance", [False, True])
@pytest.mark.parametrize(("N", "F", "V"), [(1, 1, 1), (3, 5, 17), (8, 4, 16), (9, 3, 70), (17, FEATURE_BLOCK + 1, 33)])
def test_a_sum_of_one_class(target, is_distance, N, F, V):
    """Within rounding of float64, for any number of rows, features and vectors."""
    x, vectors, weights, rho = drawn(N, F, [V])
    found, _ = run(target, Outcome.SUM, x, [V], is_distance=is_distance, vectors=vectors, weights=weights, rho=rho)
    expected = sums(x, vectors, weights, [V], is_distance=is_distance)[:, 0] + rho[0]
    scale = np.abs(weights).sum() * (1 if is_distance else np.abs(x).max() * np.abs(vectors).max() * F)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * scale)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
@pytest.mark.parametrize("counts", [[1, 1], [16, 0], [3, 40, 17], [5, 1, 0, 33, 2]])
def test_decisions_and_votes(target, counts):
    """A positive decision is a vote for the first class of a pair; the first class of most votes gives the label."""
    x, vectors, weights, rho = drawn(11, 6, counts)
    outcome = Outcome.PAIR if len(counts) == 2 else Outcome.DECISIONS
    scores, chosen = run(target, outcome, x, counts, is_distance=True, vectors=vectors, weights=weights, rho=rho)
    t, C = sums(x, vectors, weights, counts, is_distance=True), len(counts)
    pairs = [(i, j) for i in range(C) for j in range(i + 1, C)]
    decisions = np.stack([t[:, j - 1, i] + t[:, i, j] + rho[p] for p, (i, j) in enumerate(pairs)], axis=1)
    expected = np.concatenate([-decisions, decisions], axis=1) if C == 2 else decisions
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)
    votes = np.zeros((len(x), C))
    for p, (i, j) in enumerate(pairs):
        votes[:, i] += decisions[:, p] > 0
        votes[:, j] += decisions[:, p] <= 0
    np.testing.assert_array_equal(chosen, votes.argmax(axis=1) * 3 + 1)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_a_row_alone_has_the_bits_that_it_has_among_others(target):
    """Whichever rows go with it."""
    counts = [40, 100]
    x, vectors, weights, rho = drawn(13, 7, counts)
    given = {"is_distance": True, "vectors": vectors, "weights": weights, "rho": rho}
    whole, _ = run(target, Outcome.PAIR, x, counts, **given)
    alone = np.concatenate([run(target, Outcome.PAIR, x[n : n + 1], counts, **given)[0] for n in range(len(x))])
    np.testing.assert_array_equal(whole, alone)


def test_a_vector_with_an_infinite_dot_product_does_not_reach_the_others():
    """What fills a panel up counts for nothing: not 0 times infinity."""
    x, vectors, weights, rho = drawn(2, 3, [3])
    x[0, 0], vectors[:] = np.inf, 1
    weights[:] = 1
    found, _ = run(host_target(), Outcome.SUM, x, [3], is_distance=False, vectors=vectors, weights=weights, rho=rho)
    assert found[0, 0] == np.inf


def test_a_sign_is_that_of_a_positive_sum():
    """NaN and 0 give -1."""
    x = np.array([[1], [-1], [0], [np.nan]], np.float32)
    one, none = np.ones((1, 1), np.float32), np.array([-2], np.float32)
    found, _ = run(host_target(), Outcome.SIGN, x, [1], is_distance=False, vectors=one, weights=one, rho=none)
    np.testing.assert_array_equal(found[:, 0], [1, -1, -1, -1])


def test_tasks_write_their_rows_alone():
    """And all tasks write all rows."""
    target, counts = host_target(), [3000]
    x, vectors, weights, rho = drawn(40, 60, counts)
    given = {"is_distance": True, "vectors": vectors, "weights": weights, "rho": rho}
    params = MachineParams.blocked(target, 40, 60, 1, 3000, 2)
    assert params.tasks() == -(-40 // params.block) > 2
    first, _ = run(target, Outcome.SUM, x, counts, **given, end=1)
    assert np.isnan(first[params.block :]).all()
    assert not np.isnan(first[: params.block]).any()
