"""Normalizations of models: axes, layouts, versions, tails."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_close, assert_same_bits, cpu_session, declined, reference, run_cpu, steps_of

from sardonyx.dtypes import Array
from sardonyx.provider import Layout


def _x(*shape: int, seed: int = 0) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * 2 + 0.5).astype(np.float32)


LAYER = """graph(x: float[n, s, 40], g: float[40], b: float[40]) -> (y: float[n, s, 40]) {
    y = LayerNormalization(x, g, b) {epsilon = 1e-3} }"""


@pytest.mark.parametrize("isa", LEVELS)
def test_layer_normalization(isa: str) -> None:
    """One session on several shapes."""
    session = cpu_session(LAYER, isa=isa)
    for shape in ((1, 1, 40), (2, 3, 40), (1, 17, 40), (0, 2, 40)):
        feeds = {"x": _x(*shape), "g": _x(40, seed=1), "b": _x(40, seed=2)}
        assert_close(session.run(None, feeds)[0], reference(LAYER, feeds, double=True)[0], 2e-6)


@pytest.mark.parametrize("length", [1, 3, 15, 16, 17, 33, 768, 1024, 1025, 5003])
def test_lengths_around_vectors_and_blocks(length: int) -> None:
    """From one element to rows of several blocks."""
    body = f"""graph(x: float[5, {length}], g: float[{length}]) -> (y: float[5, {length}]) {{
        y = LayerNormalization(x, g) {{epsilon = 1e-2}} }}"""
    feeds = {"x": _x(5, length), "g": _x(length, seed=1)}
    assert_close(run_cpu(body, feeds)[0], reference(body, feeds, double=True)[0], 2e-6)


@pytest.mark.parametrize(
    ("axis", "scale"),
    [
        (-1, "5"),
        (1, "3, 5"),
        (0, "2, 3, 5"),
        (1, "5"),
        (1, "3, 1"),
        (0, "3, 5"),
        (0, "2, 1, 1"),
        (2, "2, 3, 5"),
        (-2, "1"),
    ],
)
def test_axes_and_scales_that_are_broadcast(axis: int, scale: str) -> None:
    """Scale and bias need not have the shape of what is normalized."""
    body = f"""graph(x: float[2, 3, 5], g: float[{scale}], b: float[5]) -> (y: float[2, 3, 5]) {{
        y = LayerNormalization(x, g, b) {{axis = {axis}}} }}"""
    shape = tuple(int(dim) for dim in scale.split(", "))
    feeds = {"x": _x(2, 3, 5), "g": _x(*shape, seed=1), "b": _x(5, seed=2)}
    assert_close(run_cpu(body, feeds)[0], reference(body, feeds, double=True)[0], 3e-6)


def test_statistics_are_given_where_they_are_used() -> None:
    """Both, or only the second."""
    for outputs in ("m, i", "i"):
        kept = ", ".join(f"{name}: float[4, 1]" for name in outputs.split(", "))
        body = f"graph(x: float[4, 37], g: float[37]) -> (y: float[4, 37], {kept}) {{ y, m, i = LayerNormalization(x, g) }}"
        feeds = {"x": _x(4, 37), "g": _x(37, seed=1)}
        for found, exact in zip(run_cpu(body, feeds), reference(body, feeds), strict=True):
            assert_close(found, exact, 1e-6)


def test_elementwise_nodes_join() -> None:
    """Whole tensors, rows and numbers beside are read in the store."""
    body = """graph(x: float[n, s, 24], g: float[24], b: float[24], r: float[n, s, 24], q: float[n, 1, 1]) -> (y: float[n, s, 24]) {
        h = LayerNormalization(x, g, b) a = Add(r, h) c = Mul(a, q) y = Gelu(c) }"""
    assert steps_of(body) == ["LayerNormalization+Add+Mul+Gelu"]
    session = cpu_session(body)
    for n, s in ((1, 1), (2, 5), (3, 4)):
        feeds = {"x": _x(n, s, 24), "g": _x(24, seed=1), "b": _x(24, seed=2), "r": _x(n, s, 24, seed=3), "q": _x(n, 1, 1, seed=4)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 3e-6)


@pytest.mark.parametrize("isa", LEVELS)
def test_root_mean_square(isa: str) -> None:
    """As the models of language use it."""
    body = "graph(x: float[n, 100], g: float[100]) -> (y: float[n, 100]) { y = RMSNormalization(x, g) }"
    session = cpu_session(body, opset=23, isa=isa)
    for n in (1, 4, 7):
        feeds = {"x": _x(n, 100), "g": _x(100, seed=1)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, opset=23, double=True)[0], 1e-6)


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 33, 7, 9), (2, 4, 100, 101), (1, 2, 2, 3, 4)])
def test_instances_in_both_layouts(shape: tuple[int, ...], layout: Layout) -> None:
    """With scale and bias for each channel, and a tail."""
    dims, channels = ", ".join(map(str, shape)), shape[1]
    body = f"""graph(x: float[{dims}], g: float[{channels}], b: float[{channels}]) -> (y: float[{dims}]) {{
        h = InstanceNormalization(x, g, b) y = Relu(h) }}"""
    feeds = {"x": _x(*shape), "g": _x(channels, seed=1), "b": _x(channels, seed=2)}
    assert_close(run_cpu(body, feeds, layout=layout)[0], reference(body, feeds, double=True)[0], 3e-6)


@pytest.mark.parametrize("opset", [18, 21])
def test_groups(opset: int) -> None:
    """Scale and bias are for each group before opset 21, and for each channel since; a factor for each channel joins."""
    count = 3 if opset < 21 else 6
    body = f"""graph(x: float[n, 6, h, 5], g: float[{count}], b: float[{count}], f: float[6, 1, 1]) -> (y: float[n, 6, h, 5]) {{
        z = GroupNormalization(x, g, b) {{num_groups = 3}} y = Mul(z, f) }}"""
    assert steps_of(body, opset=opset) == ["GroupNormalization+Mul"]
    session = cpu_session(body, opset=opset)
    for n, h in ((1, 1), (2, 7), (3, 4)):
        feeds = {"x": _x(n, 6, h, 5), "g": _x(count, seed=1), "b": _x(count, seed=2), "f": _x(6, 1, 1, seed=3)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, opset=opset, double=True)[0], 3e-6)


def test_scales_of_ones_and_biases_of_zeros_are_left_out() -> None:
    """As an exporter writes a group normalization."""
    body = """graph(x: float[2, 2, 9]) -> (y: float[2, 2, 9]) {
        g: float[2] = [1.0, 1.0] b: float[2] = [0.0, 0.0]
        y = InstanceNormalization(x, g, b) }"""
    assert_close(run_cpu(body, {"x": _x(2, 2, 9)})[0], reference(body, {"x": _x(2, 2, 9)}, double=True)[0], 2e-6)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lp_normalization(axis: int, p: int) -> None:
    """Along every axis; 0 stays where the norm is 0."""
    body = f"graph(x: float[a, b, c]) -> (y: float[a, b, c]) {{ y = LpNormalization(x) {{axis = {axis}, p = {p}}} }}"
    session = cpu_session(body, opset=22)
    for shape in ((2, 3, 4), (3, 17, 33), (1, 1, 1)):
        x = _x(*shape)
        x[0] = 0 if shape[0] == 3 else x[0]
        assert_close(session.run(None, {"x": x})[0], reference(body, {"x": x}, opset=22, double=True)[0], 1e-6)


def test_threads_and_batches_do_not_change_bits() -> None:
    """Two threads, or a part of the batch alone, give the same."""
    feeds = {"x": _x(3, 500, 40), "g": _x(40, seed=1), "b": _x(40, seed=2)}
    (whole,) = run_cpu(LAYER, feeds)
    assert_same_bits(run_cpu(LAYER, feeds, threads=2)[0], whole)
    assert_same_bits(run_cpu(LAYER, feeds | {"x": feeds["x"][1:2, 3:6]})[0], whole[1:2, 3:6])


@pytest.mark.parametrize(
    "body",
    [
        "graph(x: float16[2, 3], g: float16[3]) -> (y: float16[2, 3]) { y = LayerNormalization(x, g) }",
        "graph(x: float[2, 3], g: float[3]) -> (y: float[2, 3]) { y = LayerNormalization(x, g) {stash_type = 16} }",
        "graph(x: float[2, n], g: float[m]) -> (y: float[2, n]) { y = LayerNormalization(x, g) }",
        "graph(x: float[2, 4, 5], g: float[n]) -> (y: float[2, 4, 5]) { y = GroupNormalization(x, g, g) {num_groups = 2} }",
        "graph(x: float[2, c, 5], g: float[n], b: float[n]) -> (y: float[2, c, 5]) { y = InstanceNormalization(x, g, b) }",
    ],
)
def test_what_is_declined(body: str) -> None:
    """Other types, and what depends on sizes."""
    assert declined(body)


@pytest.mark.parametrize(
    "node",
    [
        "LayerNormalization(x, g, g)",
        "InstanceNormalization(x, g, g)",
        "GroupNormalization(x, g, g) {num_groups = 2}",
    ],
)
def test_scale_and_bias_may_be_one_tensor(node: str) -> None:
    """As where both begin as the same numbers and are kept once."""
    body = f"graph(x: float[2, 6, 6]) -> (y: float[2, 6, 6]) {{ g: float[6] = [0.5, 2, 3, -1, 0.25, 1.5] y = {node} }}"
    feeds = {"x": _x(2, 6, 6)}
    assert_close(run_cpu(body, feeds)[0], reference(body, feeds, double=True)[0], 2e-6)


@pytest.mark.parametrize("size", [4, 17, 64, 5000])
def test_a_variance_beyond_the_largest_float_gives_zeros(size: int) -> None:
    """As on the reference provider and in onnxruntime: what is divided by an infinite deviation."""
    x = np.random.default_rng(0).standard_normal((2, size)).astype(np.float32)
    x[0, 0] = 1e30
    body = f"graph(x: float[n, {size}]) -> (y) {{\nw: float[{size}] = ... 1\ny = LayerNormalization(x, w)\n}}"
    (found,), (wanted,) = run_cpu(body, {"x": x}), reference(body, {"x": x})
    assert not found[0].any()
    assert not wanted[0].any()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("axis", [-1, 1])
def test_a_normalization_that_is_quantized_is_stored_so(axis: int, kind: str, level: str) -> None:
    """Scale and bias included, without memory for floats."""
    shape = "37" if axis == -1 else "19, 37"
    body = (
        f"graph(x: float[3, 19, 37]) -> (y: {kind}[3, 19, 37]) {{ w: float[{shape}] = ... 1 b: float[{shape}] = ... 2 "
        f"s: float[] = 0.031 z: {kind}[] = 5 f = LayerNormalization(x, w, b) {{axis = {axis}}} y = QuantizeLinear(f, s, z) }}"
    )
    x = np.random.default_rng(0).standard_normal((3, 19, 37)).astype(np.float32) * 3
    assert steps_of(body) == ["LayerNormalization+QuantizeLinear"]
    found, expected = run_cpu(body, {"x": x}, isa=level)[0], reference(body, {"x": x})[0]
    different = found.astype(int) - expected
    assert np.abs(different).max() <= 1
    assert np.count_nonzero(different) <= 3


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(
    "node",
    [
        "LayerNormalization(x, s, s) {axis = 2}",
        "LayerNormalization(x, s) {axis = 1}",
        "RMSNormalization(x, s) {axis = 2}",
        "InstanceNormalization(x, c, c)",
        "GroupNormalization(x, c, c) {num_groups = 2}",
        "LpNormalization(x) {axis = 1}",
        "LpNormalization(x) {axis = 2, p = 1}",
        "BatchNormalization(x, c, c, c, c)",
    ],
)
@pytest.mark.parametrize("length", [1, 3, 8, 17, 5000])
def test_float64(node: str, length: int, isa: str) -> None:
    """Is normalized in float64."""
    scale = ", ".join(["1.5", *["0.25"] * (length - 1)])
    body = f"""graph(x: double[2, 4, {length}]) -> (y) {{
        s: double[{length}] = [{scale}] c: double[4] = [1.0, 2.0, 3.0, 4.0] y = {node} }}"""
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 4, length)) + 3}
    assert_close(run_cpu(body, feeds, opset=23, isa=isa)[0], reference(body, feeds, opset=23)[0], 1e-12)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("p", [1, 2])
def test_short_rows_are_divided_by_their_norms(p: int, kind: str, isa: str) -> None:
    """Of each length around those of vectors, and a row of zeros stays one; what follows is computed in the store."""
    body = f"graph(x: {kind}[n,m]) -> (y: {kind}[n,m]) {{ u = LpNormalization(x) {{p = {p}}} y = Neg(u) }}"
    session = cpu_session(body, isa=isa)
    for columns in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17):
        x = np.random.default_rng(columns).standard_normal((37, columns)).astype("f4" if kind == "float" else "f8")
        x[5] = 0
        assert_close(session.run(None, {"x": x})[0], reference(body, {"x": x})[0], 4e-7)
