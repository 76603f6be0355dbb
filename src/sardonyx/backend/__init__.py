"""The interface of `onnx.backend`, under onnxruntime's name.

import sardonyx.backend as backend
outputs = backend.run("model.onnx", [x])
"""

from sardonyx.backend.backend import OnnxRuntimeBackend, SardonyxBackend, is_compatible, prepare, run, supports_device
from sardonyx.backend.backend_rep import SardonyxBackendRep

__all__ = ["OnnxRuntimeBackend", "SardonyxBackend", "SardonyxBackendRep", "is_compatible", "prepare", "run", "supports_device"]
