"""The layout step."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import graph, model
from support.providers import NhwcProvider
from support.random_transposes import random_model

import sardonyx as ort
import sardonyx.ops.shapes
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import print_graph
from sardonyx.ops.fact import find_shape_function
from sardonyx.partition.layout import lay_out, layout_sensitive_operators, to_first, to_last


def test_permutations_of_the_two_layouts_undo_each_other() -> None:
    """For four dimensions they are the ones of NCHW and NHWC."""
    assert (to_last(4), to_first(4)) == ((0, 2, 3, 1), (0, 3, 1, 2))
    assert tuple(to_last(5)[axis] for axis in to_first(5)) == (0, 1, 2, 3, 4)


def test_a_convolution_is_wrapped_in_transposes() -> None:
    """X -> Conv -> Y becomes X -> Transpose -> nhwc.Conv -> Transpose -> Y, and Y keeps its name."""
    held = graph("""graph(x: float[1, 3, 8, 6]) -> (y: float[1, 4, 8, 6]) {
        w: float[4, 3, 1, 1] = ... 1
        y: float[1, 4, 8, 6] = Conv(x, w)
    }""")
    converted = lay_out(held, list(held))
    assert [f"{node.domain}.{node.op_type}" for node in held] == [".Transpose", "sardonyx.nhwc.Conv", ".Transpose"]
    assert converted[0].output.shape == (1, 8, 6, 4)
    assert held.outputs[0].name == "y"


def test_transposes_between_two_converted_nodes_cancel() -> None:
    """Two convolutions in a row need one transpose at either end."""
    held = graph("""graph(x: float[1, 3, 8, 6]) -> (y: float[1, 4, 8, 6]) {
        w: float[4, 3, 1, 1] = ... 1
        v: float[4, 4, 1, 1] = ... 2
        a: float[1, 4, 8, 6] = Conv(x, w)
        y: float[1, 4, 8, 6] = Conv(a, v)
    }""")
    lay_out(held, list(held))
    assert [node.op_type for node in held] == ["Transpose", "Conv", "Conv", "Transpose"]


def test_a_value_that_others_read_too_keeps_its_transpose() -> None:
    """Cancelling for one reader leaves the other's transpose."""
    held = graph("""graph(x: float[1, 3, 8, 6]) -> (y: float[1, 4, 8, 6], a: float[1, 4, 8, 6]) {
        w: float[4, 3, 1, 1] = ... 1
        v: float[4, 4, 1, 1] = ... 2
        a: float[1, 4, 8, 6] = Conv(x, w)
        y: float[1, 4, 8, 6] = Conv(a, v)
    }""")
    lay_out(held, list(held))
    assert [node.op_type for node in held] == ["Transpose", "Conv", "Transpose", "Conv", "Transpose"]
    assert [value.name for value in held.outputs] == ["y", "a"]


def test_a_node_of_unknown_rank_stays() -> None:
    """Without a rank there is no permutation to write down."""
    held = graph("""graph(x: float[1, 3, 8, 6]) -> (y: float) {
        a = Mystery(x)
        y = Relu(a)
        g = GlobalAveragePool(a)
    }""")
    before = print_graph(held)
    assert lay_out(held, list(held)) == []
    assert print_graph(held) == before


def test_a_matrix_stays() -> None:
    """Its channels are last already."""
    held = graph("""graph(x: float[4, 3]) -> (y: float[4, 3]) {
        k: float[3] = [1, 2, 3]
        y = BatchNormalization(x, k, k, k, k)
    }""")
    assert lay_out(held, list(held)) == []


def test_max_pool_with_indices_stays() -> None:
    """Indices count in NCHW order, so a pool whose indices are read is not converted."""
    held = graph("""graph(x: float[1, 3, 8, 6]) -> (y: float[1, 3, 7, 5], i: int64[1, 3, 7, 5]) {
        y, i = MaxPool(x) {kernel_shape = [2, 2]}
    }""")
    assert lay_out(held, list(held)) == []


def test_the_operators_are_those_of_the_standard_and_some_more() -> None:
    """The 17 of ONNX whose data has channels at a fixed place, Resize and GroupNormalization, and five of com.microsoft."""
    standard = """AveragePool BatchNormalization Conv ConvInteger ConvTranspose DepthToSpace GlobalAveragePool GlobalLpPool
        GlobalMaxPool GridSample InstanceNormalization LRN LpPool MaxPool MaxUnpool QLinearConv SpaceToDepth"""
    assert set(layout_sensitive_operators()) == {*standard.split(), "Resize", "GroupNormalization"}
    microsoft = {"FusedConv", "GridSample", "QLinearAveragePool", "QLinearConv", "QLinearGlobalAveragePool"}
    assert set(layout_sensitive_operators("com.microsoft")) == microsoft


def test_a_filter_tells_the_rank() -> None:
    """Where the data's is not known."""
    held = graph("""graph(x: float) -> (y: float) {
        w: float[4, 3, 1, 1] = ... 1
        y: float = Conv(x, w)
    }""")
    (converted,) = lay_out(held, list(held))
    assert [node.get("perm") for node in held if node.op_type == "Transpose"] == [(0, 2, 3, 1), (0, 3, 1, 2)]
    assert converted.domain == "sardonyx.nhwc"


def test_resize_has_its_sizes_reordered() -> None:
    """One for each dimension; where they are computed it stays."""
    held = graph("""graph(x: float[1, 3, 8, 6], v: int64[4]) -> (y: float[1, 3, 16, 6], z: float) {
        s: float[4] = [1, 1, 2, 1]
        y: float[1, 3, 16, 6] = Resize(x, _, s)
        z: float = Resize(x, _, _, v)
    }""")
    (converted,) = lay_out(held, list(held))
    assert converted.inputs[2] is not None
    assert converted.inputs[2].constant is not None
    assert converted.inputs[2].constant.numpy().tolist() == [1, 2, 1, 1]
    assert converted.output.shape == (1, 16, 6, 3)


@pytest.mark.parametrize("numbers", ["_, s", "_, _, z"])
def test_a_resize_in_nhwc_changes_its_domain_alone(numbers: str) -> None:
    """As one is that an optimizer has moved between transposes: dimension 1 changes its size, the last one keeps it."""
    held = graph(f"""graph(x: float[1, 8, 6, 3]) -> (y: float[1, 16, 12, 3]) {{
        s: float[4] = [1, 2, 2, 1] z: int64[4] = [1, 16, 12, 3]
        y: float[1, 16, 12, 3] = Resize(x, {numbers}) }}""")
    (node,) = lay_out(held, list(held))
    assert [f"{item.domain}.{item.op_type}" for item in held] == ["sardonyx.nhwc.Resize"]
    given = node.inputs[-1]
    assert given is not None
    assert given.name in ("s", "z")


def test_the_tensor_that_a_fused_convolution_adds_is_converted_too() -> None:
    """Its fourth input has the layout of its result."""
    held = graph("""graph(x: float[1, 3, 8, 6], z: float[1, 4, 8, 6]) -> (y: float[1, 4, 8, 6]) {
        w: float[4, 3, 1, 1] = ... 1
        b: float[4] = [1, 2, 3, 4]
        y: float[1, 4, 8, 6] = com.microsoft.FusedConv(x, w, b, z)
    }""")
    lay_out(held, list(held))
    assert [node.op_type for node in held] == ["Transpose", "Transpose", "FusedConv", "Transpose"]


def test_what_is_channels_last_already_changes_its_domain_alone() -> None:
    """A pool of com.microsoft that says so needs no transposes."""
    held = graph("""graph(x: uint8[1, 8, 6, 3]) -> (y: uint8[1, 1, 1, 3]) {
        s: float[] = 1.0
        z: uint8[] = 0
        y: uint8[1, 1, 1, 3] = com.microsoft.QLinearGlobalAveragePool(x, s, z, s, z) {channels_last = 1}
    }""")
    (converted,) = lay_out(held, list(held))
    assert len(held) == 1
    assert converted.domain == "sardonyx.nhwc"


def test_shapes_of_converted_nodes_can_be_inferred_anew() -> None:
    """Each operator of the standard has a shape function in the layout's domain."""
    for name in layout_sensitive_operators():
        assert find_shape_function("sardonyx.nhwc", name, 21) is not None, name


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_compute_the_same_bits(seed: int) -> None:
    """A provider that prefers NHWC and claims some of the operators: conversion, pushing and the second query change no bit."""
    generator = np.random.default_rng(seed)
    single = """Add Sub Max Min Neg Abs Floor Concat ReduceMax ReduceSum Pad Slice Reshape Clip Squeeze Unsqueeze Gather Where
        Resize QuantizeLinear DequantizeLinear""".split()
    claimed = [name for name in single if generator.random() < 0.7]
    provider = NhwcProvider(*claimed, "DepthToSpace", "SpaceToDepth", "GlobalMaxPool")
    text, options = to_bytes(random_model(seed, images=True)), ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    held = ort.InferenceSession(text, options, providers=[provider])
    plain = ort.InferenceSession(text, options, providers=["ReferenceExecutionProvider"])
    feeds = {arg.name: generator.integers(-4, 5, arg.shape).astype(np.float32) for arg in plain.get_inputs()}
    for ours, theirs in zip(held.run(None, feeds), plain.run(None, feeds), strict=True):
        assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())


def test_a_body_leaves_the_transposes_around_it_alone() -> None:
    """What they read is an inner value of a partition of the outer graph, which does not give it out."""
    text = """graph(x: float[2, 4, 6, 4], c: bool[]) -> (y: float[2, 4, 6, 4]) {
        w: float[4, 4, 1, 1] = ... 1
        a: float[2, 4, 6, 4] = Conv(x, w)
        b: float[2, 6, 4, 4] = Transpose(a) {perm = [0, 2, 3, 1]}
        d: float[2, 4, 6, 4] = Transpose(b) {perm = [0, 3, 1, 2]}
        y: float[2, 4, 6, 4] = If(c) {
            then_branch = graph () -> (t: float[2, 4, 6, 4]) { p: float[2, 4, 6, 4] = Conv(d, w) t: float[2, 4, 6, 4] = Relu(p) },
            else_branch = graph () -> (e: float[2, 4, 6, 4]) { e: float[2, 4, 6, 4] = Relu(a) }
        }
    }"""
    options, held = ort.SessionOptions(), to_bytes(model(text))
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(held, options, providers=[NhwcProvider()])
    plain = ort.InferenceSession(held, options, providers=["ReferenceExecutionProvider"])
    for condition in (True, False):
        feeds = {"x": np.random.default_rng(0).standard_normal((2, 4, 6, 4)).astype(np.float32), "c": np.array(condition)}
        np.testing.assert_array_equal(session.run(None, feeds)[0], plain.run(None, feeds)[0])


CASES = {
    "AveragePool": "AveragePool(x) {kernel_shape = [2, 2]}",
    "BatchNormalization": "BatchNormalization(x, c, c, c, d)",
    "Conv": "Conv(x, w, d) {pads = [1, 0, 1, 1], strides = [2, 1]}",
    "ConvInteger": "ConvInteger(u, p)",
    "ConvTranspose": "ConvTranspose(x, w, e) {strides = [2, 2], group = 2}",
    "DepthToSpace": 'DepthToSpace(x) {blocksize = 2, mode = "CRD"}',
    "GlobalAveragePool": "GlobalAveragePool(x)",
    "GlobalLpPool": "GlobalLpPool(x) {p = 1}",
    "GlobalMaxPool": "GlobalMaxPool(x)",
    "GridSample": "GridSample(x, grid)",
    "GroupNormalization": "GroupNormalization(x, c, d) {num_groups = 2}",
    "InstanceNormalization": "InstanceNormalization(x, c, d)",
    "LRN": "LRN(x) {size = 3}",
    "LpPool": "LpPool(x) {kernel_shape = [2, 2], p = 1}",
    "MaxPool": "MaxPool(x) {kernel_shape = [3, 2], dilations = [1, 2]}",
    "MaxUnpool": "MaxUnpool(small, places) {kernel_shape = [2, 2], strides = [2, 2]}",
    "QLinearConv": "QLinearConv(u, s, z, p, s, z, s, z)",
    "Resize": 'Resize(x, _, scales) {mode = "linear"}',
    "SpaceToDepth": "SpaceToDepth(x) {blocksize = 2}",
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_operator_means_the_same_in_nhwc(name: str) -> None:
    """Converted, with transposes around it, it computes the same bits, with all inputs that it may have."""
    text = f"""graph(x: float[2, 4, 6, 4], u: uint8[2, 4, 6, 4], grid: float[2, 3, 5, 2], small: float[2, 4, 3, 2]) -> (y) {{
        w: float[4, 2, 3, 2] = ... 1 c: float[4] = [1, 2, 3, 4] d: float[4] = [4, 3, 2, 1] e: float[4] = [1, 1, 2, 2]
        p: uint8[3, 4, 2, 2] = [{", ".join(str(k % 5) for k in range(48))}] s: float[] = 0.5 z: uint8[] = 3
        scales: float[4] = [1, 1, 2, 1.5]
        places: int64[2, 4, 3, 2] = [{", ".join(str(24 * (k // 6) + 8 * (k % 6 // 2) + 2 * (k % 2)) for k in range(48))}]
        y = {CASES[name].replace("Conv(x, w, d) {", "Conv(x, w, d) {group = 2, ")} }}"""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    held, provider = to_bytes(model(text)), NhwcProvider(name)
    generator = np.random.default_rng(0)
    session = ort.InferenceSession(held, options, providers=[provider])
    assert [node.domain for part in provider.compiled for node in part.nodes if node.op_type == name] == ["sardonyx.nhwc"]
    feeds = {
        "x": generator.integers(-4, 5, (2, 4, 6, 4)).astype(np.float32),
        "u": generator.integers(0, 9, (2, 4, 6, 4)).astype(np.uint8),
        "grid": generator.uniform(-1, 1, (2, 3, 5, 2)).astype(np.float32),
        "small": generator.integers(-4, 5, (2, 4, 3, 2)).astype(np.float32),
    }
    expected = ort.InferenceSession(held, options, providers=["ReferenceExecutionProvider"]).run(None, feeds)[0]
    found = session.run(None, feeds)[0]
    assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def test_there_is_a_case_for_every_operator() -> None:
    """Of the standard."""
    assert set(CASES) == set(layout_sensitive_operators())
