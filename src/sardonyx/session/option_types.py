"""The types of the properties of options, checked as onnxruntime's compiled classes check them."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.arguments import as_flag
from sardonyx.session.enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel

__all__ = ["PROPERTIES", "typed"]


def _flag(value: Any) -> bool:
    return as_flag("a flag", value)


def _integer(value: Any) -> int:
    number = _whole(value)
    if not -(2**31) <= number < 2**31:
        raise TypeError
    return number


def _whole(value: Any) -> int:
    """Return an integer; NumPy's bool and its floats of 16 and 32 bits count as onnxruntime counts them, where they are whole."""
    if isinstance(value, np.generic) and not isinstance(value, float):
        if value != int(value):
            raise TypeError
        return int(value)
    return operator.index(value)


def _milliseconds(value: Any) -> float:
    if isinstance(value, (str, bytes)) or not float(value) >= 0:
        raise TypeError
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError
    return os.fsdecode(value)


def _member(kind: type) -> Callable[[object], object]:
    def check(value: object) -> object:
        if not isinstance(value, kind):
            raise TypeError
        return value

    return check


_FLAG, _INTEGER, _TEXT = ("a bool", _flag), ("an integer of 32 bits", _integer), ("a text", _text)
_MILLISECONDS = "a number of milliseconds of at least 0", _milliseconds
PROPERTIES: dict[str, tuple[str, Callable[[object], object]]] = {
    "enable_cpu_mem_arena": _FLAG,
    "enable_mem_pattern": _FLAG,
    "enable_mem_reuse": _FLAG,
    "enable_profiling": _FLAG,
    "execution_mode": ("an ExecutionMode", _member(ExecutionMode)),
    "execution_order": ("an ExecutionOrder", _member(ExecutionOrder)),
    "graph_optimization_level": ("a GraphOptimizationLevel", _member(GraphOptimizationLevel)),
    "inter_op_num_threads": _INTEGER,
    "intra_op_num_threads": _INTEGER,
    "load_timeout_ms": _MILLISECONDS,
    "log_severity_level": _INTEGER,
    "log_verbosity_level": _INTEGER,
    "logid": _TEXT,
    "only_execute_path_to_fetches": _FLAG,
    "optimized_model_filepath": _TEXT,
    "profile_file_prefix": _TEXT,
    "terminate": _FLAG,
    "timeout_ms": _MILLISECONDS,
    "use_deterministic_compute": _FLAG,
    "use_per_session_threads": _FLAG,
}
"""Property -> what it takes in words, and the function that makes its value or raises TypeError."""


def typed(owner: str, name: str, value: object) -> object:
    """Return the value of a property, whose type is the property's.

    Args:
        owner: the class, for the message.
        name: the property; one that `PROPERTIES` lacks takes anything.
        value: what it is set to, of any type.

    Raises:
        TypeError: it is of another type.
    """
    if name not in PROPERTIES:
        return value
    words, made = PROPERTIES[name]
    try:
        return made(value)
    except TypeError as error:
        raise TypeError(f"{owner}.{name} takes {words}, got {value!r:.100}") from error
