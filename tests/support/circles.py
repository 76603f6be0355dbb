"""Whether objects of a model go when their last reference goes, without the garbage collector."""

from __future__ import annotations

import collections
import gc
from collections.abc import Callable

from sardonyx import InferenceSession
from sardonyx.ir import Graph, Model, Node, Tensor, Value
from sardonyx.runtime.plan import Plan

_KINDS = (Graph, InferenceSession, Model, Node, Plan, Tensor, Value)


def assert_no_circles(action: Callable[[], None]) -> None:
    """Fail where `action` leaves objects of models or sessions behind, after a first time that may fill caches."""
    action()
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        before = _count()
        action()
        left = _count() - before
    finally:
        if was_enabled:
            gc.enable()
    assert not left, f"left behind: {dict(left)}"


def _count() -> collections.Counter[str]:
    return collections.Counter(type(item).__name__ for item in gc.get_objects() if isinstance(item, _KINDS))
