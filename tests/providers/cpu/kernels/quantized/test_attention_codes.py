"""GroupQueryAttention with caches of 8 and 4 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cpu_run import LEVELS, declined, reference, run_cpu, symbols_of

from sardonyx.dtypes import Array

_H, _M, _D = 4, 2, 6
_TYPES = {8: "int8", 4: "uint8"}


def _body(bits: int, way: str, *, kind: str = "float", rotary: bool = False, packed: bool = False, attributes: str = "") -> str:
    stored, scales = _D * bits // 8, "1" if way == "PER_TENSOR" else f"1, {_M}, 1, {_D}"
    q = (_H + 2 * _M) * _D if packed else _H * _D
    own = "" if packed else f", k: {kind}[b, s, {_M * _D}], v: {kind}[b, s, {_M * _D}]"
    tables = f", cos: {kind}[40, 2], sin: {kind}[40, 2]" if rotary else ""
    cache = f"{_TYPES[bits]}[b, {_M}, p, {stored}]"
    return f"""graph(q: {kind}[b, s, {q}]{own}, pk: {cache}, pv: {cache}, lengths: int32[b], mask: int64[b, t],
        ks: float[{scales}], vs: float[{scales}]{tables}) -> (y: {kind}[b, s, {_H * _D}], nk, nv) {{
        width = Shape(mask) {{start = 1, end = 2}}
        longest = Cast(width) {{to = 6}}
        y, nk, nv = com.microsoft.GroupQueryAttention({"q, _, _" if packed else "q, k, v"}, pk, pv, lengths, longest,
            {"cos, sin" if rotary else "_, _"}, _, _, _, ks, vs)
            {{num_heads = {_H}, kv_num_heads = {_M}, do_rotary = {int(rotary)}, kv_cache_bit_width = {bits},
              k_quant_type = "{way}", v_quant_type = "{way}" {attributes}}} }}"""


def _feeds(bits: int, way: str, S: int, P: int, lengths: list[int], *, kind: str = "float32", **ways: bool) -> dict[str, Any]:
    random, B = np.random.default_rng(S + P), len(lengths)

    def numbers(*shape: int) -> Array:
        return random.standard_normal(shape).astype(kind)

    feeds: dict[str, Any] = {"q": numbers(B, S, 48 if ways.get("packed") else 24)}
    if not ways.get("packed"):
        feeds |= {"k": numbers(B, S, 12), "v": numbers(B, S, 12)}
    low, high = (-128, 128) if bits == 8 else (0, 256)
    for name in ("pk", "pv"):
        feeds[name] = random.integers(low, high, (B, _M, P, _D * bits // 8)).astype(_TYPES[bits])
    feeds |= {"lengths": np.array(lengths, np.int32) - 1, "mask": np.ones((B, max(lengths)), np.int64)}
    for name in ("ks", "vs"):
        shape = (1,) if way == "PER_TENSOR" else (1, _M, 1, _D)
        feeds[name] = (random.uniform(0.5, 1.5, shape) / (40 if bits == 8 else 3)).astype(np.float32)
    return feeds | ({"cos": numbers(40, 2), "sin": numbers(40, 2)} if ways.get("rotary") else {})


def _check(found: list[Array], wanted: list[Array], lengths: list[int], tolerance: float = 2e-5) -> None:
    for batch, length in enumerate(lengths):
        np.testing.assert_allclose(found[0][batch].astype(np.float32), wanted[0][batch].astype(np.float32), atol=tolerance)
        for one, other in zip(found[1:], wanted[1:], strict=True):
            np.testing.assert_array_equal(one[batch, :, :length], other[batch, :, :length])


_CASES = {
    "one step": (1, 7, [8, 8]),
    "sequences of lengths of their own": (1, 20, [5, 21]),
    "several steps in a longer buffer": (3, 24, [6, 9]),
    "no past": (14, 0, [14]),
    "many queries": (12, 30, [30, 42]),
    "several pieces": (1, 700, [701]),
}


@pytest.mark.parametrize("case", _CASES)
@pytest.mark.parametrize("way", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize("bits", _TYPES)
@pytest.mark.parametrize("isa", LEVELS)
def test_results_are_those_of_the_reference(isa: str, bits: int, way: str, case: str) -> None:
    """The caches bit by bit."""
    S, P, lengths = _CASES[case]
    body, feeds = _body(bits, way), _feeds(bits, way, S, P, lengths)
    _check(run_cpu(body, feeds, isa=isa), reference(body, feeds), lengths)


@pytest.mark.parametrize("bits", _TYPES)
@pytest.mark.parametrize("ways", [{"rotary": True}, {"packed": True}, {"rotary": True, "packed": True}])
@pytest.mark.parametrize(("S", "P"), [(1, 5), (12, 9)])
def test_rotated_and_packed_rows(bits: int, ways: dict[str, bool], S: int, P: int) -> None:
    """Rows are rotated before they are rounded."""
    body, feeds = _body(bits, "PER_CHANNEL", **ways), _feeds(bits, "PER_CHANNEL", S, P, [S + P], **ways)
    found, wanted = run_cpu(body, feeds), reference(body, feeds)
    np.testing.assert_allclose(found[0], wanted[0], atol=2e-5)
    for one, other in zip(found[1:], wanted[1:], strict=True):
        assert np.mean(one != other) < 0.01  # a rotation may differ in its last bit, where two integers are as near


@pytest.mark.parametrize("attributes", [", softcap = 2.0", ", local_window_size = 3", ", smooth_softmax = 1", ", scale = 0.2"])
def test_what_is_done_to_scores(attributes: str) -> None:
    """It does not depend on how keys are stored."""
    body, feeds = _body(8, "PER_CHANNEL", attributes=attributes), _feeds(8, "PER_CHANNEL", 2, 9, [11, 6])
    _check(run_cpu(body, feeds), reference(body, feeds), [11, 6])


def test_rows_of_float16() -> None:
    """Scales are float32 all the same."""
    body, feeds = _body(8, "PER_TENSOR", kind="float16"), _feeds(8, "PER_TENSOR", 1, 9, [10], kind="float16")
    _check(run_cpu(body, feeds), reference(body, feeds), [10], 2e-3)


def test_a_step_widens_no_cache() -> None:
    """Few queries read the integers where they lie."""
    body = _body(4, "PER_TENSOR")
    assert "wide_codes_q4" in "".join(symbols_of(body))
    few = symbols_of(body.replace("[b, s, ", "[1, 1, "))
    assert "wide_codes_q4" not in "".join(few)
    assert "attention_rows_q4" in "".join(few)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("kv_cache_bit_width = 8", "kv_cache_bit_width = 4"),
        ('k_quant_type = "PER_TENSOR"', 'k_quant_type = "NONE"'),
        ("ks: float[1]", "ks: float[3]"),
        ("_, _, _, ks", "_, _, _, _"),
    ],
)
def test_caches_that_are_not_known_to_fit_are_left_to_the_reference(before: str, after: str) -> None:
    """Bits, ways and scales."""
    body = _body(8, "PER_TENSOR")
    assert before in body
    assert any("cache" in reason for reason in declined(body.replace(before, after)))


def test_a_constant_scale_for_all_is_spread_once() -> None:
    """The results stay what they are."""
    body = _body(8, "PER_TENSOR").replace(", ks: float[1], vs: float[1]", "")
    body = body.replace("width = Shape", "ks: float[1] = [0.02]\nvs: float[1] = [0.03]\nwidth = Shape")
    feeds = {name: array for name, array in _feeds(8, "PER_TENSOR", 1, 7, [8]).items() if name not in ("ks", "vs")}
    _check(run_cpu(body, feeds), reference(body, feeds), [8])
