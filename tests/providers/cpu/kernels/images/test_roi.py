"""RoiAlign and MaxRoiPool against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument


def _regions(count: int, parts: int) -> Array:
    random = np.random.default_rng(parts)
    found = random.uniform(-5, 30, (count, parts)).astype(np.float32)
    found[:, parts - 2 :] = found[:, parts - 4 : parts - 2] + random.uniform(-3, 25, (count, 2))
    return found


def _image() -> Array:
    found: Array = np.random.default_rng(0).standard_normal((2, 5, 9, 12)).astype(np.float32)
    return found


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
def test_align(mode: str, transformation: str, isa: str) -> None:
    """Regions that leave the image and that have no area; given numbers of samples, where NaN is allowed, and as many as elements."""
    for samples in (0, 1, 3):
        for height, width in ((7, 7), (1, 1), (2, 9)):
            rois = _regions(11, 4)
            if samples:
                rois[3, 1], rois[4, 2] = np.nan, np.inf
            body = f"""graph(x: float[N, C, H, W], r: float[R, 4], i: int64[R]) -> (y) {{
                y = RoiAlign(x, r, i) {{mode = "{mode}", coordinate_transformation_mode = "{transformation}", spatial_scale = 0.5,
                    sampling_ratio = {samples}, output_height = {height}, output_width = {width}}}
            }}"""
            feeds = {"x": _image(), "r": rois, "i": np.arange(11) % 2}
            found = cpu_session(body, opset=22, isa=isa).run(None, feeds)[0]
            np.testing.assert_allclose(found, reference(body, feeds, opset=22)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("isa", LEVELS)
def test_max_pool(isa: str) -> None:
    """Far and inverted regions, and NaN in an image, to the bit."""
    x, rois = _image(), _regions(11, 5)
    x[0, 0, 0, 0] = np.nan
    rois[:, 0] = np.arange(11) % 2
    rois[5, 1], rois[6, 1], rois[7, 3] = 1e30, -1e30, 1e30
    for height, width in ((7, 7), (1, 1), (2, 9)):
        attributes = f"pooled_shape = [{height}, {width}], spatial_scale = 0.5"
        body = f"graph(x: float[N, C, H, W], r: float[R, 5]) -> (y) {{ y = MaxRoiPool(x, r) {{{attributes}}} }}"
        found = cpu_session(body, isa=isa, threads=2).run(None, {"x": x, "r": rois})[0]
        np.testing.assert_array_equal(found, reference(body, {"x": x, "r": rois})[0])


@pytest.mark.parametrize(("roi", "image"), [([0, 0, 1e30, 5], 0), ([0, 0, 5, 5], 2), ([0, 0, 5, 5], -1), ([0, 0, np.nan, 5], 0)])
def test_regions_that_cannot_be(roi: list[float], image: int) -> None:
    """An error that names the region."""
    session = cpu_session("graph(x: float[N, C, H, W], r: float[R, 4], i: int64[R]) -> (y) { y = RoiAlign(x, r, i) }", opset=22)
    feeds = {"x": np.ones((2, 3, 4, 5), np.float32), "r": np.array([[0, 0, 1, 1], roi], np.float32), "i": np.array([0, image])}
    with pytest.raises(InvalidArgument, match="region 1 is of an image that X does not have, or needs too many samples"):
        session.run(None, feeds)


def test_no_regions_and_no_image() -> None:
    """No regions are none; an image without elements has none."""
    session = cpu_session("graph(x: float[N, C, H, W], r: float[R, 4], i: int64[R]) -> (y) { y = RoiAlign(x, r, i) }", opset=22)
    empty = {"x": np.ones((1, 3, 0, 5), np.float32), "r": np.zeros((0, 4), np.float32), "i": np.zeros(0, np.int64)}
    assert session.run(None, empty)[0].shape == (0, 3, 1, 1)
    with pytest.raises(InvalidArgument, match="must have elements"):
        session.run(None, {**empty, "r": np.zeros((1, 4), np.float32), "i": np.zeros(1, np.int64)})


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_align_float64(mode: str, isa: str) -> None:
    """Corners and samples are of float64, too."""
    body = f"""graph(x: double[N, C, H, W], r: double[R, 4], i: int64[R]) -> (y) {{
        y = RoiAlign(x, r, i) {{mode = "{mode}", spatial_scale = 0.5, output_height = 3, output_width = 5}} }}"""
    feeds = {"x": _image().astype(np.float64), "r": _regions(11, 4).astype(np.float64), "i": np.arange(11) % 2}
    found = cpu_session(body, opset=22, isa=isa).run(None, feeds)[0]
    np.testing.assert_allclose(found, reference(body, feeds, opset=22)[0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("isa", LEVELS)
def test_max_pool_float64(isa: str) -> None:
    """To the bit."""
    body = "graph(x: double[N, C, H, W], r: double[R, 5]) -> (y) { y = MaxRoiPool(x, r) {pooled_shape = [3, 4]} }"
    feeds = {"x": _image().astype(np.float64), "r": _regions(11, 5).astype(np.float64)}
    feeds["r"][:, 0] = np.arange(11) % 2
    np.testing.assert_array_equal(cpu_session(body, isa=isa).run(None, feeds)[0], reference(body, feeds)[0])


def test_what_is_left_to_others() -> None:
    """Images of another rank."""
    body = "graph(x: float[N, C, H], r: float[R, 5]) -> (y: float[A, B, 1, 1]) { y = MaxRoiPool(x, r) {pooled_shape = [1, 1]} }"
    assert "images (N, C, H, W) have regions" in declined(body)[0]
