"""QLinearGlobalAveragePool with the channels first: the reference provider's integers."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, reference, steps_of


def _body(kind: str, shape: str, places: str) -> str:
    return (
        f"graph(x: {kind}[{shape}]) -> (y: {kind}[{places}]) {{ s: float[] = 0.07 z: {kind}[] = 11 t: float[] = 0.0413 o: {kind}[] = 7 "
        "y = com.microsoft.QLinearGlobalAveragePool(x, s, z, t, o) }"
    )


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("shape", ["2, 5, 7, 9", "1, 3, 64", "2, 4, 2, 3, 4", "n, c, h, w"])
def test_means(kind: str, shape: str, threads: int, isa: str) -> None:
    """Whether sizes are known before the run or not."""
    sizes = [int(size) if size.isdigit() else 6 for size in shape.split(", ")]
    names = shape.split(", ")
    places = ", ".join([*names[:2], *("1" for _ in names[2:])])
    x = np.random.default_rng(0).integers(*((0, 256) if kind == "uint8" else (-128, 128)), sizes).astype(kind)
    body = _body(kind, shape, places)
    found = cpu_session(body, threads=threads, isa=isa).run(None, {"x": x})
    assert_same_bits(found[0], reference(body, {"x": x})[0])


def test_nothing_is_transposed() -> None:
    """The step reads the planes as they lie."""
    assert steps_of(_body("uint8", "1, 3, 8, 8", "1, 3, 1, 1")) == ["QLinearGlobalAveragePool"]
