"""Addresses of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.providers.cpu.addresses import address_of


@pytest.mark.parametrize("array", [np.arange(5), np.arange(5)[2:], np.zeros((2, 3)).T, np.zeros(0), np.array(3.0)])
def test_the_address_is_the_first_elements(array: object) -> None:
    """For whole arrays, views, empty arrays and scalars."""
    assert isinstance(array, np.ndarray)
    assert address_of(array) == array.ctypes.data
