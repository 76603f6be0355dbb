"""Pooling of regions: means of samples, greatest elements, regions that cannot be."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.images.roi import write_max_roi_pool, write_roi_align
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

LARGE = 1 << 40


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Means with shifted centres, and both kinds of maxima."""
    module = Module(target)
    write_roi_align(module, "mean", shifted=True, takes_max=False)
    write_roi_align(module, "max", shifted=False, takes_max=True)
    write_max_roi_pool(module, "pool")
    engine = Engine(target)
    engine.add(module)
    return engine


def _align(
    engine: Engine, name: str, x: Array, roi: list[float], image: int = 0, samples: int = 0, most: int = LARGE
) -> tuple[Array, int]:
    y, work, status = np.full((1, x.shape[1], 2, 3), -7, np.float32), np.zeros((x.shape[1], 16), np.float32), np.zeros(1, np.int64)
    arrays = [x, np.array([roi], np.float32), np.array([image]), y, work, status]
    call(engine, name, arrays, [*x.shape, 2, 3, samples, 1.0, most, 1])
    return y[0], int(status[0])


@pytest.mark.parametrize("channels", [1, 5])
def test_means_of_a_plane(engine: Engine, channels: int) -> None:
    """A linear function is what it is in the middle of each cell."""
    rows, columns = np.mgrid[:12, :14].astype(np.float32)
    x = np.stack([rows * 3 + columns * (channel + 1) for channel in range(channels)])[None]
    y, status = _align(engine, "mean", x, [2.5, 1.5, 8.5, 5.5], samples=2)
    wanted_rows, wanted_columns = np.array([2.0, 4.0])[:, None], np.array([3.0, 5.0, 7.0])
    for channel in range(channels):
        np.testing.assert_allclose(y[channel], wanted_rows * 3 + wanted_columns * (channel + 1), rtol=1e-6)
    assert status == 0


def test_the_greatest_neighbour(engine: Engine) -> None:
    """Of constant images it is the greatest weight times the constant; NaN spreads."""
    x = np.full((1, 1, 8, 8), 2, np.float32)
    assert _align(engine, "max", x, [1, 1, 7, 5])[0].max() <= 2
    assert np.isnan(_align(engine, "max", x * np.nan, [1, 1, 7, 5])[0]).all()


@pytest.mark.parametrize(
    ("roi", "image", "most"),
    [
        ([0, 0, 5, 5], 1, LARGE),
        ([0, 0, 5, 5], -1, LARGE),
        ([0, 0, np.nan, 5], 0, LARGE),
        ([0, 0, 3e8, 5], 0, LARGE),
        ([0, 0, 9, 9], 0, 5),
    ],
)
def test_regions_that_cannot_be_are_reported(engine: Engine, roi: list[float], image: int, most: int) -> None:
    """An image that there is not, more samples than are allowed."""
    assert _align(engine, "mean", np.zeros((1, 1, 8, 8), np.float32), roi, image, most=most)[1] == 1


def test_the_greatest_of_cells(engine: Engine) -> None:
    """Ends are included, cells overlap where they share elements, and those outside are 0."""
    x = np.arange(60, dtype=np.float32).reshape(1, 1, 3, 20) - 100
    y, status = np.zeros((2, 1, 1, 2), np.float32), np.zeros(1, np.int64)
    rois = np.array([[0, 0, 0, 18, 2], [0, 40, 0, 50, 2]], np.float32)
    call(engine, "pool", [x, rois, y, status], [1, 1, 3, 20, 1, 2, 1.0], 0, 2)
    assert y.reshape(2, 2).tolist() == [[-51, -42], [0, 0]]
    assert status[0] == 0


@pytest.mark.parametrize("image", [1.0, -1.0, np.nan, 1e30])
def test_images_that_there_are_not(engine: Engine, image: float) -> None:
    """Reported by the number of the region."""
    x, y, status = np.zeros((1, 1, 3, 3), np.float32), np.zeros((1, 1, 1, 1), np.float32), np.zeros(1, np.int64)
    call(engine, "pool", [x, np.array([[image, 0, 0, 2, 2]], np.float32), y, status], [1, 1, 3, 3, 1, 1, 1.0])
    assert status[0] == 1
