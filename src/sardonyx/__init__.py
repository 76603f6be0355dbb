"""sardonyx: an ONNX inference engine in Python, from the file to the kernel.

import sardonyx as ort
session = ort.InferenceSession("model.onnx")
outputs = session.run(None, {"x": x})
"""

from sardonyx.errors import (
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelRequiresCompilation,
    NoSuchFile,
    NotImplemented,  # noqa: A004  the name that onnxruntime gives it
    RuntimeException,
    SardonyxError,
)
from sardonyx.provider import Compatibility as OrtCompiledModelCompatibility
from sardonyx.session.context.compatibility import (
    get_compatibility_info_from_model,
    get_compatibility_info_from_model_bytes,
    get_model_compatibility_for_ep_devices,
)
from sardonyx.session.context.data import OrtEpContextData, OrtEpContextDataBuffer, OrtExternalInitializerInfo
from sardonyx.session.context.model_compiler import ModelCompiler, OrtCompileApiFlags
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from sardonyx.session.providers import get_all_providers, get_available_providers
from sardonyx.session.seeds import set_seed
from sardonyx.session.values import ModelMetadata, NodeArg
from sardonyx.version import __version__

__all__ = [
    "EPFail",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelCompiler",
    "ModelMetadata",
    "ModelRequiresCompilation",
    "NoSuchFile",
    "NodeArg",
    "NotImplemented",
    "OrtCompileApiFlags",
    "OrtCompiledModelCompatibility",
    "OrtEpContextData",
    "OrtEpContextDataBuffer",
    "OrtExternalInitializerInfo",
    "RunOptions",
    "RuntimeException",
    "SardonyxError",
    "SessionOptions",
    "__version__",
    "get_all_providers",
    "get_available_providers",
    "get_compatibility_info_from_model",
    "get_compatibility_info_from_model_bytes",
    "get_device",
    "get_model_compatibility_for_ep_devices",
    "get_version_string",
    "set_seed",
]


def get_device() -> str:
    """The kind of device that the build is for, as onnxruntime names it."""
    return "CPU"


def get_version_string() -> str:
    """The version of sardonyx."""
    return __version__
