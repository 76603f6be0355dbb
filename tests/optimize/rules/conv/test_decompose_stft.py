"""Short-time Fourier transforms by convolutions."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.conv.decompose_stft import DECOMPOSE_STFT


def text(call="STFT(x, s, w, l)", shape="2, 50, 1", kind="float", constants="s: int64[] = 4 l: int64[] = 16", window=16):
    return f"""graph(x: {kind}[{shape}], a: int64[], u: {kind}[16]) -> (y) {{ {constants} w: {kind}[{window}] = ... 1
        y = {call} }}"""


@pytest.mark.parametrize("opset", ["17", "21"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"call": "STFT(x, s, w)"},
        {"call": "STFT(x, s, _, l)"},
        {"call": "STFT(x, s, w, l) {onesided = 0}"},
        {"shape": "n, t, 1"},
        {"constants": "s: int32[] = 3 l: int32[] = 15", "window": 15},
        {"shape": "1, 16, 1"},
        {"shape": "2, 50"},
        {"constants": "s: int64[] = 7 l: int64[] = 1", "window": 1},
    ],
)
def test_fires_with_the_same_numbers(given, opset):
    """With a window and without, one-sided and not, of any length."""
    model, fired = apply_rule(DECOMPOSE_STFT, text(**given), opset=opset, symbols={"n": 2, "t": 41})
    assert fired == 1
    assert "Conv" in operators(model)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"shape": "2, 50, 2"}, "the signal is"),
        ({"kind": "double"}, "the signal is"),
        ({"shape": "2, 50, c"}, "the signal is"),
        ({"call": "STFT(x, a, w, l)"}, "no match"),
        ({"call": "STFT(x, s, u, l)"}, "no match"),
        ({"call": "STFT(x, s)"}, "no length"),
        ({"call": "STFT(x, s, _, l)", "constants": "s: int64[] = 4 l: int64[] = 513", "shape": "1, 2000, 1"}, "more than 512"),
        ({"call": "STFT(x, s, w)", "window": 513, "shape": "1, 2000, 1"}, "more than 512"),
    ],
)
def test_declines(given, reason):
    """Complex signals, other types, what is computed, long frames."""
    assert reason in declines(DECOMPOSE_STFT, text(**given))
