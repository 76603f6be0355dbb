"""Leave to use AMX."""

from __future__ import annotations

import ctypes
import sys

import pytest

from sardonyx.codegen.tile_permission import tiles_are_permitted


def _found(monkeypatch: pytest.MonkeyPatch, answer: int) -> tuple[bool, list[int]]:
    """What a process concludes from the answer of the system, and what it asked."""
    asked: list[int] = []

    class _Syscall:
        def __call__(self, *words: ctypes.c_long) -> int:
            asked.extend(word.value for word in words)
            return answer

    class _Library:
        syscall = _Syscall()

    monkeypatch.setattr(ctypes, "CDLL", lambda _: _Library())
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    return tiles_are_permitted.__wrapped__(), asked


def test_what_the_system_grants_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for component 18 of the extended state, the data of tiles."""
    assert _found(monkeypatch, 0) == (True, [158, 0x1023, 18])


def test_what_the_system_refuses_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """-1, as of a kernel that does not know the request."""
    assert not _found(monkeypatch, -1)[0]


@pytest.mark.parametrize(("system", "processor"), [("win32", "x86_64"), ("darwin", "x86_64"), ("linux", "aarch64")])
def test_other_systems_are_not_asked(monkeypatch: pytest.MonkeyPatch, system: str, processor: str) -> None:
    """Nor other processors: the number of the call means something else there."""
    monkeypatch.setattr(ctypes, "CDLL", pytest.fail)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr("platform.machine", lambda: processor)
    assert not tiles_are_permitted.__wrapped__()


def test_the_answer_is_the_same_each_time() -> None:
    """The system is asked once."""
    assert tiles_are_permitted() is tiles_are_permitted()
