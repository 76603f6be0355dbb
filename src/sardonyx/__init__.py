"""sardonyx: an ONNX inference engine in Python, from the file to the kernel.

import sardonyx as ort
session = ort.InferenceSession("model.onnx")
outputs = session.run(None, {"x": x})
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from sardonyx.errors import (
    DeviceReset,
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelLoadTimedOut,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,  # noqa: A004  the name that onnxruntime gives it
    RunTerminated,
    RunTimedOut,
    RuntimeException,
    SardonyxError,
)
from sardonyx.forks import without_fork
from sardonyx.logs import set_default_logger_callback, set_default_logger_severity, set_default_logger_verbosity
from sardonyx.process import (
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_device,
    get_version_string,
    has_collective_ops,
    preload_dlls,
    set_global_thread_pool_sizes,
)
from sardonyx.provider import Compatibility as OrtCompiledModelCompatibility
from sardonyx.session.context.data import OrtEpContextData, OrtEpContextDataBuffer, OrtExternalInitializerInfo
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, SessionOptions
from sardonyx.session.providers import get_all_providers, get_available_providers
from sardonyx.session.run_options import RunOptions
from sardonyx.session.values import ModelMetadata, NodeArg

if TYPE_CHECKING:
    from sardonyx import capi as capi
    from sardonyx.capi.session_io_binding import SessionIOBinding
    from sardonyx.custom_ops.definition import Site as OperatorSite
    from sardonyx.custom_ops.expression import expression_op
    from sardonyx.custom_ops.function import PythonOperator, op
    from sardonyx.custom_ops.registered import register_operator, registered_operators, unregister_operator
    from sardonyx.formats.registry import register_format, registered_formats, unregister_format
    from sardonyx.model_packages.context import ModelPackageComponentContext, ModelPackageContext, ModelPackageOptions
    from sardonyx.model_packages.package import ModelPackage, ModelPackageWriteMode
    from sardonyx.session.adapters import AdapterFormat, LoraAdapter
    from sardonyx.session.context.compatibility import (
        get_compatibility_info_from_model,
        get_compatibility_info_from_model_bytes,
        get_model_compatibility_for_ep_devices,
    )
    from sardonyx.session.context.model_compiler import ModelCompiler, OrtCompileApiFlags
    from sardonyx.session.debug_info import print_debug_info
    from sardonyx.session.io_binding import IOBinding
    from sardonyx.session.memory.live import memory_report, trim
    from sardonyx.session.memory.report import MemoryReport, ProcessMemoryReport
    from sardonyx.session.placement.assignment_info import OrtEpAssignedNode, OrtEpAssignedSubgraph
    from sardonyx.session.seeds import set_seed
    from sardonyx.values.device import OrtDevice, OrtDeviceMemoryType, OrtDeviceVendorId
    from sardonyx.values.hardware import (
        OrtDeviceEpIncompatibilityReason,
        OrtEpDevice,
        OrtExecutionProviderDevicePolicy,
        OrtHardwareDevice,
        OrtHardwareDeviceType,
        OrtSyncStream,
        get_ep_devices,
        get_hardware_device_ep_incompatibility_details,
        get_hardware_devices,
        register_execution_provider_library,
        unregister_execution_provider_library,
    )
    from sardonyx.values.memory_info import (
        OrtAllocatorType,
        OrtArenaCfg,
        OrtMemoryInfo,
        OrtMemoryInfoDeviceType,
        OrtMemType,
        create_and_register_allocator,
        create_and_register_allocator_v2,
    )
    from sardonyx.values.ort_value import OrtValue, copy_tensors
    from sardonyx.values.ort_value_vector import OrtValueVector
    from sardonyx.values.sparse_tensor import OrtSparseFormat, SparseTensor

__all__ = [
    "AdapterFormat",
    "DeviceReset",
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "LoraAdapter",
    "MemoryReport",
    "ModelCompiler",
    "ModelLoadCanceled",
    "ModelLoadTimedOut",
    "ModelLoaded",
    "ModelMetadata",
    "ModelPackage",
    "ModelPackageComponentContext",
    "ModelPackageContext",
    "ModelPackageOptions",
    "ModelPackageWriteMode",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotFound",
    "NotImplemented",
    "OperatorSite",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtCompileApiFlags",
    "OrtCompiledModelCompatibility",
    "OrtDevice",
    "OrtDeviceEpIncompatibilityReason",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "OrtEpContextData",
    "OrtEpContextDataBuffer",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtExternalInitializerInfo",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtSyncStream",
    "OrtValue",
    "OrtValueVector",
    "ProcessMemoryReport",
    "PythonOperator",
    "RunOptions",
    "RunTerminated",
    "RunTimedOut",
    "RuntimeException",
    "SardonyxError",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "__version__",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "expression_op",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_compatibility_info_from_model",
    "get_compatibility_info_from_model_bytes",
    "get_device",
    "get_ep_devices",
    "get_hardware_device_ep_incompatibility_details",
    "get_hardware_devices",
    "get_model_compatibility_for_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "memory_report",
    "op",
    "preload_dlls",
    "print_debug_info",
    "register_execution_provider_library",
    "register_format",
    "register_operator",
    "registered_formats",
    "registered_operators",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "trim",
    "unregister_execution_provider_library",
    "unregister_format",
    "unregister_operator",
]

__version__ = get_version_string()
"""The version of onnxruntime's API, and after a plus sign that of sardonyx, such as 1.32.0+sardonyx.0.1.0."""

_LATER: dict[str, tuple[str, ...]] = {
    "custom_ops.expression": ("expression_op",),
    "custom_ops.function": ("PythonOperator", "op"),
    "custom_ops.registered": ("register_operator", "registered_operators", "unregister_operator"),
    "formats.registry": ("register_format", "registered_formats", "unregister_format"),
    "model_packages.context": ("ModelPackageComponentContext", "ModelPackageContext", "ModelPackageOptions"),
    "model_packages.package": ("ModelPackage", "ModelPackageWriteMode"),
    "session.adapters": ("AdapterFormat", "LoraAdapter"),
    "session.context.compatibility": (
        "get_compatibility_info_from_model",
        "get_compatibility_info_from_model_bytes",
        "get_model_compatibility_for_ep_devices",
    ),
    "session.context.model_compiler": ("ModelCompiler", "OrtCompileApiFlags"),
    "session.debug_info": ("print_debug_info",),
    "capi.session_io_binding": ("SessionIOBinding",),
    "session.io_binding": ("IOBinding",),
    "session.memory.live": ("memory_report", "trim"),
    "session.memory.report": ("MemoryReport", "ProcessMemoryReport"),
    "session.placement.assignment_info": ("OrtEpAssignedNode", "OrtEpAssignedSubgraph"),
    "session.seeds": ("set_seed",),
    "values.device": ("OrtDevice", "OrtDeviceMemoryType", "OrtDeviceVendorId"),
    "values.hardware": (
        "OrtDeviceEpIncompatibilityReason",
        "OrtEpDevice",
        "OrtExecutionProviderDevicePolicy",
        "OrtHardwareDevice",
        "OrtHardwareDeviceType",
        "OrtSyncStream",
        "get_ep_devices",
        "get_hardware_device_ep_incompatibility_details",
        "get_hardware_devices",
        "register_execution_provider_library",
        "unregister_execution_provider_library",
    ),
    "values.memory_info": (
        "OrtAllocatorType",
        "OrtArenaCfg",
        "OrtMemoryInfo",
        "OrtMemoryInfoDeviceType",
        "OrtMemType",
        "create_and_register_allocator",
        "create_and_register_allocator_v2",
    ),
    "values.ort_value": ("OrtValue", "copy_tensors"),
    "values.ort_value_vector": ("OrtValueVector",),
    "values.sparse_tensor": ("OrtSparseFormat", "SparseTensor"),
}
"""Module -> its names here: what few programs use is imported when it is first asked for."""
_MODULES = {name: (module, name) for module, names in _LATER.items() for name in names}
_MODULES["OperatorSite"] = ("custom_ops.definition", "Site")


def __getattr__(name: str) -> object:
    """Return a name of `_LATER`, or the package `capi`; raises AttributeError for another."""
    if name == "capi":
        with without_fork():
            return importlib.import_module("sardonyx.capi")
    if name not in _MODULES:
        raise AttributeError(f"module 'sardonyx' has no attribute {name!r}")
    module, own = _MODULES[name]
    with without_fork():
        found: object = getattr(importlib.import_module(f"sardonyx.{module}"), own)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return all names, also those that nobody asked for yet."""
    return sorted({*globals(), *__all__})
