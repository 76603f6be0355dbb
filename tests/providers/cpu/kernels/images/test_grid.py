"""GridSample against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference

from sardonyx.errors import InvalidArgument

SHAPES = [((2, 3, 5, 7), (2, 4, 9, 2)), ((1, 2, 4, 5, 6), (1, 3, 4, 5, 3)), ((2, 3, 9), (2, 40, 1)), ((1, 1, 1, 1), (1, 5, 5, 2))]


def _text(rank: int, attributes: str, domain: str = "") -> str:
    spatial, places = ", ".join("DEF"[:rank]), ", ".join("GHI"[:rank])
    return f"graph(x: float[A, C, {spatial}], g: float[A, {places}, {rank}]) -> (y) {{ y = {domain}GridSample(x, g) {{{attributes}}} }}"


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_every_way(mode: str, padding: str, isa: str) -> None:
    """One to three axes, corners aligned and not; NaN, infinite and far positions."""
    random = np.random.default_rng(0)
    for align in (0, 1):
        for shape, places in SHAPES:
            x, grid = random.standard_normal(shape).astype(np.float32), random.uniform(-2.5, 2.5, places).astype(np.float32)
            for start, odd in ((0, np.nan), (3, np.inf), (5, -1e30), (7, 1e9)):
                grid.reshape(-1)[start::29] = odd
            body = _text(len(shape) - 2, f'mode = "{mode}", padding_mode = "{padding}", align_corners = {align}')
            found = cpu_session(body, opset=22, isa=isa).run(None, {"x": x, "g": grid})[0]
            wanted = reference(body, {"x": x, "g": grid}, opset=22)[0]
            if mode == "nearest":
                np.testing.assert_array_equal(found, wanted)
            else:
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_what_lies_outside_is_zero_whatever_the_first_element_is(mode: str, isa: str) -> None:
    """NaN and infinities go to the positions near them alone."""
    body = _text(2, f'mode = "{mode}", align_corners = 1')
    x = np.random.default_rng(0).standard_normal((1, 1, 5, 6)).astype(np.float32)
    x[0, 0, 0, 0] = np.nan
    grid = np.random.default_rng(1).uniform(-1.5, 1.5, (1, 7, 10, 2)).astype(np.float32)
    found = cpu_session(body, opset=22, isa=isa).run(None, {"x": x, "g": grid})[0]
    wanted = reference(body, {"x": x, "g": grid}, opset=22)[0]
    assert 0 < np.isnan(wanted).sum() < wanted.size / 2
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5)


def test_threads_and_batches_do_not_change_bits() -> None:
    """Each image is sampled as it is alone."""
    random, body = np.random.default_rng(1), _text(2, "")
    x, grid = random.standard_normal((3, 2, 9, 9)).astype(np.float32), random.uniform(-1, 1, (3, 20, 20, 2)).astype(np.float32)
    whole = cpu_session(body, threads=2).run(None, {"x": x, "g": grid})[0]
    session = cpu_session(body)
    for image in range(3):
        alone = session.run(None, {"x": x[image : image + 1], "g": grid[image : image + 1]})[0]
        np.testing.assert_array_equal(alone[0], whole[image])


def test_an_empty_image() -> None:
    """Nothing can be sampled from it."""
    session = cpu_session(_text(2, ""))
    with pytest.raises(InvalidArgument, match="must have elements"):
        session.run(None, {"x": np.zeros((1, 1, 0, 3), np.float32), "g": np.zeros((1, 2, 2, 2), np.float32)})
    assert session.run(None, {"x": np.zeros((1, 1, 0, 3), np.float32), "g": np.zeros((1, 0, 2, 2), np.float32)})[0].shape == (
        1,
        1,
        0,
        2,
    )


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_float64(mode: str, isa: str) -> None:
    """Positions and weights are of float64, too."""
    random = np.random.default_rng(3)
    for padding in ("zeros", "border", "reflection"):
        body = _text(2, f'mode = "{mode}", padding_mode = "{padding}"').replace("float", "double")
        feeds = {"x": random.standard_normal((2, 3, 5, 7)), "g": random.uniform(-2.5, 2.5, (2, 4, 9, 2))}
        feeds["g"].reshape(-1)[::13] = np.nan
        found = cpu_session(body, opset=22, isa=isa).run(None, feeds)[0]
        np.testing.assert_allclose(found, reference(body, feeds, opset=22)[0], rtol=1e-11, atol=1e-13)


def test_what_is_left_to_others() -> None:
    """Images and positions of two types."""
    body = "graph(x: double[A, C, D], g: float[A, G, 1]) -> (y) { y = GridSample(x, g) }"
    assert "type double and float" in declined(body, opset=22)[0]
