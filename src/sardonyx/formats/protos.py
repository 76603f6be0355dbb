"""ONNX's protobuf messages, without the rest of the `onnx` package, which takes ten times as long to load.

protos().ModelProto()            what `import onnx` calls onnx.ModelProto: the very same class
"""

from __future__ import annotations

import functools
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, TypeAlias

from sardonyx.errors import Fail
from sardonyx.forks import without_fork

__all__ = ["Message", "protos"]

Message: TypeAlias = Any
"""A message of protobuf, or one of its fields: its classes are made when onnx is imported, and carry no types."""


@functools.cache
def protos() -> Any:  # a module that carries no types
    """Return the module of message classes.

    Raises:
        Fail: the package `onnx`, or `protobuf` under it, is missing or broken.
    """
    try:
        with without_fork():
            return _load()
    except ImportError as error:
        raise Fail(f"ONNX models need the package onnx, which cannot be imported ({error}); pip install onnx protobuf") from error


def _load() -> Any:
    spec = None if "onnx" in sys.modules else find_spec("onnx")
    file = Path(spec.origin).with_name("onnx_ml_pb2.py") if spec is not None and spec.origin is not None else None
    alone = spec_from_file_location("onnx.onnx_ml_pb2", file) if file is not None and file.is_file() else None
    if alone is None or alone.loader is None:
        with without_fork():
            import onnx

        return onnx
    module = module_from_spec(alone)
    alone.loader.exec_module(module)
    return module
