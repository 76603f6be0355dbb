"""Pairs of texts, by which a library reads the session's config entries, and what the runtime says of its build."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from sardonyx.custom_ops.abi.entries.core import Registration
from sardonyx.custom_ops.abi.entries.memory import check_allocator
from sardonyx.custom_ops.abi.entry import POINTER, Entry, entry
from sardonyx.custom_ops.abi.handles import drop, find, keep
from sardonyx.custom_ops.abi.node_info import NodeInfo
from sardonyx.custom_ops.abi.strings import address_of, bytes_of, read_text, write_pointer, write_size
from sardonyx.version import __version__

__all__ = ["ENTRIES"]

ENTRIES: list[Entry] = []

_BUILD = bytes_of(f"ORT Build Info: sardonyx {__version__}") + b"\0"


class KeyValuePairs:
    """An OrtKeyValuePairs: texts by text, in the memory that a library reads."""

    def __init__(self) -> None:
        """Hold no pairs."""
        self._texts: dict[str, tuple[bytes, bytes]] = {}
        self._columns: tuple[ctypes.Array[ctypes.c_uint64], ...] = ()

    def __setitem__(self, key: str, value: str) -> None:
        """Put in a pair, in the place of one of the same key."""
        self._texts[key] = (bytes_of(key) + b"\0", bytes_of(value) + b"\0")

    def get(self, key: str) -> int | None:
        """Return the address of a value, valid until it is replaced or removed; None where there is none."""
        found = self._texts.get(key)
        return None if found is None else address_of(found[1])

    def remove(self, key: str) -> None:
        """Take out a pair; one that is not there is passed over."""
        self._texts.pop(key, None)

    def columns(self) -> tuple[int, int, int]:
        """Return the addresses of all keys and of all values, valid until the next call, and how many there are."""
        count = len(self._texts)
        self._columns = tuple(
            (ctypes.c_uint64 * max(count, 1))(*(address_of(pair[column]) for pair in self._texts.values())) for column in range(2)
        )
        keys, values = (ctypes.addressof(column) for column in self._columns)
        return keys, values, count


@entry(ENTRIES, "CreateKeyValuePairs", POINTER, returns=None)
def _create(out: int | None) -> None:
    write_pointer(out, keep(KeyValuePairs()))


@entry(ENTRIES, "AddKeyValuePair", POINTER, POINTER, POINTER, returns=None)
def _add(pairs: int | None, key: int | None, value: int | None) -> None:
    find(pairs, KeyValuePairs)[read_text(key)] = read_text(value)


@entry(ENTRIES, "GetKeyValue", POINTER, POINTER, returns=POINTER)
def _get(pairs: int | None, key: int | None) -> int | None:
    return find(pairs, KeyValuePairs).get(read_text(key))


@entry(ENTRIES, "GetKeyValuePairs", POINTER, POINTER, POINTER, POINTER, returns=None)
def _get_all(pairs: int | None, keys: int | None, values: int | None, count: int | None) -> None:
    first, second, number = find(pairs, KeyValuePairs).columns()
    write_pointer(keys, first)
    write_pointer(values, second)
    write_size(count, number)


@entry(ENTRIES, "RemoveKeyValuePair", POINTER, POINTER, returns=None)
def _remove(pairs: int | None, key: int | None) -> None:
    find(pairs, KeyValuePairs).remove(read_text(key))


@entry(ENTRIES, "ReleaseKeyValuePairs", POINTER, returns=None)
def _release(pairs: int | None) -> None:
    drop(pairs)


@entry(ENTRIES, "KernelInfo_GetConfigEntries", POINTER, POINTER)
def _get_config_entries(info: int | None, out: int | None) -> None:
    _give(find(info, NodeInfo).site.config, out)


def _give(texts: Mapping[str, str], out: int | None) -> None:
    made = KeyValuePairs()
    for key, value in texts.items():
        made[key] = value
    write_pointer(out, keep(made))


@entry(ENTRIES, "GetSessionOptionsConfigEntries", POINTER, POINTER)
def _get_session_options_config_entries(options: int | None, out: int | None) -> None:
    _give(find(options, Registration).config, out)


@entry(ENTRIES, "AllocatorGetStats", POINTER, POINTER)
def _allocator_get_stats(allocator: int | None, out: int | None) -> None:
    check_allocator(allocator)
    _give({}, out)


@entry(ENTRIES, "GetBuildInfoString", returns=POINTER)
def _get_build_info() -> int:
    return address_of(_BUILD)
