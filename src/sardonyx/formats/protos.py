"""ONNX's protobuf messages, without the rest of the `onnx` package, which takes ten times as long to load.

protos().ModelProto()            what `import onnx` calls onnx.ModelProto: the very same class
"""

from __future__ import annotations

import functools
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

__all__ = ["protos"]


@functools.cache
def protos() -> Any:  # the module `onnx.onnx_ml_pb2`, which carries no types
    """The module of message classes."""
    spec = None if "onnx" in sys.modules else find_spec("onnx")
    file = Path(spec.origin).with_name("onnx_ml_pb2.py") if spec is not None and spec.origin is not None else None
    if file is None or not file.is_file():
        import onnx

        return onnx
    alone = spec_from_file_location("onnx.onnx_ml_pb2", file)
    if alone is None or alone.loader is None:
        import onnx

        return onnx
    module = module_from_spec(alone)
    alone.loader.exec_module(module)
    return module
