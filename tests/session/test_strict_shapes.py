"""`session.strict_shape_type_inference`: what onnxruntime 1.31 gives for each of these models."""

from __future__ import annotations

import pytest
from support.session_models import session

import sardonyx as ort

_TEXTS = {
    "a dimension of an output": ("graph(x: float[2, 4]) -> (y: float[3, 4]) {\ny = Relu(x)\n}", [None, 4]),
    "the rank of an output": ("graph(x: float[2, 4]) -> (y: float[2, 4, 1]) {\ny = Relu(x)\n}", []),
    "two dimensions": ("graph(x: float[2, 4]) -> (y: float[4, 3]) {\ns: int64[2] = [2, 4]\ny = Reshape(x, s)\n}", [None, None]),
}


def _made(text: str, strict: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.strict_shape_type_inference", strict)
    return session(text, sess_options=options)


@pytest.mark.parametrize("what", _TEXTS)
def test_a_contradiction_is_an_error_when_asked_for(what: str) -> None:
    """Else the operator counts, and what both say of the output is left open."""
    text, shape = _TEXTS[what]
    assert _made(text, "0").get_outputs()[0].shape == shape
    with pytest.raises(ort.InvalidGraph, match=r"is declared with shape .* but the operator makes"):
        _made(text, "1")


@pytest.mark.parametrize("shape", ["m, 4", "2, 4", "2, k"])
def test_symbols_contradict_nothing(shape: str) -> None:
    """They may stand for what the operator makes."""
    _made(f"graph(x: float[n, 4]) -> (y: float[{shape}]) {{\ny = Relu(x)\n}}", "1")


@pytest.mark.parametrize("strict", ["0", "1"])
def test_types_and_inputs_that_do_not_fit_are_errors_always(strict: str) -> None:
    """Whatever the option says, as in onnxruntime."""
    with pytest.raises(ort.InvalidGraph, match="declared as"):
        _made("graph(x: float[2]) -> (y: int32[2]) {\ny = Relu(x)\n}", strict)
    with pytest.raises(ort.InvalidGraph, match="broadcast"):
        _made("graph(x: float[2, 4], w: float[3, 4]) -> (y: float[2, 4]) {\ny = Add(x, w)\n}", strict)
