"""What another user of the machine sees, for tests that run as root."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable
from typing import TypeVar

import pytest

STRANGER = 54321
"""A user and group that owns nothing."""
needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can act as another user")
_T = TypeVar("_T")


def as_another_user(work: Callable[[], _T]) -> _T:
    """Return what `work` returns in a child of this process that runs as STRANGER; raises what it raises there, as RuntimeError."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn where there are threads; the child starts none
        child = os.fork()
    if not child:
        answer = pickle.dumps((None, "the child failed"))
        try:
            os.setgroups([])
            os.setresgid(STRANGER, STRANGER, STRANGER)
            os.setresuid(STRANGER, STRANGER, STRANGER)
            answer = pickle.dumps((work(), ""))
        except Exception as error:  # noqa: BLE001  the parent raises it
            answer = pickle.dumps((None, repr(error)))
        finally:
            os.write(writing, answer)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        content = stream.read()
    os.waitpid(child, 0)
    result, problem = pickle.loads(content)
    if problem:
        raise RuntimeError(problem)
    found: _T = result
    return found
