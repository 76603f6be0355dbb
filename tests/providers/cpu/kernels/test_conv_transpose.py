"""ConvTranspose on the CPU provider: every phase of every stride."""

from typing import Any

import pytest
from onnx import helper
from support.channels_last import compare, compiled, model_of, nhwc, random
from support.cpu_run import LEVELS
from support.wide_convolutions import compare_wide

from sardonyx import InferenceSession
from sardonyx.errors import InvalidArgument

_SIZES = [(2, 9, 7), (1, 14, 15), (0, 9, 9), (1, 1, 2)]


def _model(x: list[int | str], w: tuple[int, ...], **attributes: Any) -> bytes:
    M = w[1] * attributes.get("group", 1)
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], **attributes)
    return model_of([node], {"x": x}, {"w": random(*w), "b": random(M, seed=1)})


@pytest.mark.parametrize(
    ("w", "attributes"),
    [
        ((20, 33, 2, 2), {"strides": [2, 2]}),
        ((20, 33, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((20, 33, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        ((20, 33, 3, 3), {"pads": [1, 0, 0, 1]}),
        ((20, 33, 3, 2), {"strides": [3, 4], "pads": [1, 0, 0, 1]}),
        ((20, 33, 3, 3), {"strides": [2, 3], "dilations": [2, 3]}),
        ((20, 33, 3, 4), {"strides": [4, 2], "dilations": [2, 1], "auto_pad": "SAME_UPPER"}),
        ((20, 33, 3, 4), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        ((20, 6, 3, 4), {"strides": [2, 2], "group": 4}),
        ((20, 1, 2, 2), {"strides": [2, 2], "group": 20}),
        ((20, 1, 3, 4), {"strides": [3, 2], "pads": [1, 0, 0, 1], "group": 20}),
        ((20, 1, 5, 5), {"strides": [2, 2], "pads": [2, 2, 2, 2], "output_padding": [1, 1], "group": 20}),
        ((20, 1, 3, 3), {"dilations": [2, 3], "group": 20}),
        ((20, 1, 1, 2), {"strides": [2, 3], "group": 20}),
    ],
)
def test_two_axes(w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """One session serves every batch and image size; places that no tap meets are the bias."""
    feeds = [{"x": random(n, 20, height, width)} for n, height, width in _SIZES]
    compare(_model(["n", 20, "h", "w"], w, **attributes), feeds)


@pytest.mark.parametrize("shape", [[20, 21], [15, 15], [1, 6, 19, 20]])
def test_stated_shapes(shape: list[int]) -> None:
    """A stated output shape cuts off, or adds places."""
    compare(_model([1, 20, 9, 9], (20, 6, 3, 4), strides=[2, 2], output_shape=shape), [{"x": random(1, 20, 9, 9)}])


def test_one_and_three_axes() -> None:
    """Sequences and volumes."""
    compare(_model(["n", 20, "t"], (20, 6, 8), strides=[4], pads=[2, 2]), [{"x": random(1, 20, 9)}])
    compare(_model(["n", 20, "t"], (20, 1, 8), strides=[4], pads=[2, 1], group=20), [{"x": random(2, 20, 9)}])
    volume = _model(["n", 20, "d", "h", "w"], (20, 6, 3, 3, 3), strides=[2, 1, 2], pads=[1, 1, 1, 0, 0, 0])
    compare(volume, [{"x": random(2, 20, 3, 4, 5)}])


def test_what_follows_is_computed_in_the_store() -> None:
    """An activation is applied to every place once."""
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["c"], strides=[2, 2]),
        helper.make_node("Add", ["c", "shift"], ["a"]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    constants = {"w": random(8, 9, 3, 3), "shift": random(9, 1, 1)}
    compare(model_of(nodes, {"x": ["n", 8, "h", "w"]}, constants), [{"x": random(2, 8, 5, 6)}])


def test_a_size_that_cuts_everything_off_is_refused() -> None:
    """The numbers are named."""
    session = compiled(_model(["n", 20, "t"], (20, 6, 2), pads=[3, 3]))
    with pytest.raises(InvalidArgument, match=r"over \[2\] elements makes \[-3\] places"):
        session.run(None, {"x": random(1, 20, 2)})


def test_too_many_phases_are_left_to_the_reference() -> None:
    """Each would be a step of its own."""
    model = _model([1, 2, 3, 3], (2, 2, 9, 9), strides=[9, 9])
    assert "64 phases" in next(iter(InferenceSession(model, providers=[nhwc()]).explain()[0].declined.values()))


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(
    ("w", "attributes"),
    [
        ((20, 33, 2, 2), {"strides": [2, 2]}),
        ((20, 33, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        ((20, 6, 3, 4), {"strides": [2, 2], "group": 4}),
        ((20, 1, 3, 4), {"strides": [3, 2], "pads": [1, 0, 0, 1], "group": 20}),
    ],
)
def test_float64(w: tuple[int, ...], attributes: dict[str, Any], isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are float64, with filters that are constants or computed."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    for computed in (False, True):
        compare_wide("ConvTranspose", (20, 9, 7), w, w[1] * attributes.get("group", 1), computed=computed, **attributes)
