"""Keys that end at another place in each batch, and windows, of the standard's Attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cpu_run import declined, reference, run_cpu

from sardonyx.errors import InvalidArgument

PLAIN = "q: float[b, 4, s, 12], k: float[b, 2, t, 12], v: float[b, 2, t, 10]"
PACKED = "q: float[b, s, 48], k: float[b, t, 24], v: float[b, t, 20]"
PAST = ", pk: float[b, 2, p, 12], pv: float[b, 2, p, 10]"


def _feeds(B: int, S: int, T: int, ends: list[int] | None = None, P: int | None = None) -> dict[str, Any]:
    random = np.random.default_rng(S + T)
    shapes: dict[str, tuple[int, ...]] = {"q": (B, 4, S, 12), "k": (B, 2, T, 12), "v": (B, 2, T, 10)}
    if P is not None:
        shapes |= {"pk": (B, 2, P, 12), "pv": (B, 2, P, 10)}
    feeds: dict[str, Any] = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return feeds if ends is None else feeds | {"ends": np.array(ends)}


def _close(body: str, feeds: dict[str, Any], opset: int, **options: Any) -> None:
    for found, expected in zip(run_cpu(body, feeds, opset=opset, **options), reference(body, feeds, opset=opset), strict=True):
        np.testing.assert_allclose(found, expected, atol=3e-6)


@pytest.mark.parametrize("isa", ["portable", "avx2", None])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize(
    ("S", "T", "ends"), [(1, 1, [1, 0]), (1, 40, [40, 7]), (3, 17, [1, 17]), (9, 33, [20, 4]), (37, 300, [299, 40])]
)
def test_keys_end_where_their_batch_says(causal: int, S: int, T: int, ends: list[int], isa: str | None) -> None:
    """The last query of a causal attention stands at the last key; a query that sees no key gives zeros."""
    body = f"graph({PLAIN}, ends: int64[b]) -> (y) {{ y = Attention(q, k, v, _, _, _, ends) {{is_causal = {causal}}} }}"
    _close(body, _feeds(2, S, T, ends), 24, isa=isa)


def test_packed_heads_end_too() -> None:
    """As they do with heads as a dimension."""
    body = (
        f"graph({PACKED}, ends: int64[b]) -> (y) {{ y = Attention(q, k, v, _, _, _, ends) {{q_num_heads = 4, kv_num_heads = 2}} }}"
    )
    feeds = _feeds(3, 5, 20, [3, 20, 11])
    packed = {name: feeds[name].transpose(0, 2, 1, 3).reshape(3, feeds[name].shape[2], -1) for name in ("q", "k", "v")}
    _close(body, feeds | packed, 24)


def test_there_is_a_number_for_each_batch() -> None:
    """Which sizes show, where the model calls them otherwise."""
    body = f"graph({PLAIN}, ends: int64[n]) -> (y) {{ y = Attention(q, k, v, _, _, _, ends) }}"
    _close(body, _feeds(2, 3, 20, [4, 20]), 24)
    with pytest.raises(InvalidArgument, match="must be equal"):
        run_cpu(body, _feeds(2, 3, 20, [4, 20, 7]), opset=24)


@pytest.mark.parametrize("end", [-1, 21, 1 << 40])
def test_a_number_that_is_no_number_of_keys_is_an_error(end: int) -> None:
    """Which says where it stands."""
    body = f"graph({PLAIN}, ends: int64[b]) -> (y) {{ y = Attention(q, k, v, _, _, _, ends) }}"
    with pytest.raises(InvalidArgument, match="element 1 of nonpad_kv_seqlen"):
        run_cpu(body, _feeds(2, 3, 20, [4, end]), opset=24)


@pytest.mark.parametrize("window", [0, 1, 5, 100])
@pytest.mark.parametrize(("S", "T", "P"), [(1, 1, 0), (1, 1, 60), (4, 4, 13), (30, 30, 0), (20, 20, 300)])
def test_a_causal_window_hides_earlier_keys(window: int, S: int, T: int, P: int) -> None:
    """Those of former runs too, which are copied into the results all the same."""
    call = f"y, nk, nv = Attention(q, k, v, _, pk, pv) {{is_causal = 1, left_window_size = {window}}}"
    _close(f"graph({PLAIN}{PAST}) -> (y, nk, nv) {{ {call} }}", _feeds(2, S, T, P=P), 25)


@pytest.mark.parametrize("window", [0, 6])
def test_a_window_counts_from_the_end_of_each_batch(window: int) -> None:
    """Where batches end at different keys."""
    for S in (1, 4, 12):
        call = f"y = Attention(q, k, v, _, _, _, ends) {{is_causal = 1, left_window_size = {window}}}"
        _close(f"graph({PLAIN}, ends: int64[b]) -> (y) {{ {call} }}", _feeds(2, S, 40, [40, 15]), 25)


@pytest.mark.parametrize("kind", ["float", "bool"])
@pytest.mark.parametrize("dims", ["t", "s, t", "b, 1, s, t", "4, s, t", "b, 4, 1, t", "b, 1, s, 1"])
def test_a_mask_hides_keys_besides(dims: str, kind: str) -> None:
    """Those that the end of a batch and a window leave."""
    body = f"""graph({PLAIN}, m: {kind}[{dims}], ends: int64[b]) -> (y) {{
        y = Attention(q, k, v, m, _, _, ends) {{is_causal = 1, left_window_size = 9}} }}"""
    for S, T in ((1, 40), (4, 9), (70, 90)):
        sizes = {"b": 2, "s": S, "t": T}
        shape = [sizes.get(dim) or int(dim) for dim in dims.split(", ")]
        drawn = np.random.default_rng(T).standard_normal(shape).astype(np.float32)
        mask = {"m": drawn > -1 if kind == "bool" else drawn}
        _close(body, _feeds(2, S, T, [T, T // 2]) | mask, 25)


def test_a_mask_stands_beside_a_window_behind_former_keys() -> None:
    """Its columns are all keys, those of former runs first."""
    call = "y = Attention(q, k, v, m, pk, pv) {is_causal = 1, left_window_size = 6}"
    for S, P in ((1, 30), (3, 0), (40, 21)):
        mask = np.random.default_rng(P).standard_normal((2, 1, S, P + S)).astype(np.float32)
        _close(f"graph({PLAIN}{PAST}, m: float[b, 1, s, total]) -> (y) {{ {call} }}", _feeds(2, S, S, P=P) | {"m": mask}, 25)


@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_the_same_bits_in_a_batch_as_alone(threads: int) -> None:
    """For any number of threads."""
    body = f"graph({PLAIN}, ends: int64[b]) -> (y) {{ y = Attention(q, k, v, _, _, _, ends) {{is_causal = 1}} }}"
    for S in (1, 20):
        feeds = _feeds(3, S, 70, [70, 33, 64])
        (whole,) = run_cpu(body, feeds, opset=24, threads=threads)
        for row in range(3):
            (alone,) = run_cpu(body, {name: array[row : row + 1] for name, array in feeds.items()}, opset=24)
            np.testing.assert_array_equal(alone[0], whole[row])


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("Attention(q, k, v) {left_window_size = 3}", "a window of queries that see later keys"),
        ("Attention(q, k, v) {right_window_size = 3}", "a window of queries that see later keys"),
    ],
)
def test_what_is_left_alone_is_said(call: str, reason: str) -> None:
    """In the reason of the claim."""
    (found,) = declined(f"graph({PLAIN}) -> (y) {{ y = {call} }}", opset=25)
    assert reason in found
