"""Operators that every session of the process knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.custom_operators import mine_bytes

import sardonyx
from sardonyx.custom_ops.registered import check_operator, register_operator, registered_operators, unregister_operator
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument, SardonyxError

BYTES = mine_bytes("(x: float[n]) -> (y: float[n]) {\ny = mine.Twice(x)\n}")


@sardonyx.op("mine", "Twice", shape=lambda x: x)
def twice(x: Array) -> Array:
    """Double."""
    return x * 2


@pytest.fixture
def registered() -> Iterator[None]:
    """While a test runs `twice` is registered."""
    register_operator(twice)
    yield
    if twice in registered_operators():
        unregister_operator(twice)


def test_every_session_knows_a_registered_operator(registered: None) -> None:
    """Until it is taken away."""
    assert sardonyx.InferenceSession(BYTES).run(None, {"x": np.float32([4])})[0].tolist() == [8]
    unregister_operator(twice)
    with pytest.raises(SardonyxError, match="Twice"):
        sardonyx.InferenceSession(BYTES)


def test_registering_again_changes_nothing(registered: None) -> None:
    """A module may be imported twice."""
    register_operator(twice)
    assert registered_operators().count(twice) == 1


def test_another_operator_of_the_name_is_refused(registered: None) -> None:
    """Unless it is of other versions."""
    with pytest.raises(InvalidArgument, match=r"mine\.Twice of .* is registered already, by .*twice"):
        register_operator(sardonyx.op("mine", "Twice")(twice.function))


def test_the_options_of_a_session_come_first(registered: None) -> None:
    """So that one session can try another meaning."""
    options = sardonyx.SessionOptions()
    options.add_operator(sardonyx.op("mine", "Twice", shape=lambda x: x)(lambda x: x * 20))
    assert sardonyx.InferenceSession(BYTES, options).run(None, {"x": np.float32([4])})[0].tolist() == [80]


@pytest.mark.parametrize("wrong", [len, "text", None])
def test_what_is_no_operator_is_refused(wrong: Any) -> None:
    """By every way of giving one."""
    for give in (check_operator, register_operator, sardonyx.SessionOptions().add_operator):
        with pytest.raises(InvalidArgument, match=r"expected an operator, such as @sardonyx\.op makes"):
            give(wrong)
    with pytest.raises(InvalidArgument, match="is not registered"):
        unregister_operator(wrong)
