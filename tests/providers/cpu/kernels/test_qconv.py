"""QLinearConv and ConvInteger on the CPU provider: the integers that the reference gives, for all sizes, zero points and scales."""

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.cpu_run import TILES
from support.quantized import equal, quantized_model, random_bytes, session_of

from sardonyx import InferenceSession
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.cpu.provider import CpuProvider

_INPUTS = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
_SIZES = [(2, 9, 7), (1, 17, 5), (3, 4, 4), (0, 9, 9)]


def _constants(w: Array, x: Any = np.uint8, y: Any = np.uint8, *, zero: int = 7, w_zero: int = 0) -> dict[str, Any]:
    M = len(w)
    scales = np.random.default_rng(1).random(M).astype(np.float32)
    return {
        "xs": np.float32(0.02),
        "xz": x(zero),
        "w": w,
        "ws": scales / np.float32(np.sqrt(w[0].size)),
        "wz": w.dtype.type(w_zero),
        "ys": np.float32(0.7),
        "yz": y(5),
        "b": np.random.default_rng(2).integers(-9999, 9999, M, np.int32),
    }


def _model(shape: list[int | str], constants: dict[str, Any], **attributes: Any) -> bytes:
    node = helper.make_node("QLinearConv", [*_INPUTS, *(["b"] if "b" in constants else [])], ["y"], **attributes)
    return quantized_model([node], {"x": (constants["xz"].dtype, shape)}, constants, constants["yz"].dtype)


def _feeds(C: int, x: Any = np.uint8) -> list[dict[str, Array]]:
    return [{"x": random_bytes(x, n, C, height, width)} for n, height, width in _SIZES]


@pytest.mark.parametrize(
    ("w", "attributes"),
    [
        ((33, 16, 1, 1), {}),
        ((33, 16, 1, 1), {"strides": [2, 2]}),
        ((20, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((20, 16, 3, 3), {"pads": [0, 1, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
        ((20, 16, 2, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ((20, 16, 3, 2), {"auto_pad": "SAME_LOWER"}),
        ((20, 16, 3, 3), {"auto_pad": "VALID"}),
        ((24, 4, 3, 3), {"pads": [1, 1, 1, 1], "group": 4}),
        ((24, 8, 1, 1), {"group": 2}),
        ((16, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 16}),
        ((32, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 16}),
    ],
)
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_two_axes(w: tuple[int, ...], attributes: dict[str, Any], kind: Any) -> None:
    """One session serves every batch and image size."""
    constants = _constants(random_bytes(np.int8, *w), kind, kind)
    equal(_model(["n", 16, "h", "w"], constants, **attributes), _feeds(16, kind))


@pytest.mark.parametrize(
    ("w", "attributes"),
    [
        ((33, 16, 1, 1), {}),
        ((70, 80, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
        ((20, 3, 5, 5), {"pads": [2, 2, 2, 2]}),
        ((24, 4, 3, 2), {"group": 4, "dilations": [1, 2]}),
        ((40, 1, 3, 3), {"group": 20}),
    ],
)
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_matrix_tiles(w: tuple[int, ...], attributes: dict[str, Any], kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a processor with AMX, emulated, between unmapped pages: the same integers, with one thread and with two."""
    monkeypatch.setenv("SARDONYX_GUARD", "1")
    C = w[1] * attributes.get("group", 1)
    constants = _constants(random_bytes(np.int8, *w), kind, kind, w_zero=3)
    content = _model(["n", C, "h", "w"], constants, **attributes)
    feeds = [{"x": random_bytes(kind, n, C, height, width)} for n, height, width in ((1, 9, 7), (2, 5, 5))]
    expected = [InferenceSession(content, providers=["ReferenceExecutionProvider"]).run(None, feed)[0] for feed in feeds]
    for threads in (1, 2):
        session = InferenceSession(content, providers=[CpuProvider(TILES, threads)])
        assert {place.precision for place in session.explain()} >= {"8-bit integers, sums in int32"}
        for feed, wanted in zip(feeds, expected, strict=True):
            np.testing.assert_array_equal(session.run(None, feed)[0], wanted)


@pytest.mark.parametrize("C", [1, 3, 8])
@pytest.mark.parametrize("attributes", [{"pads": [3, 3, 2, 2], "strides": [2, 2]}, {"auto_pad": "SAME_UPPER", "strides": [2, 3]}])
def test_few_channels(C: int, attributes: dict[str, Any]) -> None:
    """The first layer of a network goes by rows of taps, over an input with a border of zero points."""
    equal(_model(["n", C, "h", "w"], _constants(random_bytes(np.int8, 24, C, 4, 3), zero=131), **attributes), _feeds(C))


@pytest.mark.parametrize("C", [2, 12])
def test_three_axes(C: int) -> None:
    """Volumes."""
    model = _model(["n", C, "d", "h", "w"], _constants(random_bytes(np.int8, 18, C, 3, 3, 2)), pads=[1, 1, 1, 0, 1, 1])
    equal(model, [{"x": random_bytes(np.uint8, 2, C, 5, 6, 7)}, {"x": random_bytes(np.uint8, 1, C, 3, 4, 4)}])


@pytest.mark.parametrize(
    ("w", "group"),
    [((16, 1, 3, 3, 2), 16), ((40, 1, 3, 3), 20), ((12, 1, 3, 2), 3), ((32, 2, 3, 3), 32), ((30, 3, 3, 1), 10), ((35, 2, 1, 1), 5)],
)
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_groups_of_few_channels(w: tuple[int, ...], group: int, kind: Any) -> None:
    """Groups that are computed together, with a zero point for each filter."""
    constants, C = _constants(random_bytes(np.int8, *w), kind, kind, zero=99), w[1] * group
    constants["wz"] = random_bytes(np.int8, w[0], seed=3)
    spatial = ["d", "h", "w"][5 - len(w) :]
    model = _model(["n", C, *spatial], constants, group=group, pads=[1, *[0] * (len(w) - 3)] * 2)
    equal(model, [{"x": random_bytes(kind, n, C, *(5, 7, 4)[: len(w) - 2])} for n in (1, 2)])


@pytest.mark.parametrize(("w", "group"), [((20, 16, 3), 1), ((24, 4, 5), 4), ((20, 1, 9), 20)])
def test_one_axis(w: tuple[int, ...], group: int) -> None:
    """Sequences."""
    C = w[1] * group
    model = _model(["n", C, "t"], _constants(random_bytes(np.int8, *w)), group=group, pads=[2, 1])
    equal(model, [{"x": random_bytes(np.uint8, 2, C, 41)}, {"x": random_bytes(np.uint8, 1, C, 13)}])


@pytest.mark.parametrize("w", [np.uint8, np.int8])
@pytest.mark.parametrize("x", [np.uint8, np.int8])
@pytest.mark.parametrize("zero", [0, 100])
def test_zero_points(x: Any, w: Any, zero: int) -> None:
    """Of the input and the filters, one for all or one for each output channel, of either sign."""
    constants = _constants(random_bytes(w, 20, 16, 3, 3), x, np.int8, zero=zero, w_zero=zero)
    equal(_model(["n", 16, "h", "w"], constants, pads=[1, 1, 1, 1]), _feeds(16, x))
    constants["wz"] = random_bytes(w, 20, seed=3)
    equal(_model(["n", 16, "h", "w"], constants, pads=[1, 1, 1, 1]), _feeds(16, x))


@pytest.mark.parametrize(
    "changes",
    [
        {"ws": np.float32(0.03)},
        {"ws": np.array([0.03], np.float32), "xs": np.array([0.3], np.float32), "ys": np.array([2], np.float32)},
        {"b": None},
        {"ys": np.float32(0)},
        {"ys": np.float32(np.inf)},
        {"ys": np.float32(np.nan)},
        {"ys": np.float32(1e-42)},
        {"xs": np.float32(np.inf)},
        {"xs": np.float32(1e-42)},
        {"ws": np.float32(-0.01)},
        {"b": np.full(20, -(2**31), np.int32)},
    ],
)
def test_scales_of_any_kind(changes: dict[str, Any]) -> None:
    """One scale or one for each channel, also such as no quantizer writes: NaN becomes the least number."""
    constants = _constants(random_bytes(np.int8, 20, 16, 3, 3)) | changes
    constants = {name: array for name, array in constants.items() if array is not None}
    equal(_model(["n", 16, "h", "w"], constants), _feeds(16)[:2])


def test_ties_are_rounded_to_even() -> None:
    """Halves go to the even neighbour before the zero point is added."""
    constants = {
        "xs": np.float32(0.5),
        "xz": np.uint8(128),
        "w": np.ones((1, 1, 1, 1), np.int8),
        "ws": np.float32(1),
        "wz": np.int8(0),
        "ys": np.float32(1),
        "yz": np.uint8(3),
    }
    x = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    (found,) = equal(_model(["n", 1, "h", "w"], constants), [{"x": x}])
    expected = np.clip(np.rint((x.astype(np.int32) - 128) * 0.5) + 3, 0, 255)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("x", [np.uint8, np.int8])
def test_onnxruntime_gives_the_same(x: Any) -> None:
    """ONNX Runtime's kernel gives the same integers with filters of 7 bits; with 8, its sums of two saturate without VNNI."""
    constants = _constants(random_bytes(np.int8, 40, 16, 3, 3) // 2, x, x)
    model, feed = _model(["n", 16, "h", "w"], constants, pads=[1, 1, 1, 1]), _feeds(16, x)[0]
    onnxruntime = pytest.importorskip("onnxruntime")
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feed)[0]
    np.testing.assert_array_equal(session_of(model).run(None, feed)[0], theirs)


@pytest.mark.parametrize("last", [0, 1])
def test_the_operator_of_onnxruntime(last: int) -> None:
    """QLinearConv of com.microsoft may have its channels last."""
    constants = _constants(random_bytes(np.int8, 20, 16, 3, 3))
    attributes = {"pads": [1, 1, 1, 1], "strides": [2, 1], "channels_last": last}
    node = helper.make_node("QLinearConv", [*_INPUTS, "b"], ["y"], domain="com.microsoft", **attributes)
    shape = ["n", "h", "w", 16] if last else ["n", 16, "h", "w"]
    feeds = [{"x": random_bytes(np.uint8, 2, *((9, 7, 16) if last else (16, 9, 7)))}]
    equal(quantized_model([node], {"x": (np.uint8, shape)}, constants, np.uint8), feeds)


def _quantized_residual() -> list[Any]:
    return [
        helper.make_node("QLinearConv", _INPUTS, ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("DequantizeLinear", ["c", "ys", "yz"], ["d"]),
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["r"]),
        helper.make_node("Add", ["d", "r"], ["a"]),
        helper.make_node("HardSwish", ["a"], ["h"]),
        helper.make_node("QuantizeLinear", ["h", "rs", "yz"], ["y"]),
    ]


def test_a_residual_is_added_in_the_store() -> None:
    """Dequantized sums, a residual of 8 bits, an activation and the quantization of the result are one epilogue."""
    constants = _constants(random_bytes(np.int8, 16, 16, 3, 3)) | {"rs": np.float32(0.9)}
    del constants["b"]
    model = quantized_model(_quantized_residual(), {"x": (np.uint8, ["n", 16, "h", "w"])}, constants, np.uint8)
    equal(model, _feeds(16))


@pytest.mark.parametrize("zeros", [["xz"], ["xz", "wz"], []])
@pytest.mark.parametrize("x", [np.uint8, np.int8])
def test_conv_integer(x: Any, zeros: list[str]) -> None:
    """The sums themselves, with zero points that may be left out."""
    constants = {"w": random_bytes(np.uint8, 20, 16, 3, 3), "xz": x(100), "wz": np.uint8(130)}
    node = helper.make_node("ConvInteger", ["x", "w", *zeros], ["y"], pads=[1, 1, 1, 1])
    equal(quantized_model([node], {"x": (x, ["n", 16, "h", "w"])}, constants, np.int32), _feeds(16, x))


@pytest.mark.parametrize("C", [3, 16])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_zero_point_that_the_run_shows(C: int, shape: tuple[int, ...]) -> None:
    """The zero point of dynamically quantized data is computed in the run; scales are applied in the store."""
    nodes = [
        helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Cast", ["c"], ["f"], to=1),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    constants = {"w": random_bytes(np.uint8, 20, C, 3, 3), "wz": np.uint8(130)}
    inputs = {"x": (np.uint8, ["n", C, "h", "w"]), "xz": (np.uint8, shape), "s": (np.float32, shape)}
    feeds = [
        {**feed, "xz": np.full(shape, zero, np.uint8), "s": np.full(shape, 0.3, np.float32)}
        for feed in _feeds(C)
        for zero in (0, 77)
    ]
    equal(quantized_model(nodes, inputs, constants, np.float32), feeds)


@pytest.mark.parametrize("computed", [["xs"], ["ws"], ["ys", "yz"], ["xs", "xz", "ws", "ys", "yz"]])
@pytest.mark.parametrize("w", [(20, 16, 3, 3), (33, 16, 1, 1), (16, 1, 3, 3), (20, 3, 3, 3)])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_scales_that_the_run_shows(w: tuple[int, ...], computed: list[str], kind: Any) -> None:
    """Scales and zero points of x, w and y may be fed, of one element in any number of dimensions."""
    C = w[1] if w[1] > 1 else w[0]
    constants = _constants(random_bytes(np.int8, *w), kind, kind)
    fed = {name: np.asarray(constants.pop(name)) for name in computed}
    fed = {name: array if array.ndim or name == "xs" else array.reshape(1) for name, array in fed.items()}
    node = helper.make_node("QLinearConv", [*_INPUTS, "b"], ["y"], pads=[1, 1, 1, 1], group=C // w[1])
    inputs = {"x": (kind, ["n", C, "h", "w"]), **{name: (array.dtype.type, array.shape) for name, array in fed.items()}}
    model = quantized_model([node], inputs, constants, kind)
    equal(model, [{**feed, **fed} for feed in _feeds(C, kind)])


_COMPUTED = [
    ((33, 16, 1, 1), {}),
    ((70, 6, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((20, 3, 5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 2]}),
    ((20, 16, 3, 2), {"dilations": [1, 2]}),
    ((24, 4, 3, 3), {"group": 4}),
    ((40, 1, 3, 3), {"group": 20, "pads": [1, 0, 1, 0]}),
    ((33, 1, 3, 5), {"group": 33, "pads": [1, 2, 1, 2]}),
]


@pytest.mark.parametrize(("w", "attributes"), _COMPUTED)
@pytest.mark.parametrize("x", [np.uint8, np.int8])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_filters_that_the_run_makes(w: tuple[int, ...], attributes: dict[str, Any], x: Any, kind: Any) -> None:
    """Packed in each run, of either sign, with zero points that are constants or fed, and one for each filter."""
    C = w[1] * attributes.get("group", 1)
    constants = _constants(random_bytes(kind, *w), x, x, zero=9, w_zero=3)
    constants["wz"] = random_bytes(kind, w[0], seed=3)
    fed = {name: np.asarray(constants.pop(name)) for name in ("w", "xz")}
    node = helper.make_node("QLinearConv", [*_INPUTS, "b"], ["y"], **attributes)
    inputs = {"x": (x, ["n", C, "h", "w_"]), **{name: (array.dtype.type, array.shape) for name, array in fed.items()}}
    other = {"w": random_bytes(kind, *w, seed=5), "xz": x(0)}
    equal(quantized_model([node], inputs, constants, x), [{**feed, **made} for feed in _feeds(C, x) for made in (fed, other)])
    for zeros in ([], ["z"]):
        plain = helper.make_node("ConvInteger", ["x", "w", *zeros], ["y"], **attributes)
        numbers = dict.fromkeys(zeros, x(7))
        model = quantized_model([plain], {name: inputs[name] for name in ("x", "w")}, numbers, np.int32)
        equal(model, [{**feed, "w": fed["w"]} for feed in _feeds(C, x)])


@pytest.mark.parametrize(("w", "attributes"), _COMPUTED[1:6:2])
def test_filters_that_the_run_makes_in_matrix_tiles(
    w: tuple[int, ...], attributes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a processor with AMX, emulated, between unmapped pages."""
    monkeypatch.setenv("SARDONYX_GUARD", "1")
    C, constants = w[1] * attributes.get("group", 1), _constants(random_bytes(np.int8, *w), w_zero=3)
    feeds = [{"x": random_bytes(np.uint8, 1, C, 9, 7), "w": constants.pop("w")}]
    node = helper.make_node("QLinearConv", [*_INPUTS, "b"], ["y"], **attributes)
    content = quantized_model([node], {"x": (np.uint8, ["n", C, "h", "w_"]), "w": (np.int8, w)}, constants, np.uint8)
    (wanted,) = InferenceSession(content, providers=["ReferenceExecutionProvider"]).run(None, feeds[0])
    for threads in (1, 2):
        session = InferenceSession(content, providers=[CpuProvider(TILES, threads)])
        assert {place.precision for place in session.explain()} >= {"8-bit integers, sums in int32"}
        np.testing.assert_array_equal(session.run(None, feeds[0])[0], wanted)


@pytest.mark.parametrize("shape", [(2, 3), (3,)])
def test_scales_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    """Neither one scale nor one for each channel: the message says what was expected."""
    constants = _constants(random_bytes(np.int8, 20, 16, 3, 3)) | {"ws": np.ones(shape, np.float32)}
    model = _model(["n", 16, "h", "w"], constants)
    with pytest.raises(InvalidArgument, match="_scale has shape"):
        InferenceSession(model).run(None, _feeds(16)[0])


@pytest.mark.parametrize("isa", ["portable", "avx2"])
def test_other_levels(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every level gives the same integers."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    constants = _constants(random_bytes(np.int8, 37, 10, 3, 3), w_zero=3)
    equal(_model(["n", 10, "h", "w"], constants, pads=[1, 1, 1, 1]), _feeds(10))
