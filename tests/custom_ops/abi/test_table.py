"""The table that a library is given."""

from __future__ import annotations

import ctypes

import pytest
from support.ort_api import call

from sardonyx import errors
from sardonyx.custom_ops.abi.names import API_VERSION, FUNCTIONS, INDEX
from sardonyx.custom_ops.abi.statuses import raise_status
from sardonyx.custom_ops.abi.table import filled_functions, shared_api


def test_every_filled_function_is_one_of_the_table() -> None:
    """Over a hundred are filled."""
    assert filled_functions().keys() <= set(FUNCTIONS)
    assert len(filled_functions()) > 100


def test_the_table_is_given_for_known_versions_only() -> None:
    """A library that is for a newer runtime gets NULL."""
    get_api = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(ctypes.c_uint64.from_address(shared_api().base).value)
    assert [get_api(version) for version in (1, API_VERSION)] == [shared_api().api] * 2
    assert get_api(0) is None
    assert get_api(API_VERSION + 1) is None


def test_the_version_is_that_of_the_interface() -> None:
    """Libraries ask for the table of the number in the middle."""
    function = ctypes.c_uint64.from_address(shared_api().base + 8).value
    text = ctypes.CFUNCTYPE(ctypes.c_void_p)(function)()
    assert ctypes.string_at(text) == f"1.{API_VERSION}.0".encode()


@pytest.mark.parametrize("name", ["RunWithBinding", "CreateAllocator", "CreateIoBinding"])
def test_functions_that_are_not_there_say_so(name: str) -> None:
    """By name."""
    with pytest.raises(errors.NotImplemented, match=f"calls {name} of OrtApi"):
        raise_status(call(name), "place")


def test_no_entry_is_null() -> None:
    """Nor are those beyond the known ones."""
    words = (ctypes.c_uint64 * 512).from_address(shared_api().api)
    assert all(words)
    assert len(INDEX) < 512
