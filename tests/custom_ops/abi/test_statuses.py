"""Statuses across the border."""

from __future__ import annotations

import pytest

from sardonyx import errors
from sardonyx.custom_ops.abi.statuses import make_status, note_failure, raise_failures, raise_status, status_of


def test_null_is_success() -> None:
    """Nothing is raised."""
    raise_status(None, "place")
    raise_status(0, "place")


@pytest.mark.parametrize("kind", [errors.Fail, errors.InvalidArgument, errors.NoSuchFile, errors.RuntimeException, errors.EPFail])
def test_an_error_keeps_its_class_across_the_border(kind: type[errors.SardonyxError]) -> None:
    """There and back, with its text and the place."""
    with pytest.raises(kind, match="place: what is wrong: ü"):
        raise_status(status_of(kind("what is wrong: ü")), "place")


def test_an_unknown_code_is_a_failure() -> None:
    """Newer interfaces may have more codes."""
    with pytest.raises(errors.Fail, match="place: text"):
        raise_status(make_status(99, "text"), "place")


def test_any_exception_becomes_a_status() -> None:
    """Its class is part of the text."""
    with pytest.raises(errors.Fail, match="ZeroDivisionError: by zero"):
        raise_status(status_of(ZeroDivisionError("by zero")), "place")


def test_noted_failures_are_raised_once() -> None:
    """They are kept for the end of the library's call."""
    note_failure("a function is missing")
    with pytest.raises(errors.NotImplemented, match="place: a function is missing"):
        raise_failures("place")
    raise_failures("place")
