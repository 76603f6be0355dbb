"""Col2Im against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, declined, reference

from sardonyx.errors import InvalidArgument

CASES = [
    ((2, 3), (7, 40), (3, 3), (5, 38), ""),
    ((1, 2), (9, 9), (2, 3), (5, 5), "strides = [2, 2], pads = [0, 1, 1, 1]"),
    ((2, 1), (10, 37), (3, 2), (7, 12), "strides = [1, 3], dilations = [2, 3], pads = [0, 1, 1, 0]"),
    ((2, 2), (33,), (4,), (30,), ""),
    ((1, 2), (4, 5, 18), (2, 2, 3), (3, 4, 8), "strides = [1, 1, 2]"),
    ((1, 1), (1, 1), (1, 1), (1, 1), ""),
    ((0, 2), (4, 4), (2, 2), (3, 3), ""),
]


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double", "int32", "int64"])
@pytest.mark.parametrize(("head", "image", "block", "places", "attributes"), CASES)
def test_every_way(
    head: tuple[int, int],
    image: tuple[int, ...],
    block: tuple[int, ...],
    places: tuple[int, ...],
    attributes: str,
    kind: str,
    isa: str,
) -> None:
    """Every sum is in the order of taps, as the reference's is."""
    shape = (head[0], head[1] * int(np.prod(block)), int(np.prod(places)))
    body = (
        f"graph(x: {kind}[N, {shape[1]}, L]) -> (y) {{ i: int64[{len(image)}] = {list(image)} "
        f"k: int64[{len(block)}] = {list(block)} y = Col2Im(x, i, k) {{{attributes}}} }}"
    )
    x = (np.random.default_rng(0).standard_normal(shape) * 9).astype({"float": "float32"}.get(kind, kind))
    found = cpu_session(body, opset=18, isa=isa).run(None, {"x": x})[0]
    assert_same_bits(found, reference(body, {"x": x}, opset=18)[0])


def test_columns_that_do_not_fit() -> None:
    """The message has both shapes."""
    body = "graph(x: float[N, 4, L]) -> (y) { i: int64[2] = [4, 4] k: int64[2] = [2, 2] y = Col2Im(x, i, k) }"
    with pytest.raises(InvalidArgument, match=r"\(1, 4, 8\); expected \(1, 4, 9\)"):
        cpu_session(body, opset=18).run(None, {"x": np.zeros((1, 4, 8), np.float32)})


def test_what_is_left_to_others() -> None:
    """Other types, and blocks that only the run shows."""
    head = "graph(x: {}[1, 4, 9], k: int64[2]) -> (y) {{ i: int64[2] = [4, 4] c: int64[2] = [2, 2] "
    assert declined(head.format("int8") + "y = Col2Im(x, i, c) }", opset=18) == ["elements of type int8"]
    assert declined(head.format("float") + "y: float[1, 1, 4, 4] = Col2Im(x, i, k) }", opset=18) == ["its block_shape is computed"]
