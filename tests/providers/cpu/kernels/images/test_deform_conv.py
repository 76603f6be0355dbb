"""DeformConv against the reference provider."""

from typing import Any

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, declined, reference
from support.models import model

from sardonyx import InferenceSession
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes


def _feeds(x: tuple[int, ...], w: tuple[int, ...], places: tuple[int, ...], parts: int) -> dict[str, Array]:
    random, taps, rank = np.random.default_rng(0), int(np.prod(w[2:])), len(w) - 2
    offset = random.normal(0, 2, (x[0], parts * taps * rank, *places))
    shapes = {"x": x, "w": w, "b": w[:1], "m": (x[0], parts * taps, *places)}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()} | {
        "o": offset.astype(np.float32)
    }


def _body(feeds: dict[str, Array], attributes: str, inputs: str = "x, w, o, b, m") -> str:
    names = inputs.replace(" ", "").split(",")
    given = ", ".join(f"{name}: float{list(feeds[name].shape)}" for name in names if name != "_")
    return f"graph({given}) -> (y) {{ y = DeformConv({inputs}) {{{attributes}}} }}"


def _check(feeds: dict[str, Array], body: str, **options: Any) -> Array:
    used = {name: array for name, array in feeds.items() if f"{name}: float" in body}
    found = cpu_session(body, opset=19, **options).run(None, used)[0]
    wanted = reference(body, used, opset=19)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5)
    return np.asarray(found)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(
    ("x", "w", "places", "parts", "attributes"),
    [
        ((2, 3, 7, 9), (5, 3, 3, 2), (5, 8), 1, ""),
        ((1, 4, 9, 9), (6, 4, 3, 3), (5, 5), 2, "pads = [1, 1, 1, 1], strides = [2, 2], offset_group = 2"),
        ((2, 4, 9, 11), (6, 2, 3, 3), (7, 9), 4, "pads = [1, 1, 1, 1], dilations = [2, 2], group = 2, offset_group = 4"),
        ((1, 2, 1, 70), (3, 2, 1, 1), (1, 70), 1, ""),
        ((2, 3, 20), (4, 3, 5), (16,), 1, ""),
        ((1, 2, 4, 5, 6), (3, 2, 2, 2, 2), (3, 4, 5), 1, ""),
    ],
)
def test_every_way(x: tuple[int, ...], w: tuple[int, ...], places: tuple[int, ...], parts: int, attributes: str, isa: str) -> None:
    """Groups of channels and of offsets, with mask and bias and without."""
    feeds = _feeds(x, w, places, parts)
    _check(feeds, _body(feeds, attributes), isa=isa)
    _check(feeds, _body(feeds, attributes, "x, w, o"), isa=isa)
    _check(feeds, _body(feeds, attributes, "x, w, o, _, m"), isa=isa)


@pytest.mark.parametrize("isa", LEVELS)
def test_offsets_that_are_no_numbers(isa: str) -> None:
    """They lie outside, as far ones do; elements that are not finite go to their neighbours alone."""
    feeds = _feeds((1, 2, 6, 6), (3, 2, 2, 2), (5, 5), 1)
    for start, odd in enumerate((np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9)):
        feeds["o"].reshape(-1)[start::17] = odd
    feeds["x"][0, 0, 0, 0], feeds["x"][0, 1, 2, 3] = np.nan, np.inf
    _check(feeds, _body(feeds, ""), isa=isa)


def test_threads_and_batches_do_not_change_bits() -> None:
    """Each image is convolved as it is alone."""
    feeds = _feeds((3, 4, 9, 9), (6, 4, 3, 3), (7, 7), 1)
    body = (
        "graph(x: float[A, 4, 9, 9], w: float[6, 4, 3, 3], o: float[A, 18, 7, 7], b: float[6], m: float[A, 9, 7, 7]) -> (y) "
        "{ y = DeformConv(x, w, o, b, m) }"
    )
    whole, session = cpu_session(body, opset=19, threads=2).run(None, feeds)[0], cpu_session(body, opset=19)
    for image in range(3):
        alone = {name: array[image : image + 1] if name in "xom" else array for name, array in feeds.items()}
        assert_same_bits(session.run(None, alone)[0][0], np.ascontiguousarray(whole[image]))


def test_an_empty_image() -> None:
    """No tap can be taken of it."""
    head = "graph(x: float[1, 1, H], w: float[1, 1, 1], o: float[1, 1, 2]) -> (y: float[1, 1, 2])"
    body = head + " { y = DeformConv(x, w, o) {pads = [1, 1]} }"
    feeds = {"x": np.zeros((1, 1, 0), np.float32), "w": np.ones((1, 1, 1), np.float32), "o": np.zeros((1, 1, 2), np.float32)}
    with pytest.raises(InvalidArgument):
        InferenceSession(to_bytes(model(body, opset=19))).run(None, feeds)


@pytest.mark.parametrize("isa", LEVELS)
def test_float64(isa: str) -> None:
    """Places, products and sums are of float64, too."""
    random = np.random.default_rng(5)
    body = """graph(x: double[1, 4, 9, 11], w: double[6, 2, 3, 3], o: double[1, 36, 7, 9], b: double[6], m: double[1, 18, 7, 9])
        -> (y) { y = DeformConv(x, w, o, b, m) {group = 2, offset_group = 2} }"""
    shapes = {"x": (1, 4, 9, 11), "w": (6, 2, 3, 3), "o": (1, 36, 7, 9), "b": (6,), "m": (1, 18, 7, 9)}
    feeds = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    found = cpu_session(body, opset=19, isa=isa).run(None, feeds)[0]
    np.testing.assert_allclose(found, reference(body, feeds, opset=19)[0], rtol=1e-11, atol=1e-12)


def test_what_is_left_to_others() -> None:
    """Filters of no known shape."""
    open_filters = "graph(x: float[1, 1, 3], w: float[1, 1, K], o: float[1, 1, 3]) -> (y) { y = DeformConv(x, w, o) }"
    assert "filters of a known shape" in declined(open_filters, opset=19)[0]
