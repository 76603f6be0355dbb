"""GroupQueryAttention with a cache: rotations, windows, lengths of their own, buffers that are longer than what is used of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.cpu_run import LEVELS, assert_close

from sardonyx import InferenceSession, OrtValue, SessionOptions
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

_HEADS, _GROUPS, _SIZE, _POSITIONS = 4, 2, 6, 32


def _model(rotary: bool, **attributes: Any) -> bytes:
    """A model of one node, all sizes free."""
    names = ["q", "k", "v", "past_k", "past_v", "lengths", "longest", *(["cos", "sin"] if rotary else [])]
    about = {"num_heads": _HEADS, "kv_num_heads": _GROUPS, "do_rotary": int(rotary), **attributes}
    node = helper.make_node("GroupQueryAttention", names, ["y", "pk", "pv"], domain="com.microsoft", **about)
    cache = ["b", _GROUPS, "p", _SIZE]
    shapes = {
        "q": ["b", "s", _HEADS * _SIZE],
        "k": ["b", "s", _GROUPS * _SIZE],
        "v": ["b", "s", _GROUPS * _SIZE],
        "past_k": cache,
        "past_v": cache,
        "mask": ["b", "t"],
        "lengths": ["b"],
        "cos": [_POSITIONS, 2],
        "sin": [_POSITIONS, 2],
    }
    kinds = {"lengths": TensorProto.INT32, "mask": TensorProto.INT64}
    used = [name for name in shapes if name in (*names, "mask")]
    inputs = [helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), shapes[name]) for name in used]
    count = [
        helper.make_node("Shape", ["mask"], ["mask_shape"], start=1, end=2),
        helper.make_node("Cast", ["mask_shape"], ["longest"], to=TensorProto.INT32),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "pk", "pv")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(helper.make_graph([*count, node], "g", inputs, outputs), opset_imports=opsets, ir_version=8)
    return bytes(made.SerializeToString())


def _session(model: bytes, provider: str = "CPU", threads: int = 1) -> InferenceSession:
    options = SessionOptions()
    options.intra_op_num_threads = threads
    return InferenceSession(model, options, providers=[f"{provider}ExecutionProvider"])


def _feed(S: int, P: int, lengths: list[int], rotary: bool, longest: int | None = None) -> dict[str, Array]:
    generator, B = np.random.default_rng(S + P), len(lengths)

    def numbers(*shape: int) -> Array:
        return generator.standard_normal(shape).astype(np.float32)

    feed: dict[str, Array] = {
        "q": numbers(B, S, _HEADS * _SIZE),
        "k": numbers(B, S, _GROUPS * _SIZE),
        "v": numbers(B, S, _GROUPS * _SIZE),
        "past_k": numbers(B, _GROUPS, P, _SIZE),
        "past_v": numbers(B, _GROUPS, P, _SIZE),
        "mask": np.ones((B, max(lengths) if longest is None else longest), np.int64),
        "lengths": np.array(lengths, np.int32) - 1,
    }
    if rotary:
        feed |= {"cos": numbers(_POSITIONS, 2), "sin": numbers(_POSITIONS, 2)}
    return feed


def _check(session: InferenceSession, model: bytes, feed: dict[str, Array], steps: list[int]) -> None:
    """Compare with the reference: results of rows that are steps, and the cache as far as it is used."""
    found, wanted = session.run(None, feed), _session(model, "Reference").run(None, feed)
    assert [array.shape for array in found] == [array.shape for array in wanted]
    for batch, length in enumerate(feed["lengths"].reshape(-1) + 1):
        assert_close(found[0][batch, : steps[batch]], wanted[0][batch, : steps[batch]].astype(np.float64), 1e-5)
        for ours, theirs in zip(found[1:], wanted[1:], strict=True):
            assert_close(ours[batch, :, :length], theirs[batch, :, :length].astype(np.float64), 1e-6)


_CASES = {
    "one step behind a cache that grows": (1, 7, [8]),
    "several steps": (3, 7, [10, 10]),
    "sequences of lengths of their own": (1, 20, [5, 9, 21]),
    "a buffer longer than what is used": (2, 24, [6, 9]),
    "many queries": (70, 3, [73]),
    "no past": (5, 0, [5, 5]),
}


@pytest.mark.parametrize("case", _CASES)
@pytest.mark.parametrize("rotation", ["", "halves", "neighbours"])
@pytest.mark.parametrize("isa", LEVELS)
def test_results_are_those_of_the_reference(isa: str, rotation: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what is behind the pairs that are rotated."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    if case == "many queries" and rotation:
        pytest.skip("there are no angles for so many positions")
    S, P, lengths = _CASES[case]
    model = _model(bool(rotation), rotary_interleaved=int(rotation == "neighbours"))
    session = _session(model)
    assert {placement.provider for placement in session.explain()} == {"CPUExecutionProvider"}
    _check(session, model, _feed(S, P, lengths, bool(rotation)), [S] * len(lengths))


@pytest.mark.parametrize("case", ["one step behind a cache that grows", "several steps", "many queries", "no past"])
@pytest.mark.parametrize("rotary", [False, True])
def test_queries_keys_and_values_may_lie_in_one_tensor(case: str, rotary: bool) -> None:
    """Beside one another in each row, as in tensors of their own."""
    if case == "many queries" and rotary:
        pytest.skip("there are no angles for so many positions")
    S, P, lengths = _CASES[case]
    model = _model(rotary)
    feed = _feed(S, P, lengths, rotary)
    packed = {name: array for name, array in feed.items() if name not in "kv"}
    packed["q"] = np.concatenate([feed[name] for name in "qkv"], axis=2)
    session = _session(_packed(model))
    assert {placement.provider for placement in session.explain()} == {"CPUExecutionProvider"}
    for found, wanted in zip(session.run(None, packed), _session(model).run(None, feed), strict=True):
        np.testing.assert_array_equal(found, wanted)


def _packed(model: bytes) -> bytes:
    """The same model with one tensor for queries, keys and values."""
    made = onnx.load_from_string(model)
    node = next(node for node in made.graph.node if node.op_type == "GroupQueryAttention")
    node.input[1] = node.input[2] = ""
    kept = [item for item in made.graph.input if item.name not in ("k", "v")]
    kept[0].type.tensor_type.shape.dim[2].dim_value = (_HEADS + 2 * _GROUPS) * _SIZE
    del made.graph.input[:]
    made.graph.input.extend(kept)
    return bytes(made.SerializeToString())


@pytest.mark.parametrize("attributes", [{"local_window_size": 3}, {"softcap": 2.0}, {"scale": 0.3}])
@pytest.mark.parametrize("case", ["several steps", "sequences of lengths of their own"])
def test_windows_limits_and_scales(case: str, attributes: dict[str, Any]) -> None:
    """As the reference has them."""
    S, P, lengths = _CASES[case]
    model = _model(False, **attributes)
    _check(_session(model), model, _feed(S, P, lengths, False), [S] * len(lengths))


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("case", _CASES)
def test_a_smooth_softmax_has_a_score_of_zero_besides(case: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few queries and with many, of one piece of keys and of several."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    S, P, lengths = _CASES[case]
    model = _model(False, smooth_softmax=1)
    session = _session(model)
    assert {placement.provider for placement in session.explain()} == {"CPUExecutionProvider"}
    _check(session, model, _feed(S, P, lengths, False), [S] * len(lengths))


def _with_sinks(numbers: list[float] | None) -> bytes:
    """The model with a sink for each head, numbers or an input."""
    made = onnx.load_from_string(_model(False))
    node = made.graph.node[-1]
    node.input.extend([""] * (11 - len(node.input)) + ["sinks"])
    if numbers is None:
        made.graph.input.append(helper.make_tensor_value_info("sinks", TensorProto.FLOAT, [_HEADS]))
    else:
        made.graph.initializer.append(helper.make_tensor("sinks", TensorProto.FLOAT, [_HEADS], numbers))
    return bytes(made.SerializeToString())


_SINKS = {"small": [-3.0, 0.5, 2.0, 1.0], "extreme": [200.0, -200.0, float("-inf"), 0.0]}


@pytest.mark.parametrize("sinks", _SINKS)
@pytest.mark.parametrize(("S", "P", "length"), [(1, 5, 6), (1, 600, 601), (4, 300, 304), (40, 0, 40), (12, 200, 212)])
def test_sinks_take_a_part_of_the_weights(S: int, P: int, length: int, sinks: str) -> None:
    """As the reference has them; one far above all scores leaves nothing, one far below all."""
    model, feed = _with_sinks(_SINKS[sinks]), _feed(S, P, [length, length], False)
    session = _session(model)
    assert {placement.provider for placement in session.explain()} == {"CPUExecutionProvider"}
    _check(session, model, feed, [S, S])
    fed = _session(_with_sinks(None)).run(None, feed | {"sinks": np.array(_SINKS[sinks], np.float32)})
    for found, wanted in zip(fed, session.run(None, feed), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_first_run_may_hold_shorter_sequences() -> None:
    """They are padded on the right; their positions begin at 0."""
    model = _model(True)
    _check(_session(model), model, _feed(6, 0, [6, 4], True), [6, 4])


def test_the_cache_is_zero_behind_the_end_of_a_sequence() -> None:
    """Whatever the buffer of former runs holds there, be it NaN."""
    model, feed = _model(False), _feed(1, 9, [4], False)
    feed["past_k"][:, :, 4:], feed["past_v"][:, :, 4:] = np.nan, np.nan
    y, *caches = _session(model).run(None, feed)
    assert np.isfinite(y).all()
    assert not any(cache[:, :, 4:].any() for cache in caches)


def test_a_batch_has_the_bits_that_it_has_alone_and_on_two_threads() -> None:
    """Heads and batches do not meet."""
    model, feed = _model(True), _feed(2, 12, [7, 14], True)
    whole = _session(model).run(None, feed)[0]
    assert _session(model, threads=2).run(None, feed)[0].tobytes() == whole.tobytes()
    shared = {name: array for name, array in feed.items() if name in ("cos", "sin")}
    alone = {name: array[1:] for name, array in feed.items() if name not in shared} | shared
    assert _session(model).run(None, alone)[0].tobytes() == whole[1:].tobytes()


@pytest.mark.parametrize(
    ("S", "P", "lengths", "longest"),
    [(1, 3, [9], 9), (1, 9, [0], 9), (2, 9, [1], 9), (1, 9, [8], 5), (5, 9, [4], 4), (1, 40, [40], 40), (1, 9, [1 << 31], 9)],
)
def test_lengths_that_do_not_fit_are_errors(S: int, P: int, lengths: list[int], longest: int) -> None:
    """They decide addresses: more than the past holds, none, fewer than the new rows, beyond the longest or the angles."""
    model, feed = _model(True), _feed(S, P, [1], True, longest)
    feed["lengths"] = (np.array(lengths, np.int64) - 1).astype(np.int32)
    with pytest.raises(InvalidArgument, match="GroupQueryAttention.*element 0 of seqlens_k does not fit"):
        _session(model).run(None, feed)


@pytest.mark.parametrize("attributes", [{"causal": 0}, {"causal": 0, "local_window_size": 3}, {"qk_output": 1}])
@pytest.mark.parametrize("case", _CASES)
def test_queries_that_see_later_keys_and_scores_that_nothing_reads(case: str, attributes: dict[str, Any]) -> None:
    """A window is for causal queries only."""
    S, P, lengths = _CASES[case]
    model = _model(False, **attributes)
    session = _session(model)
    assert {placement.provider for placement in session.explain()} == {"CPUExecutionProvider"}
    _check(session, model, _feed(S, P, lengths, False), [S] * len(lengths))


def test_other_forms_are_left_to_the_reference() -> None:
    """The reason says which."""
    session = _session(_model(False, sliding_window_cache=1))
    placement = next(placement for placement in session.explain() if "GroupQuery" in placement.op_type)
    assert "is set" in placement.declined["CPUExecutionProvider"]


@pytest.mark.parametrize(
    ("wrong", "shape"),
    [
        ("k", (2, 2, 4)),
        ("k", ("b", 2, 4)),
        ("v", (1, 3, 4)),
        ("a", (1, 2, 2, 4)),
        ("b", (2, 1, 2, 4)),
        ("b", ("b", 1, "p", 4)),
        ("t", (2,)),
        ("n", (2,)),
    ],
)
def test_sizes_that_kernels_take_for_one_must_be_one(wrong: str, shape: tuple[int | str, ...]) -> None:
    """Where they differ, or may, the reference provider says so; nothing beyond a buffer is read or written."""
    shapes: dict[str, tuple[int | str, ...]] = {
        "q": (1, 2, 8),
        "k": (1, 2, 4),
        "v": (1, 2, 4),
        "a": (1, 1, 2, 4),
        "b": (1, 1, 2, 4),
    }
    shapes |= {"t": (1,), "n": ()} | {wrong: shape}
    inputs = [helper.make_tensor_value_info(name, 6 if name in "tn" else 1, dims) for name, dims in shapes.items()]
    node = helper.make_node(
        "GroupQueryAttention", list(shapes), ["y", "c", "d"], domain="com.microsoft", num_heads=2, kv_num_heads=1
    )
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("y", "c", "d")]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=opsets, ir_version=8)
    session = InferenceSession(made.SerializeToString())
    assert [placement.provider for placement in session.explain()][-1] == "ReferenceExecutionProvider"
    sizes = {name: [3 if isinstance(dim, str) else dim for dim in dims] for name, dims in shapes.items()}
    feed = {name: np.full(size, 2, np.int32 if name in "tn" else np.float32) for name, size in sizes.items()}
    with pytest.raises(InvalidArgument, match="GroupQueryAttention"):
        session.run(None, feed)


def _open_model() -> bytes:
    """A model of one node, every size of each input by a name of its own."""
    shapes: dict[str, list[int | str]] = {
        "q": ["a", "b", _HEADS * _SIZE],
        "k": ["c", "d", _GROUPS * _SIZE],
        "v": ["e", "f", _GROUPS * _SIZE],
        "past_k": ["g", _GROUPS, "h", _SIZE],
        "past_v": ["i", _GROUPS, "j", _SIZE],
        "lengths": ["l", "m"],
        "mask": ["n", "t"],
    }
    kinds = {"lengths": TensorProto.INT32, "mask": TensorProto.INT64}
    inputs = [helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), dims) for name, dims in shapes.items()]
    names = [*(name for name in shapes if name != "mask"), "longest"]
    nodes = [
        helper.make_node("Shape", ["mask"], ["mask_shape"], start=1, end=2),
        helper.make_node("Cast", ["mask_shape"], ["longest"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention", names, ["y", "pk", "pv"], domain="com.microsoft", num_heads=_HEADS, kv_num_heads=_GROUPS
        ),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "pk", "pv")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=opsets, ir_version=8)
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(("S", "P"), [(1, 5), (3, 2), (12, 0)])
def test_sizes_of_other_names_are_compared_when_they_are_known(S: int, P: int) -> None:
    """A model that declares no relation of its inputs is compiled; results are those of the reference."""
    model = _open_model()
    session = _session(model)
    placement = next(placement for placement in session.explain() if "GroupQuery" in placement.op_type)
    assert placement.provider == "CPUExecutionProvider"
    feed = _feed(S, P, [S + P, S + P], rotary=False)
    feed["lengths"] = feed["lengths"][:, None]
    _check(session, model, feed, [S, S])


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("k", (3, 1, _GROUPS * _SIZE)),
        ("v", (2, 2, _GROUPS * _SIZE)),
        ("past_k", (1, _GROUPS, 5, _SIZE)),
        ("past_v", (2, _GROUPS, 4, _SIZE)),
        ("lengths", (2, 2)),
    ],
)
def test_sizes_that_turn_out_to_differ_are_errors(name: str, shape: tuple[int, ...]) -> None:
    """Nothing beyond a buffer is read or written, and the next run, whose sizes fit, is right."""
    model = _open_model()
    session = _session(model)
    feed = _feed(1, 5, [6, 6], rotary=False)
    feed["lengths"] = feed["lengths"][:, None]
    with pytest.raises(InvalidArgument, match="GroupQueryAttention"):
        session.run(None, feed | {name: np.ones(shape, feed[name].dtype)})
    _check(session, model, feed, [1, 1])


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize(("S", "lengths"), [(1, [5, 9]), (3, [12, 4]), (10, [10, 10])])
def test_past_and_present_may_be_one_buffer(rotary: bool, S: int, lengths: list[int]) -> None:
    """Bound to the same arrays, new rows are written behind the old ones, which stay where they are, as what follows does."""
    model, C = _model(rotary), 12
    feed = _feed(S, C, lengths, rotary)
    session = _session(model)
    wanted = session.run(None, feed)
    before = {name: feed[name].copy() for name in ("past_k", "past_v")}
    binding, (y,) = session.io_binding(), session.run(["y"], feed)
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    caches = [OrtValue.ortvalue_from_numpy(feed[name]) for name in ("past_k", "past_v")]
    for name, result, cache in zip(("past_k", "past_v"), ("pk", "pv"), caches, strict=True):
        binding.bind_ortvalue_input(name, cache)
        binding.bind_ortvalue_output(result, cache)
    binding.bind_ortvalue_output("y", OrtValue.ortvalue_from_numpy(np.zeros_like(y)))
    for _ in range(3):
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.get_outputs()[2].numpy(), wanted[0])
    for name, cache, found in zip(before, caches, wanted[1:], strict=True):
        array = cache.numpy()
        for batch, length in enumerate(lengths):
            np.testing.assert_array_equal(array[batch, :, :length], found[batch, :, :length])
            np.testing.assert_array_equal(array[batch, :, length:], before[name][batch, :, length:])


def test_what_the_graph_reads_besides_is_not_overwritten() -> None:
    """A past that another node reads too is copied, as ever."""
    body = bytes(_with_other_reader())
    session = _session(body)
    feed = _feed(1, 8, [5, 6], False)
    wanted = session.run(None, feed)
    cache = OrtValue.ortvalue_from_numpy(feed["past_k"].copy())
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    binding.bind_ortvalue_input("past_k", cache)
    binding.bind_ortvalue_output("pk", cache)
    binding.bind_output("other")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(cache.numpy(), wanted[1])
    np.testing.assert_array_equal(binding.get_outputs()[1].numpy(), wanted[3])


def _with_other_reader() -> bytes:
    made = onnx.load_from_string(_model(False))
    made.graph.node.append(helper.make_node("Neg", ["past_k"], ["other"]))
    made.graph.output.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, None))
    return bytes(made.SerializeToString())
