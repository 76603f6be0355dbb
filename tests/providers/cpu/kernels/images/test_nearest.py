"""Nearest Resize of planes, beside the reference provider."""

import pytest
from support.cpu_run import LEVELS
from support.moving import same


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double", "float16", "uint8"])
@pytest.mark.parametrize("scales", ["2, 2", "3, 1.7", "0.5, 0.5", "1.3, 0.3"])
def test_images_and_small_planes(scales: str, kind: str, isa: str) -> None:
    """Rows longer and shorter than a window, of many planes and of few, of sizes that are known and, for whole scales, that are not."""
    for shape in ((2, 3, 5, 300), (1, 1, 2, 70), (3, 4, 4, 4), (2, 5, 31, 17), (1, 300, 6, 40)):
        for dims in ("N, C, H, W", ", ".join(map(str, shape)))["." in scales :]:
            same(
                f"graph(x: {kind}[{dims}]) -> (y) {{ s: float[4] = [1, 1, {scales}] y = Resize(x, _, s) }}",
                shape,
                kind=kind,
                isa=isa,
            )


@pytest.mark.parametrize("isa", LEVELS)
def test_one_axis_and_backwards(isa: str) -> None:
    """Lines of signals, and a region that is read from its end to its beginning."""
    same("graph(x: float[N, C, T]) -> (y) { s: float[3] = [1, 1, 2] y = Resize(x, _, s) }", (2, 3, 50), (1, 1, 1), isa=isa)
    body = """graph(x: float[1, 6, 20, 50]) -> (y) {
        r: float[8] = [0, 0, 0.9, 0.9, 1, 1, 0.1, 0.2] s: int64[4] = [1, 6, 31, 77]
        y = Resize(x, r, _, s) {mode = "nearest", coordinate_transformation_mode = "tf_crop_and_resize"} }"""
    same(body, (1, 6, 20, 50), isa=isa)


def test_nothing_of_nothing() -> None:
    """Planes of no elements, and no planes, stay empty."""
    same("graph(x: float[N, 8, 4, 4]) -> (y) { s: float[4] = [1, 1, 2, 2] y = Resize(x, _, s) }", (0, 8, 4, 4), (1, 8, 4, 4))
    same("graph(x: float[N, 8, 0, 4]) -> (y) { s: float[4] = [1, 1, 2, 2] y = Resize(x, _, s) }", (1, 8, 0, 4))
