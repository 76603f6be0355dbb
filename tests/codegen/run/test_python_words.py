"""Records of words, and the functions of CPython that machine code calls."""

from __future__ import annotations

import ctypes

from sardonyx.codegen.run.python_words import CALL, FUNCTIONS


def test_cpython_has_every_function() -> None:
    """In its shared symbols, as extension modules find them."""
    assert all(hasattr(ctypes.pythonapi, name) for name in FUNCTIONS)


def test_no_word_stands_twice() -> None:
    """Names are places."""
    assert len(set(CALL)) == len(CALL)
