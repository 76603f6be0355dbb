"""The machine code that stands in for methods, and what it stands on."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
from support.native_runs import learned, only_native
from support.session_models import MLP, rows, session

from sardonyx.session.native import function
from sardonyx.session.native.function import native_code, words


def test_words_hold_numbers_of_64_bits() -> None:
    """Signed ones."""
    assert list(words([1, -2, 1 << 62])) == [1, -2, 1 << 62]


def test_this_interpreter_is_known_where_it_should_be() -> None:
    """CPython of the versions that are tested, on machines of 64 bits."""
    expected = sys.implementation.name == "cpython" and sys.version_info < (3, 15) and sys.maxsize > 1 << 32
    assert function._is_known() is expected


@pytest.mark.parametrize(("module", "name", "value"), [(sys, "byteorder", "big"), (np, "__version__", "3.0.0")])
def test_others_are_not(monkeypatch: pytest.MonkeyPatch, module: types.ModuleType, name: str, value: str) -> None:
    """A machine with the upper half first, and a NumPy that may lay arrays out otherwise."""
    monkeypatch.setattr(module, name, value)
    assert not function._is_known()


def test_an_interpreter_with_other_objects_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is compared with what the objects say of themselves."""
    monkeypatch.setattr(function, "_memory", lambda _item, count: [0] * count)
    assert not function._is_known()


def test_sessions_run_where_the_interpreter_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Python."""
    monkeypatch.setattr(function, "_is_known", lambda: False)
    native_code.cache_clear()
    try:
        held = learned(session(MLP), rows(2))
        assert native_code() is None
        assert held.run(None, rows(2))[0].shape == (2, 3)
    finally:
        native_code.cache_clear()


def test_a_fork_makes_what_was_learned_old() -> None:
    """Runs go through Python, and learn anew."""
    held, code = learned(session(MLP), rows(2)), native_code()
    assert code is not None
    before = code.generation
    code.after_fork()
    assert code.generation == before + 1
    with pytest.raises(AssertionError), only_native(held):
        held.run(None, rows(2))
    learned(held, rows(2))
    with only_native(held):
        assert held.run(None, rows(2))[0].shape == (2, 3)
