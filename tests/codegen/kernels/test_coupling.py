"""Coupled probabilities, against the method in float64."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.coupling import CouplingParams, coupling_scratch, write_coupling
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, host_target

TARGETS = [host_target(level) for level in available_levels()]


def coupled(target: Target, decisions, a, offsets, C):
    module = Module(target)
    write_coupling(module, "coupling")
    engine = Engine(target)
    engine.add(module)
    params = CouplingParams(len(decisions), C, 4, 2, coupling_scratch(C))
    result = np.full((len(decisions), C), np.nan, np.float32)
    scratch = np.zeros((2, coupling_scratch(C)), np.float32)
    call(engine, "coupling", [decisions, a, offsets, scratch, result], [*params.words(), params.error], 0, params.tasks())
    return result


def probabilities(decisions, a, offsets, C):
    """The second method of Wu, Lin and Weng, one probability after another."""
    with np.errstate(over="ignore"):
        first = np.clip(1 - 1 / (1 + np.exp(-(decisions.astype(np.float64) * a + offsets))), 1e-7, 1 - 1e-7)
    upper, rows = np.triu_indices(C, 1), []
    for row in first:
        pairwise, p = np.zeros((C, C)), np.full(C, 1 / C)
        pairwise[upper] = row
        pairwise.T[upper] = 1 - row
        Q = -pairwise.T * pairwise
        Q[np.diag_indices(C)] = (pairwise**2).sum(axis=0)
        for _ in range(100):
            if np.abs(Q @ p - p @ Q @ p).max() < 0.005 / C:
                break
            for i in range(C):
                p[i] += (p @ Q @ p - Q[i] @ p) / Q[i, i]
                p /= p.sum()
        rows.append(p)
    return np.array(rows)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
@pytest.mark.parametrize("C", [2, 3, 7])
def test_probabilities_are_those_of_the_method(target, C):
    """Each row adds up to 1; decisions of any size, infinite ones too."""
    rng, pairs = np.random.default_rng(C), C * (C - 1) // 2
    decisions = rng.standard_normal((13, pairs)).astype(np.float32) * 3
    decisions[1:4, 0] = [np.inf, -np.inf, 1e30]
    a, offsets = -rng.random(pairs).astype(np.float32) - 1, rng.standard_normal(pairs).astype(np.float32) / 4
    found = coupled(target, decisions, a, offsets, C)
    np.testing.assert_allclose(found, probabilities(decisions, a, offsets, C), rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


def test_a_row_with_nan_ends_too():
    """It has no probabilities, and the rows beside it have theirs."""
    decisions = np.array([[1, np.nan, 2], [1, -1, 2]], np.float32)
    found = coupled(host_target(), decisions, np.full(3, -1, np.float32), np.zeros(3, np.float32), 3)
    assert np.isfinite(found[1]).all()
