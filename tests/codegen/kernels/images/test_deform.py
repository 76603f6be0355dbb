"""Moved taps as panels."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.window import WindowAxis, axis_words
from sardonyx.codegen.kernels.images.deform import write_deform
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

WIDTH = 32


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Along one axis, with factors and without."""
    engine, module = Engine(target), Module(target)
    write_deform(module, "plain", 1, WIDTH, masked=False)
    write_deform(module, "masked", 1, WIDTH, masked=True)
    engine.add(module)
    return engine


def _run(engine: Engine, x: Array, offset: Array, mask: Array | None = None) -> Array:
    """Panels of windows of two taps that begin one element before x."""
    images, channels, size = x.shape
    places = offset.shape[-1]
    count = -(-places // WIDTH)
    panels = np.full((images, count, channels * 2, WIDTH), -7, np.float32)
    axis = WindowAxis(size, places, 1, 1, 1, 2, 1, 1)
    buffers = [x, offset, panels, *([] if mask is None else [mask])]
    call(engine, "plain" if mask is None else "masked", buffers, [images, channels, 1, 1, *axis_words([axis])], 0, images * count)
    return np.moveaxis(panels, 1, 2).reshape(images, channels, 2, -1)[..., :places]


@pytest.mark.parametrize("places", [1, WIDTH - 1, WIDTH, WIDTH + 1, 70])
def test_between_elements(engine: Engine, places: int) -> None:
    """Moved places are NumPy's interpolation, with zeros around."""
    random = np.random.default_rng(places)
    x = random.standard_normal((2, 3, places + 5)).astype(np.float32)
    offset = random.uniform(-3, 3, (2, 2, places)).astype(np.float32)
    mask = random.standard_normal((2, 2, places)).astype(np.float32)
    found, masked = _run(engine, x, offset), _run(engine, x, offset, mask)
    elements = np.arange(-1, places + 6)
    for image, channel, tap in np.ndindex(2, 3, 2):
        at = np.arange(places) - 1 + tap + offset[image, tap]
        wanted = np.interp(at, elements, np.pad(x[image, channel], 1), left=0, right=0)
        np.testing.assert_allclose(found[image, channel, tap], wanted, atol=1e-4)
        np.testing.assert_allclose(masked[image, channel, tap], wanted * mask[image, tap], atol=1e-4)


def test_offsets_that_are_no_numbers_read_nothing(engine: Engine) -> None:
    """They lie outside, as those do that no integer holds."""
    x, offset = np.ones((1, 1, 9), np.float32), np.zeros((1, 2, 6), np.float32)
    offset[0, 0] = [np.nan, np.inf, -np.inf, 3e38, -3e9, 1e12]
    found = _run(engine, x, offset)
    assert not found[0, 0, 0].any()
    assert found[0, 0, 1].tolist() == [1] * 6
