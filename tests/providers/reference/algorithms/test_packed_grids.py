"""Facts about the points of ggml's formats of 2 and 3 bits."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.providers.reference.algorithms.packed_grids import points


@pytest.mark.parametrize(
    ("name", "shape", "levels"),
    [
        ("IQ2_XXS", (256, 8), [8, 25, 43]),
        ("IQ2_XS", (512, 8), [8, 25, 43]),
        ("IQ2_S", (1024, 8), [8, 25, 43]),
        ("IQ3_XXS", (256, 4), [4, 12, 20, 28, 36, 44, 52, 62]),
    ],
)
def test_points_differ_and_have_the_levels_of_their_format(name: str, shape: tuple[int, int], levels: list[int]) -> None:
    """A format has as many points as its places can name, no two alike, of few levels; the first has the lowest everywhere."""
    found = points(name)
    assert found.shape == shape
    assert len(np.unique(found, axis=0)) == shape[0]
    np.testing.assert_array_equal(np.unique(found), levels)
    assert (found[0] == levels[0]).all()
