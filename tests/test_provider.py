"""The contract's own code: host memory."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.provider import HOST, PrefersOperators


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


def test_a_preference_for_quantized_operators_is_an_attribute() -> None:
    """A provider that names some says so; others need not know of it."""

    class Integers:
        preferred_operators = frozenset(["QLinearConv"])

    assert isinstance(Integers(), PrefersOperators)
    assert not isinstance(HOST, PrefersOperators)
