"""LSTMs of 8 bits as products of integers and a Scan."""

import numpy as np
import pytest
from support.cpu_run import cpu_session
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.expand_quantized_lstm import (
    EXPAND_QUANTIZED_LSTM,
    EXPAND_QUANTIZED_LSTM_OUTPUT,
    EXPAND_QUANTIZED_LSTM_STATE,
)

RULES = {1: EXPAND_QUANTIZED_LSTM_OUTPUT, 2: EXPAND_QUANTIZED_LSTM_STATE, 3: EXPAND_QUANTIZED_LSTM}
OPSET = "21, com.microsoft 1"


def text(
    directions=1,
    outputs=3,
    columns="",
    batch="n",
    given="",
    states="_, _",
    lengths="_",
    attributes="",
    fed="",
    peepholes="_",
    steps="t",
):
    names = ", ".join(("y", "h", "c")[:outputs])
    way = {1: "forward", 2: "bidirectional"}[directions]
    size = f"{directions}, 20" if columns else str(directions)
    numbers = {1: "[0.01]", 2: "[0.01, 0.02]"}[directions] if not columns else "... 3"
    zeros = {1: "[3]", 2: "[3, -4]"}[directions] if not columns else "... 4"
    return f"""graph(x: float[{steps}, {batch}, 6]{fed}) -> ({names}) {{ w: int8[{directions}, 6, 20] = ... 1 r: int8[{directions}, 5, 20] = ... 2
        b: float[{directions}, 40] = ... 5 s: float[{size}] = {numbers} z: int8[{size}] = {zeros} {given}
        {names} = com.microsoft.DynamicQuantizeLSTM(x, w, r, b, {lengths}, {states}, {peepholes}, s, z, s, z)
        {{hidden_size = 5, direction = "{way}"{attributes}}} }}"""


@pytest.mark.parametrize("outputs", [1, 2, 3])
@pytest.mark.parametrize("directions", [1, 2])
def test_fires_with_the_same_numbers(directions, outputs):
    """In one or two directions, whichever results are asked for."""
    model, fired = apply_rule(RULES[outputs], text(directions, outputs), opset=OPSET, rtol=0.02)
    assert fired == 1
    assert operators(model).count("Scan") == directions
    assert operators(model).count("DynamicQuantizeLinear") == 1


@pytest.mark.parametrize(
    "given",
    [
        {"columns": "yes", "directions": 2},
        {"attributes": ', activations = ["Sigmoid", "Tanh", "Tanh"]'},
        {"batch": "2"},
        {"batch": "2", "given": "h0: float[1, 2, 5] = ... 8 c0: float[1, 2, 5] = ... 9", "states": "h0, c0"},
        {"attributes": ", clip = 0.5"},
        {"attributes": ", input_forget = 1"},
        {"attributes": ', activations = ["Sigmoid", "Relu", "Softsign"]'},
        {"given": "P: float[1, 15] = ... 8", "peepholes": "P", "attributes": ", clip = 0.5"},
        {"given": "P: float[2, 15] = ... 8", "peepholes": "P", "directions": 2},
    ],
)
def test_other_forms(given):
    """Scales by column, other activations, a batch of known size, states that are given, clips, coupled gates, peepholes."""
    _, fired = apply_rule(EXPAND_QUANTIZED_LSTM, text(**given), opset=OPSET, rtol=0.02)
    assert fired == 1


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("lengths", ["[4, 4, 4]", "[1, 4, 2]", "[2, 1, 3]"])
def test_sequences_may_end_early(directions, lengths):
    """All of them, or some; they are read backwards within their lengths."""
    given = f"l: int32[3] = {lengths} h0: float[{directions}, 3, 5] = ... 8"
    graph = text(directions, batch="3", steps="5", given=given, lengths="l", states="h0, _")
    _, fired = apply_rule(EXPAND_QUANTIZED_LSTM, graph, opset=OPSET, rtol=1e-5)
    assert fired == 1


def test_the_last_step_may_be_the_first():
    """Backwards, results lie in the order of the input."""
    given = text(1, 3).replace('"forward"', '"reverse"')
    _, fired = apply_rule(EXPAND_QUANTIZED_LSTM, given, opset=OPSET, rtol=0.02)
    assert fired == 1


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"attributes": ', activations = ["Sigmoid", "Elu", "Tanh"]'}, "elu"),
        ({"attributes": ', activations = ["Sigmoid", "Tanh"]'}, "the activations are"),
        ({"attributes": ", activation_alpha = [1.0]"}, "parameters"),
        ({"given": "P: float[1, 10] = ... 8", "peepholes": "P"}, "peepholes"),
        ({"outputs": 2}, "no match"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_QUANTIZED_LSTM, text(**given), opset=OPSET)


def test_weights_that_are_fed_are_left_alone():
    """They could not be packed."""
    given = text(fed=", w: int8[1, 6, 20]").replace("w: int8[1, 6, 20] = ... 1 ", "")
    assert "no constants" in declines(EXPAND_QUANTIZED_LSTM, given, opset=OPSET)


def test_all_of_it_is_compiled():
    """No step is left to the reference provider."""
    body = text(2, 3).replace("-> (y, h, c)", "-> (y: float[t, 2, n, 5], h: float[2, n, 5], c: float[2, n, 5])")
    session = cpu_session(body)
    x = np.random.default_rng(1).standard_normal((7, 3, 6)).astype(np.float32)
    assert [result.shape for result in session.run(None, {"x": x})] == [(7, 2, 3, 5), (2, 3, 5), (2, 3, 5)]
