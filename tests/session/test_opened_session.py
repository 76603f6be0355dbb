"""What an InferenceSession computes and says, end to end."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.models import model
from support.providers import DeviceProvider, FusingProvider, NhwcProvider
from support.session_models import BRANCH, IMAGES, MLP, VISION, VISION_ERROR, rows, session

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes


def test_rows_of_a_softmax_sum_to_one() -> None:
    """The session computes what the operators mean."""
    (y,) = session(MLP).run(None, rows(5))
    np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-6)


def test_inputs_outputs_and_providers_are_told() -> None:
    """As onnxruntime's getters do."""
    held = session(MLP)
    assert [(item.name, item.type, item.shape) for item in held.get_inputs()] == [("x", "tensor(float)", ["batch", 4])]
    assert [(item.name, item.shape) for item in held.get_outputs()] == [("y", ["batch", 3])]
    assert held.get_providers()[-1] == "ReferenceExecutionProvider"
    assert held.get_provider_options()["ReferenceExecutionProvider"] == {}
    assert held.get_modelmeta().graph_name == "main"


def test_outputs_can_be_chosen() -> None:
    """By name, in any order."""
    text = "graph(x: float[2]) -> (a: float[2], b: float[2]) {\na = Neg(x)\nb = Abs(x)\n}"
    b, a = session(text).run(["b", "a"], {"x": np.float32([-1, 2])})
    assert (b.tolist(), a.tolist()) == ([1, 2], [1, -2])


def test_results_are_the_users_own() -> None:
    """An output that is an input, and one that is a constant, can be written to."""
    text = "graph(x: float[2]) -> (y: float[2], k: float[2]) {\nk: float[2] = [1, 2]\ny = Identity(x)\n}"
    held = session(text)
    x = np.zeros(2, np.float32)
    y, k = held.run(None, {"x": x})
    y[...] = 9
    k[...] = 9
    assert x.tolist() == [0, 0]
    assert held.run(["k"], {"x": x})[0].tolist() == [1, 2]


def test_branches_capture_outer_values() -> None:
    """Both bodies read a value of the main graph."""
    held = session(BRANCH)
    x = np.float32([1, 2, 3])
    assert held.run(None, {"c": np.array(True), "x": x})[0].tolist() == [2, 6, 12]
    assert held.run(None, {"c": np.array(False), "x": x})[0].tolist() == [0, 2, 6]


def test_a_body_is_partitioned_like_the_main_graph() -> None:
    """A provider that claims Add gets the one inside the branch, on its device."""
    held = session(BRANCH, providers=[DeviceProvider({"Add"})])
    inner = [placement for placement in held.explain() if placement.op_type == "Add"]
    assert [placement.provider for placement in inner] == ["DeviceProvider"]
    assert inner[0].graph.endswith("/then_branch")
    assert held.run(None, {"c": np.array(True), "x": np.float32([1, 2])})[0].tolist() == [2, 6]


@pytest.mark.parametrize(
    "provider", [FusingProvider({"Conv", "Relu", "Exp"}), NhwcProvider(), DeviceProvider({"Relu"})], ids=lambda item: item.name
)
def test_any_provider_before_the_reference_gives_the_same_results(provider: Any) -> None:
    """Fusing, NHWC and device providers, each with the reference provider behind it."""
    held = session(VISION, providers=[provider])
    np.testing.assert_allclose(held.run(None, {"x": IMAGES})[0], session(VISION).run(None, {"x": IMAGES})[0], rtol=VISION_ERROR)
    assert provider.name in {placement.provider for placement in held.explain()}


def test_copies_are_made_only_at_the_seams() -> None:
    """One tensor goes to the device and one comes back in a run."""
    provider = DeviceProvider({"Relu"})
    text = "graph(x: float[n]) -> (y: float[n]) {\na = Exp(x)\nb = Relu(a)\nc = Relu(b)\ny = Exp(c)\n}"
    held = session(text, providers=[provider])
    held.run(None, {"x": np.float32([1])})
    assert (provider.memory.from_host_count, provider.memory.to_host_count) == (1, 1)


def test_explain_tells_why_a_provider_declined() -> None:
    """For every node, with the providers asked before."""
    placements = session(MLP, providers=[FusingProvider({"Softmax"})]).explain()
    assert placements[-1].provider == "FusingProvider"
    assert placements[0].declined["FusingProvider"].endswith("is not among its operators")


def test_a_session_serves_many_threads() -> None:
    """8 threads, different shapes, 10,000 runs: every result equals the serial one."""
    held = session(MLP)
    feeds = [rows(size) for size in range(1, 9)]
    expected = [held.run(None, feed)[0] for feed in feeds]

    def work(thread: int) -> bool:
        return all((held.run(None, feeds[(thread + step) % 8])[0] == expected[(thread + step) % 8]).all() for step in range(1250))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_threads_share_a_device_plan_too() -> None:
    """Bindings and arenas are safe for threads."""
    held = session("graph(x: float[n]) -> (y: float[n]) {\na = Relu(x)\nb = Neg(a)\ny = Add(b, x)\n}", providers=[DeviceProvider()])
    arrays = [np.random.default_rng(size).standard_normal(size * 50).astype(np.float32) for size in range(1, 9)]

    def work(thread: int) -> bool:
        x = arrays[thread]
        expected = x - np.maximum(x, 0)
        return all(np.array_equal(held.run(None, {"x": x})[0], expected) for _ in range(100))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_a_failed_run_leaves_the_session_working() -> None:
    """A run that fails half-way is followed by one that succeeds."""
    held = session("graph(x: float[n], i: int64[m]) -> (y: float[m]) {\na = Exp(x)\ny = Gather(a, i) @pick\n}")
    x = np.zeros(3, np.float32)
    with pytest.raises(ort.InvalidArgument, match=r"node .pick."):
        held.run(None, {"x": x, "i": np.int64([7])})
    assert held.run(None, {"x": x, "i": np.int64([2])})[0].tolist() == [1]


def test_a_run_can_be_terminated_from_another_thread() -> None:
    """A loop that would take forever ends soon after `terminate` is set."""
    held = session("""graph(x: float[2]) -> (y: float[2]) {
        n: int64[] = 1000000000
        t: bool[] = true
        y = Loop(n, t, x) {body = graph(i: int64[], c: bool[], v: float[2]) -> (c, w) {
            w = Neg(v)
        }}
    }""")
    options = ort.RunOptions()
    timer = threading.Timer(0.2, lambda: setattr(options, "terminate", True))
    timer.start()
    start = time.monotonic()
    with pytest.raises(ort.Fail, match="terminated"):
        held.run(None, {"x": np.zeros(2, np.float32)}, options)
    assert time.monotonic() - start < 30
    timer.join()


def test_one_symbol_may_have_two_sizes_in_a_feed() -> None:
    """The standard says no, but models exist; every shape that was drawn from the symbol is forgotten then."""
    held = session("""graph(x: float[n, 3], z: float[n, 3]) -> (a: int64[2], b: int64[2]) {
        a = Shape(x)
        b = Shape(z)
    }""")
    feed = {"x": np.zeros((2, 3), np.float32), "z": np.zeros((5, 3), np.float32)}
    assert [result.tolist() for result in held.run(None, feed)] == [[2, 3], [5, 3]]
    feed["z"] = feed["x"]
    assert [result.tolist() for result in held.run(None, feed)] == [[2, 3], [2, 3]]


def test_outputs_are_told_as_the_model_declares_them() -> None:
    """Names stay; a size that inference knows takes the place of a name, as in onnxruntime."""
    held = session("graph(x: float[n, 3]) -> (y: float[rows, columns]) {\ny = Relu(x)\n}")
    assert held.get_outputs()[0].shape == ["rows", 3]


PATHS = """graph(x: float[n, 3], z: float[n, 3]) -> (a: float[n, 3], b: float[n, 3], c: int64[2]) {
    a = Neg(x)
    t = Sqrt(z)
    b = Exp(t)
    c = Shape(z)
}"""


class _Watched(FusingProvider):
    """Notes which operators are run."""

    def __init__(self) -> None:
        super().__init__({"Neg", "Sqrt", "Exp"}, "Watched", fuse=False)

    def ran(self) -> list[str]:
        """The operators of the programs that were compiled since this was asked before."""
        compiled, self.compiled = self.compiled, []
        return [node.op_type for part in compiled for node in part.nodes]


def test_only_the_way_to_what_is_asked_for_is_computed_on_request(tmp_path: Path) -> None:
    """Each set of outputs is a model of its own, built once; feeds and order are as ever, and no file is written again."""
    options, provider, run_options = ort.SessionOptions(), _Watched(), ort.RunOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    run_options.only_execute_path_to_fetches = True
    held = session(PATHS, sess_options=options, providers=[provider])
    written = (tmp_path / "optimized.onnx").read_bytes()
    feed = {"x": np.ones((2, 3), np.float32), "z": np.ones((2, 3), np.float32)}
    assert sorted(provider.ran()) == ["Exp", "Neg", "Sqrt"]
    assert [result.shape for result in held.run(["a"], feed, run_options)] == [(2, 3)]
    assert provider.ran() == ["Neg"]
    c, b, again = held.run(["c", "b", "c"], feed, run_options)
    assert (c.tolist(), float(b[0, 0]), again.tolist()) == ([2, 3], pytest.approx(np.e), [2, 3])
    assert sorted(provider.ran()) == ["Exp", "Sqrt"]
    held.run(["b", "c"], feed, run_options)
    held.run(None, feed, run_options)
    held.run(["a"], feed)
    assert provider.ran() == []
    assert held.run(["c"], feed | {"z": np.ones((5, 3), np.float32)}, run_options)[0].tolist() == [5, 3]
    assert (tmp_path / "optimized.onnx").read_bytes() == written


def _answers(
    session: ort.InferenceSession, feeds: list[dict[str, Any]], names: list[str] | None = None
) -> dict[int, tuple[Any, str]]:
    """What asynchronous runs of feeds hand back: for each the results and the error."""
    found: dict[int, tuple[Any, str]] = {}
    done = threading.Semaphore(0)

    def receive(results: list[Any], index: int, error: str) -> None:
        found[index] = (results, error)
        done.release()

    for index, feed in enumerate(feeds):
        session.run_async(names, feed, receive, index)
    assert all(done.acquire(timeout=60) for _ in feeds)
    return found


def test_asynchronous_runs_give_what_others_give() -> None:
    """Many at once, each to the function that was given, with its own data."""
    session = ort.InferenceSession(to_bytes(model(MLP)))
    feeds = [{"x": np.full((index + 1, 4), index, np.float32)} for index in range(8)]
    found = _answers(session, feeds, ["y"])
    for index, feed in enumerate(feeds):
        results, error = found[index]
        assert error == ""
        np.testing.assert_array_equal(results[0], session.run(None, feed)[0])


def test_an_asynchronous_run_tells_what_went_wrong() -> None:
    """With no results."""
    session = ort.InferenceSession(to_bytes(model("graph(x: float[n], i: int64[k]) -> (y) {\ny = Gather(x, i)\n}")))
    found = _answers(session, [{"x": np.zeros(2, np.float32), "i": np.array([place])} for place in (7, 1)])
    assert [len(found[place][0]) for place in (0, 1)] == [0, 1]
    assert "out of range" in found[0][1]
    assert found[1][1] == ""


def test_sparse_constants_come_out_sparse() -> None:
    """A Constant with a sparse tensor that is an output gives a SparseTensor, as in onnxruntime."""
    values = onnx.helper.make_tensor("", onnx.TensorProto.FLOAT, [2], [1.0, 2.0])
    places = onnx.helper.make_tensor("", onnx.TensorProto.INT64, [2], [0, 3])
    constant = onnx.helper.make_node("Constant", [], ["y"], value=onnx.helper.make_sparse_tensor(values, places, [2, 2]))
    output = onnx.helper.make_sparse_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 2])
    proto = onnx.helper.make_model(onnx.helper.make_graph([constant], "g", [], [output]), ir_version=8)
    (found,) = ort.InferenceSession(proto.SerializeToString()).run(None, {})
    assert isinstance(found, ort.SparseTensor)
    assert found.values().tolist() == [1, 2]
    assert found.get_coo_data().indices().tolist() == [0, 3]


def _relu() -> ort.InferenceSession:
    return session("graph(x: float[n]) -> (y: float[n], z: float[n]) {\ny = Relu(x)\nz = Neg(x)\n}")


@pytest.mark.parametrize(
    "names",
    [iter(["z", "y"]), (name for name in "zy"), map(str, "zy"), {"z": 0, "y": 1}.keys(), np.array(["z", "y"]), [b"z", b"y"]],
    ids=lambda names: type(names).__name__,
)
def test_names_of_outputs_come_in_any_collection(names: Any) -> None:
    """Also one that can be read once only, and as bytes."""
    assert [array.tolist() for array in _relu().run(names, {"x": np.ones(1, np.float32)})] == [[-1], [1]]


@pytest.mark.parametrize("names", ["", b"", False, 0, (), set()], ids=repr)
def test_nothing_names_all_outputs(names: Any) -> None:
    """As in onnxruntime."""
    assert len(_relu().run(names, {"x": np.ones(1, np.float32)})) == 2


def test_names_that_are_read_once_may_be_of_inner_values_and_of_asynchronous_runs() -> None:
    """They are kept for both."""
    held = session("graph(x: float[n]) -> (y) {\nh = Exp(x)\ny = Neg(h)\n}")
    assert held.run(iter(["h"]), {"x": np.zeros(1, np.float32)})[0].tolist() == [1]
    found = _answers(held, [{"x": np.zeros(1, np.float32)}], iter(["y"]))  # type: ignore[arg-type]
    assert found[0][0][0].tolist() == [-1]


@pytest.mark.parametrize("feed", [{3: 0}, {"x": 0, 3: 0}, {b"x": 0}], ids=repr)
def test_a_name_of_an_input_that_is_no_text_is_an_error(feed: Any) -> None:
    """It is shown."""
    with pytest.raises(ort.InvalidArgument, match="3|b'x'"):
        _relu().run(None, feed)


def test_a_callback_that_cannot_be_called_is_a_type_error() -> None:
    """When the run is asked for."""
    with pytest.raises(TypeError, match="callback is a function of .*, got 3"):
        _relu().run_async(None, {"x": np.ones(1, np.float32)}, 3, None)  # type: ignore[arg-type]


def test_options_of_a_provider_that_are_none_are_refused() -> None:
    """The message shows the pair."""
    with pytest.raises(ort.InvalidArgument, match=r"pair .*, got \('CPUExecutionProvider', None\)"):
        ort.InferenceSession(to_bytes(model(MLP)), providers=[("CPUExecutionProvider", None)])  # type: ignore[list-item]
