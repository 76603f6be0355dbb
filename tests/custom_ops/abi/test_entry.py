"""Functions of OrtApi in Python."""

from __future__ import annotations

import ctypes

import pytest

from sardonyx import errors
from sardonyx.custom_ops.abi.entry import POINTER, Entry, entry, make_callback, unfilled
from sardonyx.custom_ops.abi.statuses import raise_failures, raise_status
from sardonyx.errors import NotImplemented as NotSupported


def test_what_a_function_raises_becomes_a_status() -> None:
    """Also what is no error of ours."""
    entries: list[Entry] = []

    @entry(entries, "Refuse", POINTER)
    def refuse(pointer: int | None) -> None:
        raise errors.InvalidArgument("no")

    with pytest.raises(errors.InvalidArgument, match="place: no"):
        raise_status(make_callback(entries[0])(1), "place")


def test_what_a_function_without_status_raises_is_kept() -> None:
    """It is raised when the library's call ends."""
    entries: list[Entry] = []

    @entry(entries, "Number", returns=ctypes.c_int32)
    def number() -> int:
        raise ValueError("no number")

    assert make_callback(entries[0])() == 0
    with pytest.raises(NotSupported, match="Number failed: ValueError: no number"):
        raise_failures("place")


def test_an_unfilled_function_says_its_name() -> None:
    """By a status where it returns one, else at the end of the call."""
    with pytest.raises(errors.NotImplemented, match="calls CreateThing of OrtApi"):
        raise_status(unfilled("CreateThing", returns_status=True)(), "place")
    unfilled("ReleaseThing", returns_status=False)()
    with pytest.raises(NotSupported, match="calls ReleaseThing of OrtApi"):
        raise_failures("place")
