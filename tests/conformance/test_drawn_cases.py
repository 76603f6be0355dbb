"""The cases that draw numbers, by distribution: their models on inputs of 200,000 probabilities.

The function body that the standard gives for Bernoulli compares the wrong way round (a uniform number greater than p), so the
expanded cases draw a 1 with probability 1 - p; the operator itself draws it with probability p.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from support.backend_suite import cases_of
from support.conformance import LEVELS
from support.provider_sets import SETS, ProviderSet

import sardonyx as ort

COUNT = 200_000
CASES = {case.name: case for case in cases_of("node") if case.name.startswith("test_bernoulli")}
EDGES = np.linspace(0, 1, 11)


def drawn(name, providers: ProviderSet, level, probabilities):
    """What the model of a case draws for any number of probabilities."""
    model = onnx.ModelProto.FromString(CASES[name].model.SerializeToString())
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    session = ort.InferenceSession(model, options, providers=providers.make())
    (item,) = session.get_inputs()
    dtype = np.float64 if item.type == "tensor(double)" else np.float32
    return session, {item.name: probabilities.astype(dtype)}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("providers", SETS, ids=lambda item: item.name)
@pytest.mark.parametrize("name", CASES)
def test_ones_come_with_their_probability(name, providers, level):
    """In each tenth of the probabilities the share of ones (zeros, where expanded) is their mean, within five standard errors."""
    probabilities = np.random.default_rng(3).random(COUNT)
    session, feed = drawn(name, providers, level, probabilities)
    (found,) = session.run(None, feed)
    assert set(np.unique(found).tolist()) == {0, 1}
    wanted = 0 if "expanded" in name else 1
    place = np.digitize(probabilities, EDGES[1:-1])
    for part in range(10):
        chosen = probabilities[place == part]
        error = np.sqrt((chosen * (1 - chosen)).sum())
        assert abs((found[place == part] == wanted).sum() - chosen.sum()) < 5 * error


@pytest.mark.parametrize("name", CASES)
def test_draws_are_new_unless_a_seed_fixes_them(name):
    """A second run repeats the first where the node has a seed, and only there."""
    session, feed = drawn(name, SETS[0], "all", np.full(COUNT, 0.5))
    (first,), (second,) = session.run(None, feed), session.run(None, feed)
    agreeing = float(np.mean(first == second))
    assert agreeing == 1 if "seed" in name else abs(agreeing - 0.5) < 0.01
