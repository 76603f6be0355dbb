"""Pools on the CPU provider, in one to three axes."""

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.channels_last import compare, model_of, nhwc, random
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, reference, steps_of
from support.models import model as text_model

from sardonyx import GraphOptimizationLevel, InferenceSession, SessionOptions
from sardonyx.dtypes import Array
from sardonyx.formats.onnx import to_bytes
from sardonyx.provider import Layout

_OPERATORS = ["MaxPool", "AveragePool", "LpPool"]


def _model(op_type: str, x: list[int | str], **attributes: Any) -> bytes:
    return model_of([helper.make_node(op_type, ["x"], ["y"], **attributes)], {"x": x}, {}, opset=22)


@pytest.mark.parametrize("op_type", _OPERATORS)
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1], "dilations": [2, 1], "ceil_mode": 1},
        {"kernel_shape": [3, 4], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ],
)
def test_two_axes(op_type: str, attributes: dict[str, Any]) -> None:
    """One session serves every batch, image size and number of channels."""
    feeds = [{"x": random(*shape)} for shape in [(2, 20, 9, 7), (1, 70, 12, 13), (0, 20, 9, 9), (3, 1, 6, 5)]]
    compare(_model(op_type, ["n", "c", "h", "w"], **attributes), feeds)


@pytest.mark.parametrize("op_type", _OPERATORS)
def test_one_and_three_axes(op_type: str) -> None:
    """Sequences and volumes."""
    compare(_model(op_type, ["n", 20, "t"], kernel_shape=[4], strides=[4]), [{"x": random(2, 20, 99)}])
    volume = _model(op_type, ["n", 20, "d", "h", "w"], kernel_shape=[2, 3, 2], strides=[1, 2, 2], auto_pad="SAME_LOWER")
    compare(volume, [{"x": random(2, 20, 5, 6, 9)}])


@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_padding_may_count(ceil_mode: int) -> None:
    """With count_include_pad the declared padding is part of the mean, what hangs over it is not."""
    model = _model(
        "AveragePool",
        ["n", 20, "h", "w"],
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 2, 2],
        ceil_mode=ceil_mode,
        count_include_pad=1,
    )
    compare(model, [{"x": random(2, 20, 9, 8)}, {"x": random(1, 20, 6, 6)}])


def test_what_hangs_over_the_padding_does_not_count() -> None:
    """The last windows of 8 places, one of padding and strides of 3 have 3 of their 4 taps within them."""
    attributes = {"kernel_shape": [4, 4], "strides": [3, 3], "pads": [0, 0, 1, 1], "ceil_mode": 1, "count_include_pad": 1}
    ones = np.ones((1, 20, 8, 8), np.float32)
    compare(_model("AveragePool", ["n", 20, "h", "w"], **attributes), [{"x": ones}, {"x": random(2, 20, 8, 11)}])


@pytest.mark.parametrize("p", [1, 2])
def test_norms(p: int) -> None:
    """Sums of magnitudes, and roots of sums of squares."""
    compare(_model("LpPool", ["n", 20, "h", "w"], kernel_shape=[2, 2], p=p), [{"x": random(1, 20, 5, 5)}])


def test_other_norms_are_left_to_the_reference() -> None:
    """What is not compiled is said."""
    third = _model("LpPool", [1, 3, 5, 5], kernel_shape=[2, 2], p=3)
    first = InferenceSession(third, providers=[nhwc()]).explain()[0]
    assert "order 3" in next(iter(first.declined.values()))


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("pads", [[1, 1, 1, 1], [2, 2, 2, 2]])
def test_axes_without_elements_have_the_places_of_their_padding(op_type: str, pads: list[int]) -> None:
    """With what a window of no elements gives."""
    model = model_of([helper.make_node(op_type, ["x"], ["y"], kernel_shape=[3, 3], pads=pads)], {"x": ["n", 16, "h", "w"]}, {})
    for size in ((0, 7), (7, 0), (0, 0)):
        found, wanted = (
            InferenceSession(model, providers=[name]).run(None, {"x": random(2, 16, *size)})[0]
            for name in ("CPUExecutionProvider", "ReferenceExecutionProvider")
        )
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
def test_a_window_larger_than_the_image_may_hang_over_its_end(op_type: str) -> None:
    """In ceil mode: it has the elements that there are."""
    attributes = {"kernel_shape": [2, 3], "strides": [2, 3], "ceil_mode": 1}
    model = model_of([helper.make_node(op_type, ["x"], ["y"], **attributes)], {"x": ["n", 16, "h", "w"]}, {}, opset=22)
    compare(model, [{"x": random(2, 16, *size)} for size in ((1, 1), (3, 2), (1, 4))])


def _assert_same_integers(body: str, x: Array, isa: str | None = None, threads: int = 1) -> None:
    """Compare with the reference provider's own kernels."""
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    (expected,) = InferenceSession(to_bytes(text_model(body)), options, providers=["ReferenceExecutionProvider"]).run(
        None, {"x": x}
    )
    (found,) = cpu_session(body, isa=isa, threads=threads, layout=Layout.NHWC).run(None, {"x": x})
    assert_same_bits(found, expected)


def _bytes(kind: str, *shape: int) -> Array:
    return np.random.default_rng(5).integers(0, 256, shape, np.uint8).view(kind)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("channels", [1, 7, 64, 130])
def test_the_greatest_of_integers(kind: str, channels: int, level: str) -> None:
    """Of 8 bits, with padding, which is no element; the least numbers included."""
    body = (
        f"graph(x: {kind}[n, {channels}, h, w]) -> (y: {kind}[n, {channels}, p, q]) {{ "
        "y = MaxPool(x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]} }"
    )
    _assert_same_integers(body, _bytes(kind, 2, channels, 9, 6), level)
    _assert_same_integers(body, np.full((1, channels, 4, 4), np.iinfo(kind).min, kind), level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("attributes", ["", ", count_include_pad = 1", ", ceil_mode = 1"])
def test_means_of_integers(kind: str, attributes: str, level: str) -> None:
    """Of the numbers that they stand for, rounded as onnxruntime rounds them, after the zero point is added."""
    body = (
        f"graph(x: {kind}[2, 33, 9, 8]) -> (y: {kind}[2, 33, p, q]) {{ s: float[] = 0.0713 z: {kind}[] = 11 t: float[] = 0.0611 o: {kind}[] = 7 "
        f"y = com.microsoft.QLinearAveragePool(x, s, z, t, o) {{kernel_shape = [3, 2], pads = [1, 0, 1, 1], strides = [2, 2]{attributes}}} }}"
    )
    _assert_same_integers(body, _bytes(kind, 2, 33, 9, 8), level)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("space", ["h, w", "7, 7", "5", "2, 3, 4"])
def test_means_of_whole_images_of_integers(kind: str, space: str, threads: int) -> None:
    """Sums are exact, and rounded before the zero point is added, whether sizes are known before the run or not."""
    body = (
        f"graph(x: {kind}[2, 40, {space}]) -> (y: {kind}[2, 40, {', '.join('1' for _ in space.split(','))}]) {{ "
        f"s: float[] = 0.07 z: {kind}[] = 11 t: float[] = 0.035 o: {kind}[] = 7 "
        "y = com.microsoft.QLinearGlobalAveragePool(x, s, z, t, o) }"
    )
    shape = [int(size) if size.isdigit() else 6 for size in space.split(", ")]
    _assert_same_integers(body, _bytes(kind, 2, 40, *shape), threads=threads)


def test_channels_may_be_last() -> None:
    """As onnxruntime writes it where it has converted a model."""
    body = (
        "graph(x: uint8[2, 5, 6, 40]) -> (y: uint8[2, 1, 1, 40]) { s: float[] = 0.07 z: uint8[] = 11 t: float[] = 0.035 "
        "y = com.microsoft.QLinearGlobalAveragePool(x, s, z, t, z) {channels_last = 1} }"
    )
    _assert_same_integers(body, _bytes("uint8", 2, 5, 6, 40))


def test_what_follows_a_pool_is_computed_in_its_store() -> None:
    """Such as a quantization of the means."""
    scale = "s: float[] = 0.05 z: uint8[] = 100"
    body = f"graph(x: float[1, 20, 8, 8]) -> (y: uint8[1, 20, 4, 4]) {{ {scale} m = AveragePool(x) {{kernel_shape = [2, 2], strides = [2, 2]}} "
    assert "AveragePool+QuantizeLinear" in steps_of(body + "y = QuantizeLinear(m, s, z) }", layout=Layout.NHWC)


def test_scales_that_are_computed_are_left_to_the_reference() -> None:
    """The reason names the input."""
    body = (
        "graph(x: uint8[1, 4, 5, 5], s: float[]) -> (y: uint8[1, 4, 1, 1]) { z: uint8[] = 3 "
        "y = com.microsoft.QLinearGlobalAveragePool(x, s, z, s, z) }"
    )
    first = InferenceSession(to_bytes(text_model(body)), providers=[nhwc()]).explain()[0]
    assert "input 1 is not one constant number" in next(iter(first.declined.values()))


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ("kernel_shape = [3, 3]", "1,7,9,5"),
        ("kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]", "2,8,6,19"),
        ("kernel_shape = [2, 2], dilations = [2, 3], ceil_mode = 1, strides = [3, 2]", "1,9,9,64"),
        ("kernel_shape = [3]", "2,11,3"),
        ('kernel_shape = [2, 2, 2], auto_pad = "SAME_UPPER"', "1,3,4,5,3"),
    ],
)
def test_pools_that_have_their_channels_last(kind: str, attributes: str, shape: str) -> None:
    """NhwcMaxPool of com.microsoft, as the reference provider computes it, and what follows it in its store."""
    rank = shape.count(",") + 1
    made = ",".join("?" * rank)
    body = f"""graph(x: {kind}[{shape}]) -> (y: {kind}[{made}], w: float[{made}]) {{ s: float[] = 0.1 z: {kind}[] = 3
        y = com.microsoft.NhwcMaxPool(x) {{{attributes}}} a = com.microsoft.NhwcMaxPool(x) {{{attributes}}}
        w = DequantizeLinear(a, s, z) }}"""
    sizes = [int(size) for size in shape.split(",")]
    feeds = {"x": np.random.default_rng(0).integers(0, 256, sizes).astype(np.uint8).view(kind)}
    for threads in (1, 2):
        for found, wanted in zip(cpu_session(body, threads=threads).run(None, feeds), reference(body, feeds), strict=True):
            assert_same_bits(found, wanted)
