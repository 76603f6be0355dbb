"""The OpenVINO provider, alone and beside the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import graph, model

import sardonyx as ort
from sardonyx import errors
from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.program_file import write_program
from sardonyx.ir import Graph
from sardonyx.provider import Body, Capability, Claims, GraphView, Partition, Program, Provider
from sardonyx.providers.cpu.provider import create as create_cpu
from sardonyx.providers.openvino.provider import NAME, create

pytest.importorskip("openvino")

OPTIONS = {"num_of_threads": "1"}


class Without:
    """A provider that leaves some operators to others."""

    def __init__(self, inner: Provider, *operators: str) -> None:
        self.name, self.preferred_layout, self.memory = inner.name, inner.preferred_layout, inner.memory
        self._inner, self._operators = inner, operators

    def capabilities(self, view: GraphView) -> Claims:
        nodes = tuple(node for node in view.nodes if node.op_type not in self._operators)
        return self._inner.capabilities(dataclasses.replace(view, nodes=nodes))

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        return self._inner.compile(partition, bodies)


def _feed(session: ort.InferenceSession) -> dict[str, Any]:
    random = np.random.default_rng(5)
    return {
        item.name: random.standard_normal([dim if isinstance(dim, int) else 2 for dim in item.shape], dtype=np.float32)
        for item in session.get_inputs()
    }


CONVOLUTIONS = """graph(x: float[n, 3, 12, 12]) -> (y: float[n, 7]) {
    w0: float[16, 3, 3, 3] = ... 1
    w1: float[16, 16, 3, 3] = ... 2
    w2: float[16, 7] = ... 3
    a = Conv(x, w0) {pads = [1, 1, 1, 1]}
    b = Relu(a)
    c = Conv(b, w1) {pads = [1, 1, 1, 1]}
    d = Add(c, b)
    e = MaxPool(d) {kernel_shape = [2, 2], strides = [2, 2]}
    f = GlobalAveragePool(e)
    g = Flatten(f)
    h = Gemm(g, w2)
    y = Softmax(h)
}"""
ATTENTION = """graph(x: float[n, t, 32]) -> (y: float[n, t, 32]) {
    scale: float[32] = ... 1
    bias: float[32] = ... 2
    w: float[32, 32] = ... 3
    turned = Transpose(x) {perm = [0, 2, 1]}
    scores = MatMul(x, turned)
    weights = Softmax(scores)
    mixed = MatMul(weights, x)
    sum = Add(mixed, x)
    normal = LayerNormalization(sum, scale, bias)
    wide = MatMul(normal, w)
    y = Gelu(wide)
}"""
DETECTION = """graph(x: float[1, 6, 4]) -> (picked: int64[k, 3]) {
    most: int64[] = 3
    overlap: float[] = 0.5
    one: int64[1] = [1]
    two: int64[1] = [2]
    w: float[4, 4] = ... 4
    wide = MatMul(x, w)
    boxes = Sigmoid(wide)
    mean = ReduceMean(boxes, two) {keepdims = 0}
    scores = Unsqueeze(mean, one)
    picked = NonMaxSuppression(boxes, scores, most, overlap)
}"""


@pytest.mark.parametrize(
    ("body", "to_cpu", "to_reference"),
    [
        (CONVOLUTIONS, ("MaxPool", "Softmax"), ("Add", "MaxPool")),
        (ATTENTION, ("Attention", "Softmax"), ("LayerNormalization",)),
        (DETECTION, ("Sigmoid",), ("NonMaxSuppression",)),
    ],
)
def test_a_model_runs_across_three_providers(body: str, to_cpu: tuple[str, ...], to_reference: tuple[str, ...]) -> None:
    """What goes to and fro between OpenVINO, CPU and reference is what the reference provider computes alone."""
    data = onnx_format.to_bytes(model(body))
    providers: list[Any] = [Without(create(OPTIONS), *to_cpu, *to_reference), Without(create_cpu({}), *to_reference)]
    session = ort.InferenceSession(data, providers=providers)
    assert {item.provider.removesuffix("ExecutionProvider") for item in session.explain()} == {"OpenVINO", "CPU", "Reference"}
    feed = _feed(session)
    (expected,) = ort.InferenceSession(data, providers=["ReferenceExecutionProvider"]).run(None, feed)
    (found,) = session.run(None, feed)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_it_claims_what_openvino_supports_and_says_why_not_the_rest() -> None:
    """Reasons are its own words, or those of the table of operators."""
    text = "graph(x: float[2, 2]) -> (y: float[], z: int64[2, 2]) {\na: float[2, 2] = Relu(x)\ny = Det(a)\nz = Cast(x) {to = 7}\n}"
    held = graph(text)
    relu, det, cast = held
    claims = create(OPTIONS).capabilities(GraphView(held, tuple(held)))
    assert [capability.nodes for capability in claims.capabilities] == [(relu,)]
    assert claims.declined[det] == "No conversion rule found for operations: Det-21"
    assert "output 0 has elements of type int64" in claims.declined[cast]


def test_a_session_finds_it_by_name_and_never_by_itself() -> None:
    """It is among the available providers; a session that names none does not use it."""
    data = onnx_format.to_bytes(model("graph(x: float[n]) -> (y: float[n]) { y = Exp(x) }"))
    assert NAME in ort.get_available_providers()
    assert NAME not in ort.InferenceSession(data).get_providers()
    session = ort.InferenceSession(data, providers=[(NAME, OPTIONS)])
    assert session.get_provider_options()[NAME] == OPTIONS
    assert [item.provider for item in session.explain()] == [NAME]
    assert session.run(None, {"x": np.float32([0, 0])})[0].tolist() == [1, 1]


def test_an_unknown_device_is_an_error_that_lists_the_known() -> None:
    """A device that OpenVINO does not find is said when the session is made."""
    with pytest.raises(errors.InvalidArgument, match=r"device_type 'TOASTER': .*; there are \['CPU'"):
        create({"device_type": "TOASTER"})


def test_what_it_cannot_compile_names_the_partition_and_its_nodes() -> None:
    """A claim that OpenVINO then refuses is an EPFail."""
    held = graph("graph(x: float[2, 2]) -> (y: float[]) { y = Det(x) }")
    (det,) = held
    part = Partition("part_7", held, (det,), (Capability((det,)),), tuple(held.inputs), (), held.outputs)
    with pytest.raises(errors.EPFail, match="claimed 1 nodes, from .*Det.*as part_7 for CPU: No conversion rule"):
        create(OPTIONS).compile(part, lambda inner: pytest.fail(f"{inner!r} is no body"))


def test_results_are_of_full_float_precision() -> None:
    """Long sums are as accurate as the processor's floats, whatever shorter types it has."""
    text = "graph(x: float[n, 512]) -> (y: float[n, 64]) {\nw: float[512, 64] = ... 1\ny = MatMul(x, w)\n}"
    held = onnx_format.to_bytes(model(text))
    session = ort.InferenceSession(held, providers=[(NAME, OPTIONS)])
    reference = ort.InferenceSession(held, providers=["ReferenceExecutionProvider"])
    x = np.random.default_rng(1).standard_normal((8, 512), dtype=np.float32)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], reference.run(None, {"x": x})[0], rtol=1e-3, atol=1e-4)


def test_a_compiled_partition_can_be_kept_and_had_again() -> None:
    """What OpenVINO exports is imported without the nodes; symbols and types are those of the partition."""
    nodes = "m: float[n, 64] = MatMul(x, w)\ny = Transpose(m)"
    held = graph(f"graph(x: float[n, 64]) -> (y: float[64, n]) {{\nw: float[64, 64] = ... 1\n{nodes}\n}}")
    units = tuple(Capability((node,)) for node in held)
    part = Partition("part_0", held, tuple(held), units, tuple(held.inputs), tuple(held.initializers.values()), held.outputs)
    provider = create(OPTIONS)
    program = provider.compile(part, lambda inner: pytest.fail(f"{inner!r} is no body"))
    content = provider.save(part, program)
    assert content is not None
    again = provider.load(part, memoryview(content))
    x = np.random.default_rng(1).standard_normal((3, 64), dtype=np.float32)
    results = []
    for item in (program, again):
        bound = item.bind(((3, 64),))
        (spec,) = bound.outputs
        assert spec is not None
        results += item.run(bound, [x], [np.empty(spec.shape, np.float32)], None)
    assert results[0].shape == (64, 3)
    np.testing.assert_array_equal(results[0], results[1])


def test_what_openvino_does_not_import_is_an_error() -> None:
    """The message says which partition, and what to do."""
    content = write_program({"device": "CPU", "inputs": 0}, Graph("partition"), objects={"model": b"something else"})
    held = graph("graph(x: float[2]) -> (y: float[2]) { y = Relu(x) }")
    part = Partition("part_7", held, tuple(held), (), tuple(held.inputs), (), held.outputs)
    with pytest.raises(errors.EPFail, match="OpenVINO cannot import partition part_7, .*; make the context anew"):
        create(OPTIONS).load(part, memoryview(content))


def test_a_session_across_providers_is_compiled_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each loads its own partitions, and nothing is compiled."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "model.onnx"
    text = "graph(x: float[n, 8]) -> (y: float[n, 8], z: int64[2]) {\na = Exp(x)\ny = Tanh(a)\nz = Shape(y)\n}"
    onnx_format.save(model(text), source)
    writing, reading = ort.SessionOptions(), ort.SessionOptions()
    writing.add_session_config_entry("ep.context_enable", "1")
    reading.add_session_config_entry("session.disable_model_compile", "1")
    providers = [(NAME, OPTIONS), "CPUExecutionProvider"]
    expected = ort.InferenceSession(str(source), writing, providers=providers).run(None, {"x": np.ones((3, 8), np.float32)})
    session = ort.InferenceSession(str(tmp_path / "model_ctx.onnx"), reading, providers=providers)
    assert {item.provider for item in session.explain()} == {NAME, "CPUExecutionProvider"}
    for left, right in zip(expected, session.run(None, {"x": np.ones((3, 8), np.float32)}), strict=True):
        np.testing.assert_array_equal(left, right)


def test_programs_are_good_for_this_version_and_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's metadata say so; weights cannot be left out of what OpenVINO exports."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "model.onnx"
    onnx_format.save(model("graph(x: float[n, 8]) -> (y: float[n, 8]) { y = Exp(x) }"), source)
    options = ort.SessionOptions()
    options.add_provider(NAME, OPTIONS)
    ort.ModelCompiler(options, source).compile_to_file()
    info = ort.get_compatibility_info_from_model(tmp_path / "model_ctx.onnx", NAME)
    assert info is not None
    suited = ort.OrtCompiledModelCompatibility
    assert ort.get_model_compatibility_for_ep_devices([(NAME, OPTIONS)], info) is suited.EP_SUPPORTED_OPTIMAL
    assert ort.get_model_compatibility_for_ep_devices([NAME], info.replace("20", "19")) is suited.EP_UNSUPPORTED
    options.add_session_config_entry("ep.enable_weightless", "1")
    with pytest.raises(errors.EPFail, match=f"{NAME} does not keep programs without their weights; leave it out"):
        ort.ModelCompiler(options, source).compile_to_file()


def test_a_partition_is_written_under_the_version_of_its_own_nodes() -> None:
    """The layout step of another provider adds transposes of an older version; axes are an input of ReduceMean since 18."""
    text = """graph(x: float[n, 4, 8, 8]) -> (y: float[n, 4, 1, 1]) {
        w: float[4, 4, 3, 3] = ... 1
        axes: int64[2] = [2, 3]
        a = Conv(x, w) {pads = [1, 1, 1, 1]} @convolution
        b = Conv(a, w) @another
        y = ReduceMean(b, axes) @mean
    }"""
    options = ort.SessionOptions()
    options.place("Conv", "CPU")
    feed = {"x": np.random.default_rng(0).standard_normal((2, 4, 8, 8)).astype(np.float32)}
    session = ort.InferenceSession(onnx_format.to_bytes(model(text)), options, providers=[(NAME, OPTIONS), "CPUExecutionProvider"])
    assert {place.provider for place in session.explain() if place.op_type == "ReduceMean"} == {NAME}
    expected = ort.InferenceSession(onnx_format.to_bytes(model(text)), providers=["ReferenceExecutionProvider"]).run(None, feed)[0]
    np.testing.assert_allclose(session.run(None, feed)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        """graph(x: float[n, 2, 4]) -> (y: float[n, 2]) {
        axes: int64[1] = [2]
        k: float[2] = ... 1
        a = ReduceSum(x, axes) {keepdims = 0}
        y = Add(a, k)
    }""",
        """graph(x: float[1, 2, 7]) -> (y) {
        y = AveragePool(x) {kernel_shape = [3], strides = [2], pads = [1, 0], ceil_mode = 1, count_include_pad = 1}
    }""",
    ],
)
def test_what_openvino_computes_wrong_runs_elsewhere(text: str) -> None:
    """The session's answer is right."""
    data = onnx_format.to_bytes(model(text))
    session = ort.InferenceSession(data, providers=[(NAME, OPTIONS), "CPUExecutionProvider"])
    feed = _feed(session)
    expected = ort.InferenceSession(data, providers=["ReferenceExecutionProvider"]).run(None, feed)[0]
    np.testing.assert_allclose(session.run(None, feed)[0], expected, rtol=1e-5, atol=1e-5)
