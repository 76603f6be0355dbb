"""One option, and the kinds of values that there are."""

from __future__ import annotations

from typing import Any

import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.option import (
    COUNT,
    FLAG,
    NAMES,
    POSITIVE,
    SECONDS,
    SIZE_BYTES,
    TEXT,
    Ignored,
    Kind,
    Option,
    check_names,
    choice,
    is_foreign,
)

SPEED = choice("slow", "fast", "faster")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (FLAG, "1", True),
        (FLAG, "0", False),
        (COUNT, "0", 0),
        (POSITIVE, "7", 7),
        (SIZE_BYTES, "4096", 4096),
        (SECONDS, "0.5", 0.5),
        (TEXT, " as it is ", " as it is "),
        (NAMES, "a; b;;c ", ("a", "b", "c")),
        (SPEED, "fast", "fast"),
    ],
)
def test_a_text_becomes_a_value(kind: Kind[Any], text: str, value: object) -> None:
    """By the kind of the option."""
    assert Option("key", kind, None, "").read({"key": text}) == value


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (FLAG, "yes", 'key is "0" or "1", got \'yes\''),
        (COUNT, "-1", "key is a number of at least 0, got '-1'"),
        (COUNT, "\u0663", "at least 0, got"),
        (POSITIVE, "0", "key is a number of at least 1, got '0'"),
        (SIZE_BYTES, "1 MB", "key is a number of bytes, got '1 MB'"),
        (SECONDS, "soon", "key is a number of seconds, got 'soon'"),
        (SECONDS, "nan", "key is a number of seconds, got 'nan'"),
        (SECONDS, "-1", "key is a number of seconds, got '-1'"),
        (SPEED, "quick", 'key is "slow", "fast" or "faster", got \'quick\''),
        (choice("all"), "none", "key is \"all\", got 'none'"),
    ],
)
def test_another_text_is_an_error_that_names_the_key(kind: Kind[Any], text: str, message: str) -> None:
    """With the values that there are, and the text."""
    with pytest.raises(InvalidArgument, match=message):
        Option("key", kind, None, "").read({"key": text})


def test_what_is_left_out_or_empty_is_the_default() -> None:
    """It need be none of the values that can be given."""
    option = Option("key", COUNT, None, "")
    assert option.read({}) is None
    assert option.read({"key": ""}) is None


def test_the_default_is_shown_as_it_would_be_given() -> None:
    """None and lists are shown as nothing."""
    shown = [Option("key", TEXT, default, "").default_text for default in (True, 0, "a", 1.5, None, ())]
    assert shown == ["1", "0", "a", "1.5", "", ""]


def test_a_foreign_option_may_stand_for_many() -> None:
    """One that ends in a dot or an underscore for all that begin so."""
    ignored = (Ignored("one.key", "why"), Ignored("many.", "why"))
    assert is_foreign("one.key", ignored) is ignored[0]
    assert is_foreign("many.of.them", ignored) is ignored[1]
    assert is_foreign("one.key.more", ignored) is None


def test_an_unknown_option_is_told_with_the_nearest() -> None:
    """Or with all that there are."""
    known = [Option("num_of_threads", COUNT, 0, "")]
    with pytest.raises(InvalidArgument, match=r"Mine has no options \['num_of_thread'\]; did you mean 'num_of_threads'\?"):
        check_names("Mine", {"num_of_thread": "1"}, known)
    with pytest.raises(InvalidArgument, match=r"Mine has no options \['speed'\]; it has num_of_threads"):
        check_names("Mine", ["speed"], known)
    check_names("Mine", ["num_of_threads"], known)
