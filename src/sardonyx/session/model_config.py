"""Options that a model's file brings itself: the entry `ort_config` of its metadata, as onnxruntime reads it.

    {"session_options": {"intra_op_num_threads": 2, "graph_optimization_level": 99, "enable_profiling": 0}}

They are read where a session is asked to, and then take the place of the options that it is given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.session.enums import ExecutionMode, GraphOptimizationLevel
from sardonyx.session.options import SessionOptions

__all__ = ["METADATA_KEY", "options_of_model"]

METADATA_KEY = "ort_config"
"""The entry of a model's metadata."""
_READERS: Mapping[str, Callable[[int], object]] = {
    "enable_profiling": bool,
    "execution_mode": ExecutionMode,
    "graph_optimization_level": GraphOptimizationLevel,
    "inter_op_num_threads": int,
    "intra_op_num_threads": int,
}
"""Properties of SessionOptions that a file may set, each a number in the file."""


def options_of_model(given: OnnxValue, options: SessionOptions) -> SessionOptions:
    """Return the options that a model brings, and `options` where it brings none.

    Args:
        given: a path, bytes or a ModelProto.
        options: the session's own.

    Raises:
        InvalidArgument: the model comes from a file object, which could not be read again, or its entry is malformed.
        SardonyxError: the model cannot be loaded.
    """
    if hasattr(given, "read"):
        raise InvalidArgument("options are read from models that are given as a path, bytes or a ModelProto, not as a file object")
    with without_fork():
        from sardonyx.formats import models  # `import sardonyx` stays fast without it

    text = models.load(given).metadata.get(METADATA_KEY)
    return options if text is None else _parsed(text, os.fspath(given) if isinstance(given, (str, os.PathLike)) else "of bytes")


def _parsed(text: str, label: str) -> SessionOptions:
    try:
        found = dict(json.loads(text))["session_options"]
        entries = {name: int(value) for name, value in dict(found).items()}
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise InvalidArgument(
            f'model {label}: {METADATA_KEY} in its metadata is {{"session_options": {{NAME: NUMBER}}}}, got {text!r:.200}'
        ) from error
    options = SessionOptions()
    for name, number in entries.items():
        if name not in _READERS:
            raise InvalidArgument(f"model {label}: {METADATA_KEY} sets {name!r}, but may set {', '.join(_READERS)} only")
        try:
            setattr(options, name, _READERS[name](number))
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"model {label}: {METADATA_KEY} sets {name} to {number}: {error}") from error
    return options
