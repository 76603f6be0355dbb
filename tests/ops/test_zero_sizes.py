"""Sizes that are 0 where a Reshape reads them, or where they are broadcast: every provider makes what onnxruntime makes."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model
from support.session_models import session

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.ops.infer import infer_graph
from sardonyx.ops.zero_sizes import may_be_zero, with_zero_sizes

PROVIDERS = ("CPUExecutionProvider", "ReferenceExecutionProvider")
OWN = """graph(x: float[3, m]) -> (y: float[p, q], z: float[p, q]) {
    s = Shape(x)
    one: int64[1] = [1]
    rest: int64[1] = [-1]
    t = Gather(s, one)
    to = Concat(t, rest) {axis = 0}
    a = Exp(x)
    y = Reshape(a, to)
    z = Exp(y)
}"""
OTHER = """graph(x: float[k, m], v: float[m]) -> (y: float[p, q]) {
    s = Shape(v)
    rest: int64[1] = [-1]
    to = Concat(s, rest) {axis = 0}
    a = Exp(x)
    y = Reshape(a, to)
}"""


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_size_that_is_zero_copies_the_inputs(provider: str) -> None:
    """In every run, the first and those of machine code, with what follows; other sizes are as before, before and after."""
    made = session(OWN, providers=[provider])
    for width in (2, 0, 0, 0, 0, 2, 5, 0):
        y, z = made.run(None, {"x": np.zeros((3, width), np.float32)})
        assert y.shape == z.shape == ((width, 3) if width else (3, 0))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_size_of_another_input_copies_too(provider: str) -> None:
    """Where that input is empty."""
    made = session(OTHER, providers=[provider])
    assert made.run(None, {"x": np.zeros((3, 0), np.float32), "v": np.zeros(0, np.float32)})[0].shape == (3, 0)
    assert made.run(None, {"x": np.zeros((3, 4), np.float32), "v": np.zeros(4, np.float32)})[0].shape == (4, 3)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_zero_means_zero_where_the_node_says_so(provider: str) -> None:
    """With `allowzero` nothing is copied."""
    text = "graph(x: float[2, m]) -> (y: float[p, q]) {\ns = Shape(x)\ni: int64[2] = [1, 0]\nt = Gather(s, i)\ny = Reshape(x, t) {allowzero = 1}\n}"
    made = session(text, providers=[provider])
    assert made.run(None, {"x": np.zeros((2, 0), np.float32)})[0].shape == (0, 2)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "text", ["y = Add(x, z)", "c = Greater(x, z)\ny = Where(c, x, z)", "m = Mul(x, z)\ny = ReduceSum(m) {keepdims = 0}"]
)
def test_no_elements_meet_one(text: str, provider: str) -> None:
    """Dimensions of two symbols, of which one is 0 and the other 1, make 0; other sizes are as before, before and after."""
    made = session(f"graph(x: float[a, 4], z: float[b, 4]) -> (y) {{\n{text}\n}}", providers=[provider])
    for a, b, size in [(2, 2, 2), (0, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 0), (1, 3, 3), (0, 1, 0)]:
        (y,) = made.run(None, {"x": np.ones((a, 4), np.float32), "z": np.ones((b, 4), np.float32)})
        assert y.shape == ((size, 4) if "Reduce" not in text else ())
        assert y.sum() == size * 4 * (2 if "Add" in text else 1)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_elements_do_not_meet_several(provider: str) -> None:
    """0 and 3 are an error, which no other build is made for."""
    made = session("graph(x: float[a], z: float[b]) -> (y) {\ny = Add(x, z)\n}", providers=[provider])
    with pytest.raises(ort.InvalidArgument, match="broadcast"):
        made.run(None, {"x": np.ones(0, np.float32), "z": np.ones(3, np.float32)})
    assert made._runner._variants == {}


def test_a_size_in_its_own_place_is_known() -> None:
    """A batch of 0 stays on the CPU provider, without another build."""
    text = "graph(x: float[n, 4]) -> (y: float[p, q]) {\ns = Shape(x)\ni: int64[1] = [0]\nr: int64[1] = [-1]\nt = Gather(s, i)\nc = Concat(t, r) {axis = 0}\na = Exp(x)\ny = Reshape(a, c)\n}"
    made = session(text, providers=["CPUExecutionProvider"])
    assert made.run(None, {"x": np.zeros((0, 4), np.float32)})[0].shape == (0, 4)
    assert made._runner._variants == {}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_is_left_may_be_zero(provider: str) -> None:
    """The size that a constant target shape leaves open is no copy, and takes no other build."""
    made = session("graph(x: float[2, p, 3]) -> (y) {\nk: int64[1] = [-1]\ny = Reshape(x, k)\n}", providers=[provider])
    assert [made.run(None, {"x": np.zeros((2, p, 3), np.float32)})[0].shape for p in (2, 0, 1, 0)] == [(12,), (0,), (6,), (0,)]
    assert made._runner._variants == {}


def test_a_model_that_cannot_be_read_again_says_so() -> None:
    """With the node, and what to give the session."""
    made = ort.InferenceSession(model(OWN), providers=["CPUExecutionProvider"])
    made._runner.source = None
    with pytest.raises(ort.InvalidArgument, match=r"Reshape.*target shape is 0, which copies 3.*give the session a path"):
        made.run(None, {"x": np.zeros((3, 0), np.float32)})


def test_inference_says_nothing_of_sizes_that_may_be_zero() -> None:
    """Within the block only, and of others than those in their own place all it knew."""
    assert not may_be_zero()
    with with_zero_sizes(True):
        assert may_be_zero()
        made = model(OWN)
        infer_graph(made)
        unknown = made.graph.outputs[0].shape
    made = model(OWN)
    infer_graph(made)
    assert str(made.graph.outputs[0].shape) != str(unknown)
    assert not may_be_zero()


def test_symbols_of_two_sizes_run_again_and_again() -> None:
    """Runs that another build computes are not learned by the machine code of this one."""
    made = ort.InferenceSession(
        to_bytes(model("graph(x: float[n], z: float[n]) -> (y: float[n]) {\na = Relu(x)\ny = Add(a, z)\n}"))
    )
    for width in (1, 1, 1, 1, 4, 4, 4, 1, 1):
        result = made.run(None, {"x": np.ones(width, np.float32), "z": np.ones(4, np.float32)})[0]
        assert result.tolist() == [2] * 4


def test_bindings_of_symbols_of_two_sizes_run_again_and_again() -> None:
    """As runs do."""
    made = session("graph(x: float[n], z: float[n]) -> (y: float[n]) {\na = Relu(x)\ny = Add(a, z)\n}")
    binding = made.io_binding()
    binding.bind_cpu_input("x", np.ones(1, np.float32))
    binding.bind_cpu_input("z", np.ones(4, np.float32))
    binding.bind_output("y")
    for _ in range(5):
        made.run_with_iobinding(binding)
        assert binding.copy_outputs_to_cpu()[0].tolist() == [2] * 4
