"""The provider: its options, what it claims, and that no claim makes a model fail."""

import dataclasses

import numpy as np
import pytest
from support.cpu_run import LEVELS, declined, reference, run_cpu, steps_of
from support.models import model

from sardonyx import InferenceSession
from sardonyx.codegen.target import host_target
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.provider import Layout
from sardonyx.providers.cpu.provider import NAME, CpuProvider, create
from sardonyx.trace import Event, observe


def test_options() -> None:
    """A number of threads; those of onnxruntime's arena are accepted, others are warned of."""
    assert create({}).name == NAME
    assert isinstance(create({"intra_op_num_threads": "2"}), CpuProvider)
    create({"arena_extend_strategy": "kSameAsRequested", "use_arena": "1"})
    with pytest.warns(UserWarning, match=r"has no option 'intra_op_num_thread', .* did you mean 'intra_op_num_threads'\?"):
        create({"intra_op_num_thread": "2"})
    with pytest.raises(InvalidArgument, match="at least 0, got 'many'"):
        create({"intra_op_num_threads": "many"})


def test_a_level_that_the_processor_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """`SARDONYX_ISA` names a lower one, not any."""
    monkeypatch.setenv("SARDONYX_ISA", LEVELS[0])
    create({})
    monkeypatch.setenv("SARDONYX_ISA", "avx1024")
    with pytest.raises(InvalidArgument, match="avx1024"):
        create({})


def test_declines_say_why() -> None:
    """No kernel, an unknown rank, a size that only the run knows."""
    assert declined("graph(x: uint8[9]) -> (y: uint8[h, w, c]) { y = ImageDecoder(x) }") == [
        "no compiled kernel for ai.onnx.ImageDecoder"
    ]
    (reason,) = declined("graph(x: float) -> (y: float) { y = Relu(x) }")
    assert reason == "input 0 (x) is a tensor whose rank is not known"
    (reason,) = declined("graph(x: float[n, m], s: int64[2]) -> (y: float[h, w]) { y = CenterCropPad(x, s) }")
    assert "is known only when the model runs" in reason


@pytest.mark.parametrize("first", ["x", "z"])
def test_sizes_that_a_node_makes_are_not_asked_of_itself(first: str) -> None:
    """Where broadcasting decides a size, that follows from those of the inputs."""
    body = """graph(x: float[n, 4], z: float[m, 4]) -> (y: float[k, 4]) {
        a = Add(x, z) b = Relu(a) c = Softmax(b) y = Mul(c, b) }"""
    shapes = {"x": (1, 4), "z": (1, 4), first: (3, 4)}
    feeds = {name: np.random.default_rng(0).standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    session = InferenceSession(to_bytes(model(body)), providers=[create({"intra_op_num_threads": "1"})])
    np.testing.assert_allclose(session.run(None, feeds)[0], reference(body, feeds)[0], rtol=1e-6)


def test_parts_between_other_providers_run_on_the_sizes_that_they_meet() -> None:
    """What NonZero finds decides the size of all that follows."""
    body = """graph(x: float[n]) -> (y: float[k]) {
        i = NonZero(x) j = Transpose(i) axes: int64[1] = [1] s = Squeeze(j, axes) g = Gather(x, s) e = Exp(g) y = Neg(e) }"""
    session = InferenceSession(to_bytes(model(body)), providers=[create({"intra_op_num_threads": "1"})])
    for values in ([0, 1, 0, 2], [0, 0], [3, 4, 5]):
        x = np.array(values, np.float32)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], -np.exp(x[x != 0]), rtol=1e-6)


def test_an_output_that_bears_the_name_of_another_size_has_its_own() -> None:
    """As many rows as NonZero finds, whatever symbol the model declares."""
    body = "graph(x: float[n]) -> (y: int64[n, 1]) { i = NonZero(x) y = Transpose(i) {perm = [1, 0]} }"
    session = InferenceSession(to_bytes(model(body)), providers=[create({"intra_op_num_threads": "1"})])
    assert session.run(None, {"x": np.array([0, 1, 0, 2], np.float32)})[0].tolist() == [[1], [3]]


def test_a_step_does_not_write_over_what_its_tail_reads() -> None:
    """Softmax(h) * h: the product reads what the softmax could have been written over."""
    for op in ("Softmax", "LogSoftmax", "Exp"):
        body = f"""graph(x: float[6, 40]) -> (y: float[6, 40]) {{
            h = Neg(x) a = Relu(h) p = {op}(h) q = Mul(p, h) b = Softmax(q) y = Add(a, b) }}"""
        x = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)
        np.testing.assert_allclose(run_cpu(body, {"x": x})[0], reference(body, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_layout_is_a_matter_of_the_provider() -> None:
    """The same results in both."""
    body = """graph(x: float[1, 3, 6, 6]) -> (y: float[1, 4, 1, 1]) {
        w: float[4, 3, 3, 3] = ... 1
        a = Conv(x, w) b = Relu(a) y = GlobalAveragePool(b) }"""
    x = np.random.default_rng(0).standard_normal((1, 3, 6, 6)).astype(np.float32)
    np.testing.assert_allclose(run_cpu(body, {"x": x}, layout=Layout.NHWC)[0], reference(body, {"x": x})[0], rtol=1e-5)


def test_outputs_end_groups() -> None:
    """What is given out is stored, and not computed within a step only."""
    body = "graph(x: float[4]) -> (a: float[4], y: float[4]) { a = Exp(x) y = Neg(a) }"
    assert steps_of(body) == ["Exp", "Neg"]


def test_rows_that_were_reshaped_keep_their_layout() -> None:
    """An instance normalization of groups, with a scale for each, needs no transposes; one of an image's channels is converted."""
    text = """graph(x: float[2, 6, 3, 5]) -> (y: float[2, 6, 3, 5], z: float[2, 6, 1, 1]) {
        to: int64[3] = [2, 2, 45] back: int64[4] = [2, 6, 3, 5]
        v: float[2] = [1, 2] w: float[6] = [1, 2, 3, 4, 5, 6]
        g = Reshape(x, to) n = InstanceNormalization(g, v, v) y = Reshape(n, back)
        f: float[6, 6, 1, 1] = ... 1 i = InstanceNormalization(x, w, w) z = Conv(i, f) {strides = [5, 5]} }"""
    session = InferenceSession(to_bytes(model(text)), providers=[NAME])
    operators = [place.op_type for place in session.explain()]
    assert sorted(operators) == [
        "InstanceNormalization",
        "Reshape",
        "Reshape",
        "Transpose",
        "Transpose",
        "sardonyx.nhwc.Conv",
        "sardonyx.nhwc.InstanceNormalization",
    ]
    feed = {"x": np.random.default_rng(0).standard_normal((2, 6, 3, 5)).astype(np.float32)}
    expected = InferenceSession(to_bytes(model(text)), providers=["ReferenceExecutionProvider"]).run(None, feed)
    for ours, theirs in zip(session.run(None, feed), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_a_provider_has_at_most_1024_threads() -> None:
    """A larger number is cut, with an event: 100,000 would start as many threads as the system gives."""
    seen: list[Event] = []
    with observe(seen.append):
        made = create({"intra_op_num_threads": "100000"})
    assert made._threads == 1024
    assert [event.details["asked"] for event in seen if event.name == "cpu.fewer_threads"] == [100000]


def test_programs_are_kept_for_one_size_of_cache() -> None:
    """Scratch memory is cut by it: a folder of kernels may be shared by machines that differ in nothing else."""
    here, other = host_target(), dataclasses.replace(host_target(), cache_bytes=3 << 20)
    assert CpuProvider(here, 1).decision_key() == CpuProvider(here, 1).decision_key() != CpuProvider(other, 1).decision_key()
