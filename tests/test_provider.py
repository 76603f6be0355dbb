"""The contract's own code: host memory and cancellation."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import Fail
from sardonyx.provider import HOST, PrefersOperators, check_cancelled, reset_cancellation, set_cancellation


def test_a_view_shares_the_bytes_of_its_buffer() -> None:
    """Writing through a view shows in the buffer."""
    buffer = HOST.allocate(128)
    HOST.view(buffer, 64, DataType.INT32, (2, 2))[...] = 7
    assert buffer[64:80].view(np.int32).tolist() == [7] * 4


def test_the_host_copies_nothing_to_itself() -> None:
    """Transfers of the host's memory return what they are given."""
    array = np.zeros(3)
    assert HOST.to_host(array) is array
    assert HOST.from_host(array) is array


def test_without_cancellation_the_check_passes() -> None:
    """A run without options cannot be cancelled."""
    check_cancelled()


def test_the_check_raises_while_cancelled() -> None:
    """It passes again once the run is over."""
    token = set_cancellation(lambda: True)
    with pytest.raises(Fail, match="RunOptions.terminate"):
        check_cancelled()
    reset_cancellation(token)
    check_cancelled()


def test_a_preference_for_quantized_operators_is_an_attribute() -> None:
    """A provider that names some says so; others need not know of it."""

    class Integers:
        preferred_operators = frozenset(["QLinearConv"])

    assert isinstance(Integers(), PrefersOperators)
    assert not isinstance(HOST, PrefersOperators)
