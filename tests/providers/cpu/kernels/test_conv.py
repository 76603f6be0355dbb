"""Conv on the CPU provider: every way to compute it gives what the reference gives, for all sizes."""

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.channels_last import compare, compiled, model_of, nhwc, program_steps, random
from support.cpu_run import LEVELS
from support.wide_convolutions import compare_wide

from sardonyx import InferenceSession
from sardonyx.errors import InvalidArgument


def _model(x: list[int | str], w: tuple[int, ...], *, bias: bool = True, relu: bool = False, **attributes: Any) -> bytes:
    constants = {"w": random(*w), "b": random(w[0], seed=1)}
    last = "c" if relu else "y"
    nodes = [helper.make_node("Conv", ["x", "w", "b"] if bias else ["x", "w"], [last], **attributes)]
    if relu:
        nodes.append(helper.make_node("Relu", ["c"], ["y"]))
    return model_of(nodes, {"x": x}, constants)


_SIZES = [(2, 9, 7), (1, 17, 5), (3, 4, 4), (0, 9, 9)]


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
def test_two_axes(w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """One session serves every batch and image size."""
    feeds = [{"x": random(n, 16, height, width)} for n, height, width in _SIZES]
    compare(_model(["n", 16, "h", "w"], w, **attributes), feeds)


@pytest.mark.parametrize("C", [1, 3, 8])
@pytest.mark.parametrize("attributes", [{"pads": [3, 3, 2, 2], "strides": [2, 2]}, {"auto_pad": "SAME_UPPER", "strides": [2, 3]}])
def test_few_channels(C: int, attributes: dict[str, Any]) -> None:
    """The first layer of a network goes by rows of taps, over an input with a border."""
    feeds = [{"x": random(n, C, height, width)} for n, height, width in _SIZES]
    compare(_model(["n", C, "h", "w"], (24, C, 4, 3), **attributes), feeds)


@pytest.mark.parametrize(
    ("w", "attributes"),
    [
        ((20, 1, 10), {"strides": [5]}),
        ((24, 4, 12), {"pads": [6, 6], "group": 4}),
        ((20, 16, 3), {"pads": [2, 0], "dilations": [2]}),
    ],
)
def test_one_axis(w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """Sequences."""
    C = w[1] * attributes.get("group", 1)
    compare(_model(["n", C, "t"], w, **attributes), [{"x": random(2, C, 41)}, {"x": random(1, C, 13)}])


@pytest.mark.parametrize("C", [2, 12])
def test_three_axes(C: int) -> None:
    """Volumes."""
    model = _model(["n", C, "d", "h", "w"], (18, C, 3, 3, 2), pads=[1, 1, 1, 0, 1, 1], strides=[1, 2, 1])
    compare(model, [{"x": random(2, C, 5, 6, 7)}, {"x": random(1, C, 3, 4, 4)}])


@pytest.mark.parametrize(
    "attributes", [{"pads": [1, 1, 1, 1]}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, {"dilations": [1, 2]}]
)
def test_depthwise(attributes: dict[str, Any]) -> None:
    """Each channel by itself."""
    feeds = [{"x": random(n, 19, height, width)} for n, height, width in _SIZES if width > 4]
    compare(_model(["n", 19, "h", "w"], (19, 1, 3, 3), group=19, **attributes), feeds)


@pytest.mark.parametrize("isa", ["", "avx2", "portable"])
@pytest.mark.parametrize("members", [2, 4, 8, 16, 32])
@pytest.mark.parametrize(
    "attributes", [{"pads": [1, 1, 1, 1]}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, {"dilations": [1, 2]}]
)
def test_groups_of_as_many_channels_in_as_out(
    members: int, attributes: dict[str, Any], isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones lie side by side in vectors, others fill tiles."""
    if isa:
        monkeypatch.setenv("SARDONYX_ISA", isa)
    feeds = [{"x": random(n, 96, height, width)} for n, height, width in _SIZES if width > 4]
    compare(_model(["n", 96, "h", "w"], (96, members, 3, 3), group=96 // members, relu=True, **attributes), feeds)


@pytest.mark.parametrize("isa", ["", "avx2", "portable"])
@pytest.mark.parametrize("w", [(38, 1, 3, 3), (76, 1, 3, 3), (304, 1, 3, 3), (57, 1, 3, 3)])
def test_each_channel_may_make_several(w: tuple[int, ...], isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A multiplier that vectors are cut into, and one that they are not; nothing behind the last channel is read."""
    if isa:
        monkeypatch.setenv("SARDONYX_ISA", isa)
    feeds = [{"x": random(n, 19, height, width)} for n, height, width in _SIZES]
    compare(_model(["n", 19, "h", "w"], w, group=19, pads=[1, 1, 1, 1], relu=True), feeds)


@pytest.mark.parametrize(("w", "group"), [((24, 4, 7), 6), ((24, 2, 41), 12), ((24, 8, 45), 3)])
def test_small_groups_along_one_axis(w: tuple[int, ...], group: int) -> None:
    """Windows short enough by lines, longer ones, and longer sums, by tiles."""
    compare(_model(["n", 24, "t"], w, group=group, pads=[w[-1] // 2] * 2), [{"x": random(2, 24, 61)}, {"x": random(1, 24, 3)}])


def test_depthwise_along_one_axis() -> None:
    """A sequence is an image of one row."""
    model = _model(["n", 20, "t"], (20, 1, 5), group=20, pads=[2, 2], relu=True)
    compare(model, [{"x": random(2, 20, 41)}, {"x": random(1, 20, 3)}])


def test_depthwise_along_three_axes() -> None:
    """Volumes go the general way."""
    model = _model(["n", 6, "d", "h", "w"], (6, 1, 3, 3, 3), group=6, pads=[1] * 6)
    compare(model, [{"x": random(2, 6, 4, 3, 5)}])


@pytest.mark.parametrize(("places", "kernel"), [((1, 1), "gemm_"), ((1, 2), "conv2d_")])
def test_images_of_one_place_are_rows_of_a_product(places: tuple[int, int], kernel: str) -> None:
    """However many channels they have, as where a network weighs its channels; others are not where they have many."""
    model = _model(["n", 400, *places], (24, 400, 1, 1))
    assert any(kernel in step for step in program_steps(model))
    compare(model, [{"x": random(n, 400, *places)} for n in (1, 3, 9)])


def test_without_bias() -> None:
    """The bias may be left out."""
    compare(_model(["n", 16, "h", "w"], (20, 16, 3, 3), bias=False), [{"x": random(1, 16, 6, 6)}])


def test_an_activation_is_computed_in_the_store() -> None:
    """A Relu that follows is no step of its own: no sum is seen without it."""
    compare(_model(["n", 16, "h", "w"], (20, 16, 3, 3), relu=True), [{"x": random(1, 16, 6, 6)}])


def test_a_chain_stays_in_one_layout() -> None:
    """Convolution after convolution, with an activation and a residual between."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "w"], ["d"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["d", "r"], ["a"]),
        helper.make_node("Sigmoid", ["a"], ["y"]),
    ]
    compare(model_of(nodes, {"x": ["n", 8, "h", "w"]}, {"w": random(8, 8, 3, 3) / 10}), [{"x": random(2, 8, 7, 9)}])


@pytest.mark.parametrize("isa", ["portable", "avx2"])
def test_lower_levels(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other instruction sets compute the same."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    compare(_model(["n", 16, "h", "w"], (21, 16, 3, 3), pads=[1, 1, 1, 1]), [{"x": random(2, 16, 5, 6)}])


def test_a_window_that_does_not_fit_is_refused() -> None:
    """The sizes are named when a shape is bound."""
    session = compiled(_model(["n", 16, "h", "w"], (4, 16, 5, 5)))
    with pytest.raises(InvalidArgument, match=r"window of \[5, 5\]"):
        session.run(None, {"x": random(1, 16, 4, 9)})


def test_filters_of_no_known_shape_are_left_to_the_reference() -> None:
    """Kernels are written for so many taps."""
    model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": [1, 2, 5, 5], "w": [3, 2, "k", 3]}, {})
    session = InferenceSession(model, providers=[nhwc()])
    assert "not known before the model runs" in next(iter(session.explain()[0].declined.values()))
    x, w = random(1, 2, 5, 5), random(3, 2, 3, 3)
    assert session.run(None, {"x": x, "w": w})[0].shape == (1, 3, 3, 3)


def test_padding_is_zero_beside_infinities() -> None:
    """What lies in the padding adds nothing, whatever the input holds."""
    x = random(1, 16, 4, 4)
    x[0, 3, 0, 0] = np.inf
    result = compiled(_model(["n", 16, "h", "w"], (5, 16, 3, 3), pads=[1, 1, 1, 1])).run(None, {"x": x})[0]
    assert np.isinf(result[0, :, :2, :2]).all()
    assert np.isfinite(result[0, :, 2:]).all()


@pytest.mark.parametrize(("C", "kernel"), [(64, 3), (700, 1), (2000, 1), (130, 2), (600, 3)])
def test_errors_do_not_grow_with_channels(C: int, kernel: int) -> None:
    """However many products a sum has, and however it is computed, its error is that of some hundred."""
    x, w = np.maximum(random(1, C, 7, 7), 0), random(24, C, kernel, kernel)
    model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": ["n", C, "h", "w"]}, {"w": w})
    found = compiled(model).run(None, {"x": x})[0]
    places = 8 - kernel
    taps = [x[0, :, i : i + places, j : j + places] for i in range(kernel) for j in range(kernel)]
    by_tap = w.reshape(24, C, -1).transpose(2, 0, 1).astype(np.float64)
    exact = sum(np.einsum("mc,chw->mhw", filters, tap) for filters, tap in zip(by_tap, taps, strict=True))
    assert np.sqrt(np.mean(np.square(found[0] - exact)) / np.mean(np.square(exact))) < 2.4e-7


_BRANCHES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "point": ((20, 16, 1, 1), {}),
    "taps": ((20, 16, 5, 3), {"pads": [2, 1, 2, 1]}),
    "minimal": ((40, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
    "narrow": ((2, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
    "depthwise": ((16, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 16}),
    "groups": ((24, 4, 3, 3), {"pads": [1, 1, 1, 1], "group": 4}),
}


@pytest.mark.parametrize("relu", [False, True])
def test_branches_are_made_where_a_concat_joins_them(relu: bool) -> None:
    """Each way to compute a convolution, and pooling, leaves room between its rows for the others; nothing is copied."""
    nodes, constants, parts = [], {}, []
    for name, (w, attributes) in _BRANCHES.items():
        constants |= {f"{name}_w": random(*w), f"{name}_b": random(w[0], seed=1)}
        nodes.append(helper.make_node("Conv", ["x", f"{name}_w", f"{name}_b"], [name], **attributes))
        parts.append(f"{name}_r" if relu else name)
        if relu:
            nodes.append(helper.make_node("Relu", [name], [parts[-1]]))
    nodes.append(helper.make_node("MaxPool", ["x"], ["pool"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    nodes.append(helper.make_node("Concat", [*parts, "pool"], ["y"], axis=1))
    model = model_of(nodes, {"x": ["n", 16, "h", "w"]}, constants)
    compare(model, [{"x": random(n, 16, height, width)} for n, height, width in _SIZES])
    assert not [step for step in program_steps(model) if step.startswith("Concat")]


def test_a_branch_that_something_else_reads_is_copied() -> None:
    """Only the Concat may know that rows lie apart."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Conv", ["x", "v"], ["b"]),
        helper.make_node("GlobalAveragePool", ["b"], ["m"]),
        helper.make_node("Mul", ["a", "m"], ["c"]),
        helper.make_node("Concat", ["b", "c"], ["y"], axis=1),
    ]
    model = model_of(nodes, {"x": ["n", 16, "h", "w"]}, {"w": random(24, 16, 1, 1), "v": random(24, 16, 1, 1, seed=2)})
    compare(model, [{"x": random(n, 16, height, width)} for n, height, width in _SIZES])


@pytest.mark.parametrize("w", [(3, 2, 3, 3), (24, 16, 3, 3), (16, 1, 3, 3), (8, 4, 1, 1)])
@pytest.mark.parametrize("pads", [[1, 1, 1, 1], [3, 3, 3, 3], [2, 0, 2, 0]])
def test_axes_without_elements_have_the_places_of_their_padding(w: tuple[int, ...], pads: list[int]) -> None:
    """Where only the bias is stored."""
    C, groups = (w[1], 1) if w[1] > 1 else (w[0], w[0])
    model = _model(["n", C, "h", "w"], w, group=groups, pads=pads)
    compare(model, [{"x": random(2, C, *size)} for size in ((0, 7), (7, 0), (0, 0))] if pads[1] else [{"x": random(2, C, 0, 7)}])


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(
    ("w", "attributes"),
    [
        ((33, 16, 1, 1), {}),
        ((20, 16, 3, 3), {"pads": [0, 1, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
        ((3, 16, 3, 2), {"auto_pad": "SAME_LOWER"}),
        ((24, 4, 3, 3), {"pads": [1, 1, 1, 1], "group": 4}),
        ((16, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 16}),
    ],
)
def test_float64(w: tuple[int, ...], attributes: dict[str, Any], isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are float64, with filters that are constants or computed."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    for computed in (False, True):
        compare_wide("Conv", (16, 9, 7), w, w[0], computed=computed, **attributes)


def test_float64_along_one_axis_and_three() -> None:
    """Few channels have no border of their own."""
    compare_wide("Conv", (3, 41), (20, 3, 10), 20, strides=[5], pads=[3, 2])
    compare_wide("Conv", (2, 5, 6, 7), (18, 2, 3, 3, 2), 18, pads=[1, 1, 1, 0, 1, 1], strides=[1, 2, 1])
