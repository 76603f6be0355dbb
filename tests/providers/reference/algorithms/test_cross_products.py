"""Products of cross attention, kept step by step, with a decoder that makes them of numbers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.cross_products import CrossProducts
from sardonyx.providers.reference.algorithms.generation_decoders import EncoderDecoder

ROWS, LAYERS, HEADS, FRAMES = 4, 2, 3, 5


class Numbers:
    """A decoder whose products are numbers of their own in each step."""

    def __init__(self) -> None:
        self.steps: list[Array] = []

    def advance(self, *_: Array) -> Array:
        self.steps.append(np.random.default_rng(len(self.steps)).standard_normal((LAYERS, ROWS, HEADS, 1, FRAMES)))
        return np.zeros((ROWS, 1), np.float32)

    def products_of_layers(self) -> list[Array]:
        return list(self.steps[-1])


def recorded(pairs: Array | None, steps: int = 2) -> tuple[CrossProducts, Numbers]:
    decoder = Numbers()
    products = CrossProducts(cast(EncoderDecoder, decoder), pairs)
    unused: Any = None
    for _ in range(steps):
        products.advance(unused, unused, unused)
    return products, decoder


def test_a_path_is_followed_through_the_rows() -> None:
    """Step t of a sequence is that of the row that read its token t, and 0 where none did."""
    products, decoder = recorded(np.array([[1, 2]]))
    found = products.along(np.array([[[3, 0]], [[1, -1]]]))
    assert found.shape == (2, 1, 1, 2, FRAMES)
    np.testing.assert_array_equal(found[0, 0, 0], np.float32([decoder.steps[0][1, 3, 2, 0], decoder.steps[1][1, 0, 2, 0]]))
    assert not found[1, 0, 0, 1].any()


def test_without_pairs_all_heads_are_kept() -> None:
    """Layer by layer."""
    products, decoder = recorded(None, 1)
    found = products.along(np.array([[[2]]]))
    np.testing.assert_array_equal(found[0, 0, :, 0], decoder.steps[0][:, 2, :, 0].reshape(-1, FRAMES).astype(np.float32))


def test_no_steps_have_no_products() -> None:
    """A search that ends with its first token gives an empty tensor."""
    products, _ = recorded(np.array([[1, 2]]), 0)
    assert products.along(np.zeros((2, 3, 0), np.int64)).shape == (2, 3, 1, 0, 0)


def test_pairs_must_exist() -> None:
    """A layer or head beyond the decoder's is refused."""
    with pytest.raises(InvalidArgument, match="head 0 of layer 2; the decoder has 2 layers of 3 heads"):
        recorded(np.array([[2, 0]]))
