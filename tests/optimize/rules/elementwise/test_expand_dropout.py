"""Dropout as Identity or as a choice by random numbers."""

import numpy as np
import pytest
from support.cpu_run import cpu_session
from support.optimizing import apply_rule, declines, operators

import sardonyx
from sardonyx.optimize.rules.elementwise.expand_dropout import EXPAND_DROPOUT, EXPAND_DROPOUT_TRAINING


def dropout(inputs="", given="", outputs="y", attributes="", kind="float", constants="", opset=21):
    return f"""opset {opset} graph(x: {kind}[n, m]{inputs}) -> ({outputs}) {{ {constants}
        {outputs} = Dropout(x{given}) {{{attributes}}} }}"""


def plain(text):
    return text.partition(" graph")[2].join(["graph", ""])


@pytest.mark.parametrize("opset", [7, 10, 12, 21])
def test_without_training_it_is_its_input(opset):
    """At every version, also where it is all of the model."""
    text = dropout(opset=opset)
    model, fired = apply_rule(EXPAND_DROPOUT, text)
    assert fired == 1
    assert operators(model) == ["Identity"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(cpu_session(plain(text), opset=opset).run(None, {"x": x})[0], x)


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("outputs", ["y", "y, mask"])
def test_in_training_elements_are_left_out(outputs, kind):
    """As many as the ratio says; the others grow by what is left out."""
    text = dropout(given=", r, t", outputs=outputs, constants="r: float[] = 0.25 t: bool[] = 1 ", kind=kind)
    x = np.random.default_rng(0).uniform(1, 2, (300, 400)).astype("f4" if kind == "float" else "f8")
    y, *masks = cpu_session(plain(text)).run(None, {"x": x})
    assert y.dtype == x.dtype
    assert abs((y == 0).mean() - 0.25) < 0.01
    np.testing.assert_allclose(y[y != 0], x[y != 0] / 0.75, rtol=1e-6)
    for mask in masks:
        np.testing.assert_array_equal(mask, y != 0)


def test_a_flag_that_is_fed_decides_in_each_run():
    """Without training all elements stay, and the mask says so; a seed of the process repeats the numbers."""
    session = cpu_session(plain(dropout(", t: bool[]", ", _, t", "y, mask")))
    x = np.ones((30, 40), np.float32)
    y, mask = session.run(None, {"x": x, "t": np.array(False)})
    assert (y == 1).all()
    assert mask.all()
    runs = []
    for _ in range(2):
        sardonyx.set_seed(3)
        runs.append(session.run(None, {"x": x, "t": np.array(True)})[0])
    np.testing.assert_array_equal(*runs)
    assert set(runs[0].ravel()) == {0, 2}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"given": ", r, t", "inputs": ", r: float[]", "constants": "t: bool[] = 1"}, "its ratio is computed"),
        ({"given": ", r, t", "constants": "r: float[] = 1.0 t: bool[] = 1"}, "or no share"),
        ({"given": ", _, t", "inputs": ", t: bool[]", "attributes": "seed = 3"}, "a seed"),
        ({"given": ", _, t", "inputs": ", t: bool[]", "kind": "float16"}, "it is of float16"),
        ({"opset": 6}, "not by an input"),
    ],
)
def test_declines(options, reason):
    """Each case that the rules leave alone."""
    assert reason in declines(EXPAND_DROPOUT, dropout(**options))
    if "opset" not in options:
        assert reason in declines(EXPAND_DROPOUT_TRAINING, dropout(outputs="y, mask", **options))
