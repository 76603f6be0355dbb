"""Masks as the attention kernel reads them."""

import numpy as np
import pytest
from support.cpu_run import cpu_session, reference, steps_of

from sardonyx.codegen.kernels.attention.scores import Masking
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import TensorType, Value
from sardonyx.ir.shape import symbol
from sardonyx.providers.cpu.kernels.attention_mask import check_mask, lower_mask
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes

B, S, T, U = (symbol(name) for name in "bstu")
SCORES = (B, 4, S, T)
SIZES = Sizes({"b": 2, "s": 70, "t": 9, "u": 1})
TARGET = host_target(None)
PANELS = -(-70 // tiling(TARGET).panel) * tiling(TARGET).panel * 9


def mask(*shape, dtype=DataType.FLOAT):
    return Value("m", TensorType(dtype, shape))


def lowered(value):
    low = Lowering(TARGET, 1)
    return lower_mask(low, value, SCORES), [step.name for step in low.steps]


def test_no_mask():
    """Without a mask nothing is read."""
    found, steps = lowered(None)
    assert (found.masking, found.buffers, found.strides(SIZES), steps) == (Masking.NONE, (), (0, 0), [])


@pytest.mark.parametrize(
    ("shape", "strides"), [((T,), (0, 0)), ((B, 1, 1, T), (9, 0)), ((1, 4, 1, T), (0, 9)), ((B, 4, 1, T), (36, 9))]
)
def test_masks_of_keys_are_read_as_they_are(shape, strides):
    """One number for each key needs no step."""
    found, steps = lowered(mask(*shape))
    assert (found.masking, found.strides(SIZES), steps) == (Masking.KEYS, strides, [])


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((S, T), (0, 0)),
        ((B, 1, S, T), (PANELS, 0)),
        ((B, 4, S, T), (4 * PANELS, PANELS)),
        ((U, 4, S, T), (0, PANELS)),
        ((1, 1), (0, 0)),
    ],
)
def test_masks_of_pairs_are_packed(shape, strides):
    """One number for each pair is packed into panels; so is one that is not as long as the keys."""
    found, steps = lowered(mask(*shape))
    assert (found.masking, found.strides(SIZES), steps) == (Masking.FULL, strides, ["Pack"])


def test_truth_values_become_numbers():
    """A boolean mask takes the place of scores."""
    found, steps = lowered(mask(T, dtype=DataType.BOOL))
    assert (found.replaces, steps) == (True, ["Mask"])


def test_one_mask_is_packed_once_for_scores_of_one_shape():
    """The panels are shared by all that read them, unless they are repeated along other sizes."""
    low, value = Lowering(TARGET, 1), mask(1, 1, S, 1)
    first, second = lower_mask(low, value, SCORES), lower_mask(low, value, (B, 8, S, T))
    assert first.buffers == second.buffers
    assert lower_mask(low, value, (B, 4, S, U)).buffers != first.buffers


def test_sizes_that_do_not_broadcast_are_an_error():
    """A mask that turns out not to fit is refused."""
    found, _ = lowered(mask(U, T, S, T))
    with pytest.raises(InvalidArgument, match=r"attn_mask has shape \(1, 9, 70, 9\)"):
        found.strides(SIZES)


@pytest.mark.parametrize(
    ("value", "may_be_short", "reason"),
    [
        (mask(S, T), False, None),
        (mask(S, U), False, None),
        (mask(S, 1), True, None),
        (mask(S, U), True, None),
        (mask(3, S, T), False, "does not broadcast"),
        (mask(S, T, dtype=DataType.DOUBLE), False, "a mask of"),
        (mask(), False, "the mask is a scalar"),
        (mask(1, B, 4, S, T), False, "a mask of 5 dimensions"),
    ],
)
def test_check(value, may_be_short, reason):
    """What can be lowered, and why the rest cannot."""
    found = check_mask(value, SCORES, may_be_short=may_be_short)
    assert found is None if reason is None else reason in (found or "")


@pytest.mark.parametrize("kind", ["float", "bool"])
def test_a_mask_hides_the_keys_behind_its_end(kind):
    """From opset 24 on, be its length known when it is loaded or not; one number is for all keys."""
    for length in ("u", "3"):
        body = f"""graph(q: float[b, 2, s, 4], k: float[b, 2, t, 4], v: float[b, 2, t, 4], m: {kind}[s, {length}]) -> (y) {{
            y = Attention(q, k, v, m) }}"""
        session, rng = cpu_session(body, opset=24), np.random.default_rng(0)
        for S, own in ((5, 3), (1, 3), (9, 3), (5, 7), (5, 1), (70, 4)):
            if length != "u" and own != 3:
                continue
            feeds = {name: rng.standard_normal((2, 2, n, 4)).astype(np.float32) for name, n in (("q", S), ("k", 7), ("v", 7))}
            drawn = rng.standard_normal((S, own)).astype(np.float32)
            feeds["m"] = drawn > -1 if kind == "bool" else drawn
            np.testing.assert_allclose(session.run(None, feeds)[0], reference(body, feeds, opset=24)[0], atol=3e-6)


def test_a_mask_longer_than_the_keys_is_an_error():
    """Which states both shapes."""
    body = "graph(q: float[1, 2, 1, 4], k: float[1, 2, t, 4], m: float[u]) -> (y) { y = Attention(q, k, k, m) }"
    feeds = {"q": np.ones((1, 2, 1, 4), np.float32), "k": np.ones((1, 2, 3, 4), np.float32), "m": np.ones(4, np.float32)}
    with pytest.raises(InvalidArgument, match="attn_mask has shape"):
        cpu_session(body, opset=24).run(None, feeds)


def test_one_session_with_masks_of_changing_sizes():
    """Whether a dimension is 1 may change from run to run."""
    body = """graph(q: float[b, 2, s, 4], k: float[b, 2, t, 4], v: float[b, 2, t, 4], m: bool[e, f, g, h]) -> (y) {
        y = Attention(q, k, v, m) }"""
    assert list(dict.fromkeys(steps_of(body, opset=23))) == ["Mask", "Pack", "Attention"]
    session, rng = cpu_session(body, opset=23), np.random.default_rng(0)
    for shape in ((1, 1, 1, 1), (2, 1, 5, 7), (1, 2, 1, 7), (2, 2, 5, 1)):
        feeds = {name: rng.standard_normal((2, 2, n, 4)).astype(np.float32) for name, n in (("q", 5), ("k", 7), ("v", 7))}
        feeds["m"] = rng.random(shape) > 0.3
        np.testing.assert_allclose(session.run(None, feeds)[0], reference(body, feeds, opset=23)[0], atol=3e-6)
