"""Arguments of public functions, checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.arguments import as_buffer, as_flag, as_index, as_list, as_mapping, as_pairs, as_path, as_text, instance
from sardonyx.errors import InvalidArgument


def test_what_fits_is_returned() -> None:
    """Each in its plainest form."""
    assert as_index("n", np.int64(3)) == 3
    assert as_text("t", "a") == "a"
    assert as_path("p", Path("a")) == "a"
    assert as_buffer("b", b"ab").nbytes == 2
    assert as_list("l", (1, 2)) == [1, 2]
    assert as_mapping("m", {"a": 1}) == {"a": 1}
    assert instance("i", 3, int) == 3


def test_pairs_are_of_equal_lists() -> None:
    """Both are named where they are not."""
    assert as_pairs("names", ["a"], "values", (3,)) == [("a", 3)]
    with pytest.raises(InvalidArgument, match="names has 2 entries and values has 1; expected as many of each"):
        as_pairs("names", ["a", "b"], "values", [3])


@pytest.mark.parametrize(
    ("check", "wrong", "message"),
    [
        (as_index, 1.5, "that is an integer, got 1.5"),
        (as_index, "1", "that is an integer, got '1'"),
        (as_text, 3, "that is a text, got 3"),
        (as_path, None, "that is a path, got None"),
        (as_path, b"a", "that is a path, got b'a'"),
        (as_path, "a\0b", "that is a path, got 'a.x00b'"),
        (as_buffer, "ab", "that is an object with a buffer, got 'ab'"),
        (as_list, "ab", "that is a list, got 'ab'"),
        (as_list, 3, "that is a list, got 3"),
        (as_mapping, ["a"], "that is a dictionary, got .'a'."),
        (lambda name, value: instance(name, value, Path), 3, "that is an object of Path, got 3"),
    ],
)
def test_what_does_not_fit_is_named(check: Callable[[str, Any], object], wrong: object, message: str) -> None:
    """With what was expected, and what came."""
    with pytest.raises(TypeError, match=message):
        check("that", wrong)


def test_a_flag_has_a_truth_of_its_own() -> None:
    """None is False; the length of a text or a list says nothing."""
    assert [as_flag("f", value) for value in (True, 0, None, 2.0)] == [True, False, False, True]
    for value in ("", "yes", [], [1], {}):
        with pytest.raises(TypeError, match="f is a bool, got"):
            as_flag("f", value)
