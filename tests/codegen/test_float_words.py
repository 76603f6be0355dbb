"""Numbers as words."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.codegen.float_words import float_word


@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, -1.5, 5e-324, float("inf"), float("nan")])
def test_a_word_has_the_bits_of_the_number(number: float) -> None:
    """As NumPy shows them."""
    assert float_word(number) == np.float64(number).view(np.int64)
