"""Sequences and maps that a library makes and takes apart."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import pytest
from support.ort_api import ask, call

from sardonyx.custom_ops.abi.entries.memory import default_allocator
from sardonyx.custom_ops.abi.values import find_value, make_container, make_value
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

SEQUENCE, MAP = ctypes.c_int(2), ctypes.c_int(3)
ONE, TWO = np.float32([1, 2]), np.float32([[3]])


def _create(arrays: Sequence[Array], kind: ctypes.c_int) -> int:
    made = (ctypes.c_uint64 * max(len(arrays), 1))(*(make_value(array).address for array in arrays))
    value: int = ask("CreateValue", ctypes.byref(made), len(arrays), kind)
    for address in made:
        call("ReleaseValue", address)
    return value


def _get(value: int, index: int) -> Array:
    part = ask("GetValue", value, ctypes.c_int(index), default_allocator())
    array = find_value(part).array
    assert array is not None
    call("ReleaseValue", part)
    return array


def test_a_sequence_holds_tensors_of_its_own() -> None:
    """The library may release those that it was made of, and each that it takes out."""
    value = _create([ONE, TWO], SEQUENCE)
    assert ask("GetValueType", value, out=ctypes.c_int) == 2
    assert ask("IsTensor", value, out=ctypes.c_int) == 0
    assert ask("HasValue", value, out=ctypes.c_int) == 1
    assert ask("GetValueCount", value) == 2
    assert [_get(value, index).tolist() for index in (0, 1)] == [[1, 2], [[3]]]


@pytest.mark.parametrize("keys", [np.int64([4, 5]), np.array(["a", "b"], object)])
def test_a_map_has_keys_and_values(keys: Array) -> None:
    """As two tensors."""
    value = _create([keys, ONE], MAP)
    assert ask("GetValueType", value, out=ctypes.c_int) == 3
    assert ask("GetValueCount", value) == 2
    assert _get(value, 0).tolist() == keys.tolist()
    assert (_get(value, 1).tolist(), _get(value, 1).dtype) == ([1, 2], np.float32)


def test_a_sequence_may_hold_maps() -> None:
    """Each comes out as a map."""
    value = make_container([{1: np.float32(2)}, {3: np.float32(4)}]).address
    inner = ask("GetValue", value, ctypes.c_int(1), default_allocator())
    assert ask("GetValueType", inner, out=ctypes.c_int) == 3
    assert _get(inner, 0).tolist() == [3]


@pytest.mark.parametrize(
    ("arrays", "kind", "text"),
    [
        ([], SEQUENCE, "of no values"),
        ([ONE, np.int64([1])], SEQUENCE, "a sequence of float32, int64; expected tensors of one type"),
        ([ONE], MAP, "a map of 1 values"),
        ([np.int64([1, 2]), TWO], MAP, "expected as many of each"),
        ([ONE, ONE], MAP, "keys float32"),
        ([ONE], ctypes.c_int(4), "ONNXType 4"),
    ],
)
def test_what_is_no_sequence_or_map_is_refused(arrays: list[Array], kind: ctypes.c_int, text: str) -> None:
    """The status says what the library gave."""
    with pytest.raises(InvalidArgument, match=text):
        _create(arrays, kind)


def test_a_place_outside_is_refused() -> None:
    """And a value inside a tensor."""
    value, tensor = _create([ONE], SEQUENCE), make_value(ONE).address
    for place in (-1, 1):
        with pytest.raises(InvalidArgument, match=f"value {place} of a sequence of 1"):
            _get(value, place)
    with pytest.raises(InvalidArgument, match="inside a tensor"):
        _get(tensor, 0)
    with pytest.raises(InvalidArgument, match="part 2 of a map"):
        _get(_create([np.int64([1]), np.float32([1])], MAP), 2)
    with pytest.raises(InvalidArgument, match="how many values a tensor holds"):
        ask("GetValueCount", tensor)
    assert ask("IsTensor", tensor, out=ctypes.c_int) == 1
