"""Tensors at addresses."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import sardonyx as ort
from sardonyx.values.addresses import tensor_at
from sardonyx.values.device import CPU


class Owner:
    """Something that can be watched."""


def test_the_memory_at_an_address_is_seen() -> None:
    """Changes go both ways."""
    array = np.zeros((2, 2), np.float32)
    seen = tensor_at(array.ctypes.data, np.float32, [2, 2], CPU)
    seen[1, 1] = 3
    assert array[1, 1] == 3


def test_the_owner_stays_as_long_as_the_array() -> None:
    """And goes with it."""
    array, owner = np.zeros(2), Owner()
    seen, watch = tensor_at(array.ctypes.data, np.float64, [2], CPU, owner), weakref.ref(owner)
    del owner
    assert watch() is not None
    del seen
    assert watch() is None


def test_an_empty_tensor_needs_no_address() -> None:
    """0 is fine there, and nowhere else."""
    assert tensor_at(0, np.float32, [0, 3], CPU).shape == (0, 3)
    with pytest.raises(ort.InvalidArgument, match="buffer_ptr is the address"):
        tensor_at(0, np.float32, [1], CPU)


@pytest.mark.parametrize(("kind", "shape"), [(np.float32, [-1]), (object, [1]), (22, [1])])
def test_types_without_whole_bytes_are_refused(kind: object, shape: list[int]) -> None:
    """Text, 4-bit types, negative sizes."""
    with pytest.raises(ort.InvalidArgument):
        tensor_at(64, kind, shape, CPU)


def test_other_devices_are_refused() -> None:
    """Their addresses are never read."""
    with pytest.raises(ort.NotImplemented, match="cuda"):
        tensor_at(64, np.float32, [1], ort.OrtDevice.make("cuda", 0))
