"""Pairs of texts, as a library makes and reads them."""

from __future__ import annotations

import ctypes
import dataclasses

import pytest
from support.custom_sites import site_of
from support.ort_api import ask, call

from sardonyx.custom_ops.abi.entries.core import Registration
from sardonyx.custom_ops.abi.entries.memory import default_allocator
from sardonyx.custom_ops.abi.handles import keep
from sardonyx.custom_ops.abi.node_info import NodeInfo
from sardonyx.custom_ops.abi.statuses import raise_status
from sardonyx.errors import InvalidArgument


def text(value: str) -> ctypes.c_char_p:
    return ctypes.c_char_p(value.encode())


def pairs_of(handle: int) -> dict[bytes | None, bytes | None]:
    keys, values, count = ctypes.POINTER(ctypes.c_char_p)(), ctypes.POINTER(ctypes.c_char_p)(), ctypes.c_size_t()
    call("GetKeyValuePairs", handle, ctypes.byref(keys), ctypes.byref(values), ctypes.byref(count), returns=None)
    return {keys[index]: values[index] for index in range(count.value)}


def made() -> int:
    handle = ctypes.c_uint64()
    call("CreateKeyValuePairs", ctypes.byref(handle), returns=None)
    return handle.value


def test_pairs_are_put_in_read_and_taken_out() -> None:
    """A second value of one key replaces the first."""
    handle = made()
    for key, value in (("a", "1"), ("b", "2"), ("a", "3")):
        call("AddKeyValuePair", handle, text(key), text(value), returns=None)
    assert pairs_of(handle) == {b"a": b"3", b"b": b"2"}
    assert call("GetKeyValue", handle, text("b"), returns=ctypes.c_char_p) == b"2"
    call("RemoveKeyValuePair", handle, text("b"), returns=None)
    assert call("GetKeyValue", handle, text("b"), returns=ctypes.c_void_p) is None
    call("ReleaseKeyValuePairs", handle, returns=None)


def test_there_may_be_no_pairs() -> None:
    """Then the count is 0."""
    assert pairs_of(made()) == {}


def test_a_kernel_reads_the_config_entries_of_its_session() -> None:
    """All of them, as pairs."""
    info = keep(NodeInfo(dataclasses.replace(site_of(), config={"my.entry": "yes"}), since=1))
    assert pairs_of(ask("KernelInfo_GetConfigEntries", info))[b"my.entry"] == b"yes"
    with pytest.raises(InvalidArgument, match="expected NodeInfo"):
        raise_status(call("KernelInfo_GetConfigEntries", 1, ctypes.byref(ctypes.c_uint64())), "info")


def test_the_build_names_sardonyx() -> None:
    """The text begins as onnxruntime's."""
    assert call("GetBuildInfoString", returns=ctypes.c_char_p).startswith(b"ORT Build Info: sardonyx")


def test_a_library_reads_the_config_entries_when_it_registers() -> None:
    """All of them, as pairs."""
    assert pairs_of(ask("GetSessionOptionsConfigEntries", keep(Registration({"a": "1"}, [])))) == {b"a": b"1"}


def test_the_allocator_counts_nothing() -> None:
    """It has no statistics, as onnxruntime's without an arena."""
    assert pairs_of(ask("AllocatorGetStats", default_allocator())) == {}
    with pytest.raises(InvalidArgument, match="an allocator of its own"):
        ask("AllocatorGetStats", 1234)
