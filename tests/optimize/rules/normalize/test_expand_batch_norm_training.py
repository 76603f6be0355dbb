"""Batch normalizations that train, as reductions."""

import numpy as np
import pytest
from support.cpu_run import cpu_session, reference
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.normalize.expand_batch_norm_training import EXPAND_BATCH_NORM_TRAINING, EXPAND_BATCH_NORM_UPDATES


def training(kind="float", shape="n, 3, h, w", channels="3", outputs="y, m, v", attributes="training_mode = 1", opset=15):
    names = ", ".join(f"{name}: {kind}[{channels}]" for name in "sbav")
    return f"""opset {opset} graph(x: {kind}[{shape}], {names.replace("v:", "u:")}) -> ({outputs}) {{
        {outputs} = BatchNormalization(x, s, b, a, u) {{{attributes}}} }}"""


@pytest.mark.parametrize("shape", ["n, 3, h, w", "n, 3", "n, 3, w"])
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize(("outputs", "rule"), [("y", EXPAND_BATCH_NORM_TRAINING), ("y, m, v", EXPAND_BATCH_NORM_UPDATES)])
def test_fires_with_the_same_numbers(outputs, rule, kind, shape):
    """Of images, rows and sequences, with running statistics and without."""
    model, fired = apply_rule(rule, training(kind, shape, outputs=outputs), symbols={"n": 4, "h": 3, "w": 5})
    assert fired == 1
    assert operators(model).count("ReduceMean") == 2


def test_all_of_it_is_compiled():
    """With its own epsilon and momentum."""
    text = training(attributes="training_mode = 1, epsilon = 0.1, momentum = 0.7").removeprefix("opset 15 ")
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.standard_normal((4, 3, 5, 6), np.float32) * 3 + 1,
        **{name: rng.uniform(0.5, 2, 3).astype("f4") for name in "sbau"},
    }
    for found, wanted in zip(cpu_session(text, opset=15).run(None, feeds), reference(text, feeds, opset=15), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "float16"}, "not of float alone"),
        ({"shape": "3", "channels": "3"}, "no axis of channels"),
        ({"channels": "1", "shape": "n, c, h"}, "not known to be one for each channel"),
        ({"attributes": ""}, "it does not train"),
        ({"attributes": "", "opset": 9}, "it does not train"),
    ],
)
def test_declines(options, reason):
    """Each case that the rules leave alone."""
    assert reason in declines(EXPAND_BATCH_NORM_TRAINING, training(outputs="y", **options), opset=str(options.get("opset", 15)))
