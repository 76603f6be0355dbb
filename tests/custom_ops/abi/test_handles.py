"""Handles are numbers in a table."""

from __future__ import annotations

import pytest

from sardonyx.custom_ops.abi.handles import FIXED_BELOW, drop, find, keep, keep_fixed
from sardonyx.errors import InvalidArgument


def test_a_handle_gives_its_object_until_it_is_dropped() -> None:
    """Afterwards it is an error, not freed memory."""
    handle = keep("text")
    assert find(handle, str) == "text"
    drop(handle)
    drop(handle)
    with pytest.raises(InvalidArgument, match="released or none; expected str"):
        find(handle, str)


def test_a_handle_of_another_kind_is_refused() -> None:
    """The message names both kinds."""
    with pytest.raises(InvalidArgument, match="is str; expected int"):
        find(keep("text"), int)


def test_null_is_refused() -> None:
    """It is no object of any kind."""
    with pytest.raises(InvalidArgument, match="NULL"):
        find(None, str)


def test_a_fixed_number_outlives_releases() -> None:
    """Machine code gives it again and again."""
    keep_fixed(FIXED_BELOW - 8, "fixed")
    drop(FIXED_BELOW - 8)
    assert find(FIXED_BELOW - 8, str) == "fixed"
    assert keep("text") >= FIXED_BELOW
