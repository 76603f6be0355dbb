"""Attention of float16 and bfloat16: caches stay as they are, the rest is float32."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.cpu_run import reference, run_cpu, steps_of

from sardonyx.dtypes import Array

_DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
_TOLERANCES = {"float16": 2e-3, "bfloat16": 2e-2}


def _group_query(kind: str, *, rotary: bool = False, packed: bool = False) -> str:
    q = 4 * 6 + 2 * 2 * 6 if packed else 4 * 6
    given = "q, _, _" if packed else "q, k, v"
    angles = ", cos, sin" if rotary else ""
    own = "" if packed else f", k: {kind}[b, s, 12], v: {kind}[b, s, 12]"
    tables = f", cos: {kind}[40, 3], sin: {kind}[40, 3]" if rotary else ""
    return f"""graph(q: {kind}[b, s, {q}]{own}, pk: {kind}[b, 2, p, 6], pv: {kind}[b, 2, p, 6], lengths: int32[b], mask: int64[b, t]
        {tables}) -> (y: {kind}[b, s, 24], nk: {kind}[b, 2, n, 6], nv: {kind}[b, 2, n, 6]) {{
        width = Shape(mask) {{start = 1, end = 2}}
        longest = Cast(width) {{to = 6}}
        y, nk, nv = com.microsoft.GroupQueryAttention({given}, pk, pv, lengths, longest{angles})
            {{num_heads = 4, kv_num_heads = 2, do_rotary = {int(rotary)}}} }}"""


def _feeds(kind: str, S: int, P: int, *, rotary: bool = False, packed: bool = False) -> dict[str, Any]:
    random, B = np.random.default_rng(S + P), 2

    def numbers(*shape: int) -> Array:
        return random.standard_normal(shape).astype(_DTYPES[kind])

    feeds: dict[str, Any] = {"q": numbers(B, S, 48 if packed else 24)}
    if not packed:
        feeds |= {"k": numbers(B, S, 12), "v": numbers(B, S, 12)}
    feeds |= {"pk": numbers(B, 2, P, 6), "pv": numbers(B, 2, P, 6)}
    feeds |= {"lengths": np.full(B, S + P - 1, np.int32), "mask": np.ones((B, S + P), np.int64)}
    return feeds | ({"cos": numbers(40, 3), "sin": numbers(40, 3)} if rotary else {})


@pytest.mark.parametrize("kind", _DTYPES)
@pytest.mark.parametrize(("S", "P"), [(1, 30), (1, 0), (4, 20), (20, 0), (12, 9)])
@pytest.mark.parametrize(("rotary", "packed"), [(False, False), (True, False), (True, True)])
def test_caches_of_16_bits(kind: str, S: int, P: int, rotary: bool, packed: bool) -> None:
    """Few queries and many; former keys and values keep their bits."""
    body, feeds = _group_query(kind, rotary=rotary, packed=packed), _feeds(kind, S, P, rotary=rotary, packed=packed)
    found, wanted = run_cpu(body, feeds), reference(body, feeds)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.astype(np.float32), other.astype(np.float32), atol=_TOLERANCES[kind])
    np.testing.assert_array_equal(found[1][:, :, :P], feeds["pk"])
    np.testing.assert_array_equal(found[2][:, :, :P], feeds["pv"])


def test_a_step_of_one_token_casts_no_cache() -> None:
    """Only queries, new rows and the result are cast, and here the length."""
    steps = steps_of(_group_query("float16").replace("[b, s,", "[b, 1,"))
    assert steps.count("Cast") == 5
