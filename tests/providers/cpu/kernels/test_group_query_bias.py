"""GroupQueryAttention with a bias: numbers that are added to the scores of as many keys as the longest sequence has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cpu_run import assert_close

from sardonyx import InferenceSession, SessionOptions
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

_BODY = """width = Shape(mask) {{start = 1, end = 2}}
    longest = Cast(width) {{to = 6}}
    y, pk, pv = com.microsoft.GroupQueryAttention(q, k, v, past_k, past_v, lengths, longest, _, _, _, bias{sinks}) {{
    num_heads = 4, kv_num_heads = 2{more}}}"""


def _model(bias: str, more: str = "", *, has_sinks: bool = False) -> bytes:
    body = _BODY.format(more=more, sinks=", sinks" if has_sinks else "")
    text = f"""ir_version 8 opset 17, com.microsoft 1
        graph main(q: float[b, s, 24], k: float[b, s, 12], v: float[b, s, 12], past_k: float[b, 2, p, 6], past_v: float[b, 2, p, 6],
        lengths: int32[b], mask: int64[b, t], bias: float[{bias}], sinks: float[4])
        -> (y: float[b, s, 24], pk: float[b, 2, c, 6], pv: float[b, 2, c, 6]) {{ {body} }}"""
    return to_bytes(parse_model(text))


def _session(model: bytes, provider: str = "CPU") -> InferenceSession:
    options = SessionOptions()
    options.intra_op_num_threads = 1
    return InferenceSession(model, options, providers=[f"{provider}ExecutionProvider"])


def _feed(S: int, P: int, lengths: list[int], bias: tuple[int, ...]) -> dict[str, Any]:
    random, B = np.random.default_rng(S + P), len(lengths)
    shapes = {"q": (B, S, 24), "k": (B, S, 12), "v": (B, S, 12), "past_k": (B, 2, P, 6), "past_v": (B, 2, P, 6), "sinks": (4,)}
    feed = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    numbers = np.where(random.random(bias) > 0.3, random.standard_normal(bias), -1e4).astype(np.float32)
    return feed | {"lengths": np.array(lengths, np.int32) - 1, "mask": np.ones((B, max(lengths)), np.int64), "bias": numbers}


_CASES = {
    "one step": (1, 7, [8]),
    "several steps": (3, 7, [10, 10]),
    "sequences of lengths of their own": (1, 20, [5, 9, 21]),
    "a buffer longer than what is used": (2, 24, [6, 9]),
    "many queries": (70, 3, [73]),
    "many queries in a longer buffer": (20, 40, [27, 33]),
    "no past": (5, 0, [5, 5]),
    "many pieces of keys": (1, 900, [901, 640]),
}


@pytest.mark.parametrize("case", _CASES)
@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("is_shared", [False, True])
def test_numbers_are_added_to_the_scores(case: str, heads: int, is_shared: bool) -> None:
    """For each head or for all, for each batch or for all; what is behind a sequence stays hidden."""
    S, P, lengths = _CASES[case]
    model = _model("n, h, s, u" if is_shared else f"b, {heads}, s, t")
    feed = _feed(S, P, lengths, (1 if is_shared else len(lengths), heads, S, max(lengths)))
    session = _session(model)
    assert {placement.provider for placement in session.explain()} == {"CPUExecutionProvider"}
    found, wanted = session.run(None, feed), _session(model, "Reference").run(None, feed)
    assert_close(found[0], wanted[0].astype(np.float64), 1e-5)
    for batch, length in enumerate(lengths):
        for ours, theirs in zip(found[1:], wanted[1:], strict=True):
            assert_close(ours[batch, :, :length], theirs[batch, :, :length].astype(np.float64), 1e-6)


@pytest.mark.parametrize("case", ["several steps", "many queries in a longer buffer"])
@pytest.mark.parametrize("more", [", local_window_size = 3", ", softcap = 2.0", ", scale = 0.3"])
def test_windows_limits_scales_and_sinks_go_beside_it(case: str, more: str) -> None:
    """As the reference has them."""
    S, P, lengths = _CASES[case]
    model, feed = _model("b, 4, s, u", more, has_sinks=True), _feed(S, P, lengths, (len(lengths), 4, S, max(lengths)))
    found, wanted = _session(model).run(None, feed), _session(model, "Reference").run(None, feed)
    assert_close(found[0], wanted[0].astype(np.float64), 1e-5)


def test_one_number_for_all_keys_is_left_to_the_reference() -> None:
    """As onnxruntime refuses it."""
    S, P, lengths = _CASES["several steps"]
    session = _session(_model("b, 4, s, 1"))
    assert "ReferenceExecutionProvider" in {placement.provider for placement in session.explain()}
    session.run(None, _feed(S, P, lengths, (2, 4, 3, 1)))


@pytest.mark.parametrize("keys", [9, 11])
def test_it_is_for_as_many_keys_as_the_longest_sequence_has(keys: int) -> None:
    """A shorter one would hide keys, a longer one has numbers that nothing is added to."""
    S, P, lengths = _CASES["several steps"]
    with pytest.raises(InvalidArgument):
        _session(_model("b, 4, s, u")).run(None, _feed(S, P, lengths, (2, 4, 3, keys)))
