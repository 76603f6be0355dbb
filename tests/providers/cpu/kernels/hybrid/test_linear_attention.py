"""LinearAttention against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, declined, reference

from sardonyx.errors import InvalidArgument


def text(
    rule="gated_delta", heads=(4, 2), size=(8, 6), domain="com.microsoft.", decay=0, beta=0, attributes="", inputs="q, k, v, p"
):
    """A model of one node on B batches of T steps."""
    (N, M), (K, V) = heads, size
    given = inputs + (", d" if "gated" in rule else ", _" if "delta" in rule else "") + (", b" if "delta" in rule else "")
    return f"""graph(q: float[B, T, {N * K}], k: float[B, T, {M * K}], v: float[C, T, {M * V}], p: float[B, {M}, {K}, {V}],
        d: float[B, T, {decay or M}], b: float[B, T, {beta or M}]) -> (y, s) {{
        y, s = {domain}LinearAttention({given}) {{q_num_heads = {N}, kv_num_heads = {M}, update_rule = "{rule}"{attributes}}} }}"""


def feeds(heads=(4, 2), size=(8, 6), decay=0, beta=0, B=2, T=5):
    """What such a model is fed."""
    (N, M), (K, V), rng = heads, size, np.random.default_rng(0)
    q, k, v = (rng.standard_normal((B, T, width)).astype(np.float32) for width in (N * K, M * K, M * V))
    p, d = rng.standard_normal((B, M, K, V)).astype(np.float32), -rng.uniform(0, 2, (B, T, decay or M)).astype(np.float32)
    return {"q": q, "k": k / 4, "v": v, "p": p, "d": d, "b": rng.uniform(0, 1, (B, T, beta or M)).astype(np.float32)}


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("inputs", ["q, k, v, p", "q, k, v, _"])
def test_every_rule(rule: str, inputs: str, isa: str) -> None:
    """With a state to begin with, and without."""
    found = cpu_session(text(rule, inputs=inputs), opset=27, isa=isa).run(None, feeds())
    for result, exact in zip(found, reference(text(rule, inputs=inputs), feeds(), opset=27), strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{"decay": 16}, {"beta": 1}, {"heads": (2, 4)}, {"heads": (1, 1), "size": (1, 65)}, {"attributes": ", scale = 2.0"}]
)
def test_forms(options: dict) -> None:
    """A decay for each row, one beta for all heads, more states than queries, another scale."""
    sizes = {name: value for name, value in options.items() if name != "attributes"}
    found = cpu_session(text(**options), opset=27).run(None, feeds(**sizes))
    for result, exact in zip(found, reference(text(**options), feeds(**sizes), opset=27), strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)


def test_the_standard_one() -> None:
    """Of ai.onnx, from opset 27 on."""
    found = cpu_session(text(domain=""), opset=27).run(None, feeds())
    for result, exact in zip(found, reference(text(domain=""), feeds(), opset=27), strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)


def test_threads_and_batches_do_not_change_bits() -> None:
    """Each sequence is computed as it is alone."""
    session, fed = cpu_session(text(), opset=27), feeds(B=3)
    whole = cpu_session(text(), opset=27, threads=2).run(None, fed)
    alone = session.run(None, {name: array[1:2] for name, array in fed.items()})
    for result, part in zip(whole, alone, strict=True):
        assert_same_bits(result[1:2], part)


def test_steps_one_at_a_time_give_what_all_give() -> None:
    """As a decoder runs them."""
    session, fed = cpu_session(text(), opset=27), feeds(T=4)
    whole, state = session.run(None, fed), fed["p"]
    for t in range(4):
        step = {name: array if name == "p" else array[:, t : t + 1] for name, array in fed.items()}
        y, state = session.run(None, step | {"p": state})
        np.testing.assert_array_equal(y, whole[0][:, t : t + 1])
    np.testing.assert_array_equal(state, whole[1])


def test_inputs_that_do_not_fit_are_named() -> None:
    """Where only the run shows it."""
    fed = feeds()
    with pytest.raises(InvalidArgument, match="value has shape"):
        cpu_session(text(), opset=27).run(None, fed | {"v": fed["v"][:1]})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"attributes": ", state_window = 2", "inputs": "q, k, v, _"}, "a window of states"),
        ({"rule": "softmax"}, "unknown"),
        ({"decay": 3}, "needs an input decay"),
        ({"heads": (3, 2)}, "do not share heads"),
    ],
)
def test_what_is_left_to_others(options: dict, reason: str) -> None:
    """Each case that is not compiled."""
    assert any(reason in text for text in declined(text(**options), opset=27))


@pytest.mark.parametrize("gate", ["d", "b"])
def test_gates_of_another_rank_are_left_to_others(gate: str) -> None:
    """Such as one for each step."""
    body = text().replace(f"{gate}: float[B, T, 2]", f"{gate}: float[T]")
    assert any("needs an input" in reason for reason in declined(body, opset=27))
