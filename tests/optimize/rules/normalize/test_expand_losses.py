"""Losses of a classifier as look-ups and sums."""

import numpy as np
import pytest
from support.cpu_run import cpu_session, reference
from support.optimizing import declines

from sardonyx.errors import InvalidArgument
from sardonyx.optimize.rules.normalize.expand_losses import (
    EXPAND_CROSS_ENTROPY,
    EXPAND_CROSS_ENTROPY_PROBABILITIES,
    EXPAND_LIKELIHOOD_LOSS,
)

LOSSES = pytest.mark.parametrize("operator", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
_RNG = np.random.default_rng(0)


def loss(operator, kind="float", shape="n, 5", target="n", weight="", outputs="y", attributes="", index="int64"):
    given, named = (f", w: {kind}[{weight}]", ", w") if weight else ("", "")
    return f"""graph(x: {kind}[{shape}], t: {index}[{target}]{given}) -> ({outputs}) {{
        {outputs} = {operator}(x, t{named}) {{{attributes}}} }}"""


@LOSSES
@pytest.mark.parametrize(("kind", "numpy", "rtol"), [("float", "f4", 1e-5), ("double", "f8", 1e-12), ("float16", "f2", 2e-3)])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("ignored", [None, 2, -7])
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_losses(operator, kind, numpy, rtol, reduction, ignored, weighted):
    """Of images and of rows, with weights and with a class that does not count, against the reference provider."""
    attributes = f'reduction = "{reduction}"' + ("" if ignored is None else f", ignore_index = {ignored}")
    for index, tail in (("int64", ()), ("int32", (3, 4))):
        sizes = "".join(f", {size}" for size in tail)
        body = loss(operator, kind, f"n, 5{sizes}", f"n{sizes}", "5" if weighted else "", "y", attributes, index)
        target = _RNG.integers(0, 5, (6, *tail)).astype(index)
        if ignored is not None:
            target.flat[::3] = ignored
        feeds = {"x": _RNG.standard_normal((6, 5, *tail)).astype(numpy), "t": target}
        feeds |= {"w": _RNG.uniform(0.5, 2, 5).astype(numpy)} if weighted else {}
        (found,), (wanted,) = cpu_session(body).run(None, feeds), reference(body, feeds)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)


def test_logarithms_of_probabilities_are_an_output():
    """Beside the loss."""
    body = loss("SoftmaxCrossEntropyLoss", shape="n, 5, m", target="n, m", outputs="y, z")
    feeds = {"x": _RNG.standard_normal((2, 5, 3)).astype("f4"), "t": _RNG.integers(0, 5, (2, 3))}
    for found, wanted in zip(cpu_session(body).run(None, feeds), reference(body, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@LOSSES
@pytest.mark.parametrize("wrong", [5, -1, -(2**40)])
def test_classes_that_there_are_not_are_refused(operator, wrong):
    """Also those below 0."""
    with pytest.raises(InvalidArgument):
        cpu_session(loss(operator)).run(None, {"x": np.zeros((2, 5), "f4"), "t": np.array([0, wrong])})


def test_an_ignored_score_that_is_no_number_does_not_count():
    """Nor does an infinite one."""
    body = loss("NegativeLogLikelihoodLoss", attributes="ignore_index = 0")
    x = np.array([[np.nan, 1, 1, 1, 1], [np.inf, 2, 2, 2, 2]], "f4")
    assert cpu_session(body).run(None, {"x": x, "t": np.array([0, 1])})[0] == -2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": "m"}, "not known to fit"),
        ({"shape": "5", "target": "5"}, "not known to fit"),
        ({"weight": "4"}, "not known to be one for each"),
        ({"attributes": 'reduction = "max"'}, "neither none, sum nor mean"),
    ],
)
def test_declines(options, reason):
    """Each case that the rules leave alone."""
    assert reason in declines(EXPAND_LIKELIHOOD_LOSS, loss("NegativeLogLikelihoodLoss", **options))
    assert reason in declines(EXPAND_CROSS_ENTROPY, loss("SoftmaxCrossEntropyLoss", **options))
    assert reason in declines(EXPAND_CROSS_ENTROPY_PROBABILITIES, loss("SoftmaxCrossEntropyLoss", outputs="y, z", **options))
