"""PagedAttention: sequences side by side, whose keys and values lie in blocks of a shared cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_close

from sardonyx import InferenceSession, OrtValue, SessionOptions
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

N, M = 4, 2
_ROTARY = ", cos, sin"


def _model(
    more: str = "", attributes: str = "", kind: str = "float", size: int = 6, cache: str = "", packed: bool = False
) -> bytes:
    cache = cache or kind
    inputs = "q, _, _" if packed else "q, k, v"
    width = (N + 2 * M if packed else N) * size
    text = f"""ir_version 8 opset 17, com.microsoft 1
        graph main(q: {kind}[t, {width}], k: {kind}[t, {M * size}], v: {kind}[t, {M * size}],
        keys: {cache}[blocks, l, {M}, {size}], values: {cache}[blocks, l, {M}, {size}], firsts: int32[n], pasts: int32[b],
        table: int32[b, w], cos: {kind}[p, 2], sin: {kind}[p, 2], slots: int32[t], sinks: {kind}[{N}])
        -> (y, new_keys, new_values) {{
        y, new_keys, new_values = com.microsoft.PagedAttention({inputs}, keys, values, firsts, pasts, table{more}) {{
            num_heads = {N}, kv_num_heads = {M}{attributes}}} }}"""
    return to_bytes(parse_model(text))


def _feed(past: list[int], new: list[int], length: int, size: int = 6) -> dict[str, Any]:
    random, tokens = np.random.default_rng(length), sum(new)
    pages = [-(-(before + count) // length) for before, count in zip(past, new, strict=True)]
    blocks = sum(pages) + 2
    shuffled = random.permutation(blocks)
    table = np.full((len(past), max([*pages, 1])), -1, np.int32)
    for row, count in enumerate(pages):
        table[row, :count], shuffled = shuffled[:count], shuffled[count:]

    def numbers(*shape: int) -> Array:
        return random.standard_normal(shape).astype(np.float32)

    return {
        "q": numbers(tokens, N * size),
        "k": numbers(tokens, M * size),
        "v": numbers(tokens, M * size),
        "keys": numbers(blocks, length, M, size),
        "values": numbers(blocks, length, M, size),
        "firsts": np.cumsum([0, *new]).astype(np.int32),
        "pasts": np.array(past, np.int32),
        "table": table,
        "cos": numbers(40, 2),
        "sin": numbers(40, 2),
        "slots": np.where(random.random(tokens) < 0.3, -1, random.permutation(blocks * length)[:tokens]).astype(np.int32),
        "sinks": numbers(N),
    }


def _session(model: bytes, provider: str = "CPU", threads: int = 1) -> InferenceSession:
    options = SessionOptions()
    options.intra_op_num_threads = threads
    return InferenceSession(model, options, providers=[f"{provider}ExecutionProvider"])


def _check(model: bytes, feed: dict[str, Any], tolerance: float = 1e-5, threads: int = 1) -> None:
    session = _session(model, threads=threads)
    assert {placement.provider for placement in session.explain()} == {"CPUExecutionProvider"}
    for found, wanted in zip(session.run(None, feed), _session(model, "Reference").run(None, feed), strict=True):
        assert found.dtype == wanted.dtype
        assert_close(found.astype(np.float32), wanted.astype(np.float64), tolerance)


_CASES = {
    "one token of each": ([3, 0, 6], [1, 1, 1], 4),
    "tokens and prompts": ([3, 0, 6], [1, 5, 2], 4),
    "a sequence without new tokens": ([3, 7, 6], [2, 0, 3], 16),
    "blocks of one place": ([2, 5], [3, 1], 1),
    "blocks longer than a piece of keys": ([700, 20], [2, 30], 600),
}


@pytest.mark.parametrize("case", _CASES)
@pytest.mark.parametrize("rotation", ["", ", do_rotary = 1", ", do_rotary = 1, rotary_interleaved = 1, rotary_offset = 1"])
@pytest.mark.parametrize("isa", LEVELS)
def test_results_are_those_of_the_reference(isa: str, rotation: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caches too, in whatever blocks a sequence has."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    if rotation and "longer" in case:
        pytest.skip("there are no angles for so many positions")
    _check(_model(_ROTARY if rotation else "", rotation), _feed(*_CASES[case]))


@pytest.mark.parametrize(
    ("more", "attributes"),
    [
        ("", ", local_window_size = 3"),
        ("", ", is_causal = 0"),
        ("", ", is_causal = 0, local_window_size = 2"),
        ("", ", softcap = 2.0, scale = 0.3"),
        (", _, _, _, sinks", ""),
        (", _, _, _, sinks", ", local_window_size = 2"),
    ],
)
def test_windows_limits_scales_and_sinks(more: str, attributes: str) -> None:
    """As the reference has them."""
    _check(_model(more, attributes), _feed(*_CASES["tokens and prompts"]))


@pytest.mark.parametrize("size", [1, 16, 33])
def test_heads_of_any_size(size: int) -> None:
    """Of one element, of whole vectors, and of some more."""
    _check(_model(size=size), _feed(*_CASES["tokens and prompts"], size))


def test_queries_keys_and_values_may_lie_in_one_tensor() -> None:
    """Beside one another in each row."""
    feed = _feed(*_CASES["tokens and prompts"])
    packed = {name: array for name, array in feed.items() if name not in "kv"}
    packed["q"] = np.concatenate([feed[name] for name in "qkv"], axis=1)
    _check(_model(_ROTARY, ", do_rotary = 1", packed=True), packed | {"k": feed["k"], "v": feed["v"]})


@pytest.mark.parametrize(("kind", "cache"), [("float16", "float16"), ("bfloat16", "bfloat16"), ("float", "float16")])
def test_floats_of_16_bits(kind: str, cache: str) -> None:
    """Everything, or the caches alone; they are compared with the reference's, which rounds once more."""
    import ml_dtypes

    types = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
    feed = _feed(*_CASES["tokens and prompts"])
    for name, array in feed.items():
        if array.dtype == np.float32:
            feed[name] = array.astype(types[cache if name in ("keys", "values") else kind])
    _check(_model(kind=kind, cache=cache), feed, 2e-2 if "bfloat16" in (kind, cache) else 2e-3)


def test_slots_say_where_tokens_go() -> None:
    """A slot below 0 keeps a token out of the cache; what is read is what the table says."""
    _check(_model(", _, _, slots"), _feed(*_CASES["tokens and prompts"]))


def test_results_are_the_same_on_two_threads() -> None:
    """Bit by bit, since a head of a token is one task."""
    model, feed = _model(_ROTARY, ", do_rotary = 1"), _feed(*_CASES["tokens and prompts"])
    for one, two in zip(_session(model).run(None, feed), _session(model, threads=2).run(None, feed), strict=True):
        np.testing.assert_array_equal(one, two)


def test_nothing_is_computed_without_tokens() -> None:
    """The caches stay as they are."""
    feed = _feed([4, 2], [0, 0], 4)
    y, keys, values = _session(_model()).run(None, feed)
    assert y.shape == (0, N * 6)
    np.testing.assert_array_equal(keys, feed["keys"])
    np.testing.assert_array_equal(values, feed["values"])


def _changed(feed: dict[str, Any], name: str, change: Any) -> dict[str, Any]:
    return feed | {name: change(feed[name]).astype(feed[name].dtype)}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("table", lambda table: np.where(table < 0, table, table + 100)),
        ("table", lambda table: np.full_like(table, -1)),
        ("pasts", lambda pasts: pasts + 100),
        ("pasts", lambda pasts: pasts - 9),
        ("firsts", lambda firsts: firsts + 1),
        ("firsts", lambda firsts: firsts[::-1].copy()),
        ("firsts", lambda firsts: firsts[:-1]),
        ("slots", lambda slots: slots + 10_000),
        ("cos", lambda cos: cos[:3]),
        ("table", lambda table: table[:1]),
    ],
)
def test_what_does_not_fit_is_an_error(name: str, change: Any) -> None:
    """Blocks outside the cache, sequences longer than their blocks, lists that contradict each other, positions without angles."""
    feed = _changed(_feed(*_CASES["tokens and prompts"]), name, change)
    if name == "cos":
        feed["sin"] = feed["cos"]
    with pytest.raises(InvalidArgument):
        _session(_model(", cos, sin, slots", ", do_rotary = 1")).run(None, feed)


@pytest.mark.parametrize(
    ("more", "attributes", "reason"),
    [
        (", _, _, _, _, norm, norm", "", "scales of caches or norms of rows"),
        ("", ", do_rotary = 1", "no table"),
        ("", ", softcap = -1.0", "softcap"),
    ],
)
def test_what_is_left_to_the_reference(more: str, attributes: str, reason: str) -> None:
    """It says why."""
    text = more.replace("norm", "sinks")
    session = _session(_model(text, attributes))
    assert any(reason in placement.declined.get("CPUExecutionProvider", "") for placement in session.explain())


def test_a_cache_that_is_bound_to_both_sides_is_written_in_place() -> None:
    """Nothing is copied; the result is that of caches apart."""
    model, feed = _model(), _feed(*_CASES["tokens and prompts"])
    session = _session(model)
    wanted = session.run(None, feed)
    binding = session.io_binding()
    caches = {name: OrtValue.ortvalue_from_numpy(feed[name].copy()) for name in ("keys", "values")}
    used = {item.name for item in session.get_inputs()}
    for name, array in feed.items():
        if name in used:
            binding.bind_ortvalue_input(name, caches.get(name, OrtValue.ortvalue_from_numpy(array)))
    binding.bind_output("y")
    for name, value in caches.items():
        binding.bind_ortvalue_output(f"new_{name}", value)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], wanted[0])
    for value, array in zip(caches.values(), wanted[1:], strict=True):
        np.testing.assert_array_equal(value.numpy(), array)
