"""The names of onnxruntime's compiled module that have meaning for inference."""

from __future__ import annotations

from sardonyx.capi.kernel_defs import get_all_operator_schema, get_all_opkernel_def, get_registered_ep_kernel_defs
from sardonyx.capi.session_io_binding import SessionIOBinding
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
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,  # noqa: A004  the name that onnxruntime gives it
    RuntimeException,
)
from sardonyx.logs import set_default_logger_callback, set_default_logger_severity, set_default_logger_verbosity
from sardonyx.process import (
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_device,
    get_version_string,
    has_collective_ops,
    set_global_thread_pool_sizes,
)
from sardonyx.provider import Compatibility as OrtCompiledModelCompatibility
from sardonyx.session.context.compatibility import (
    get_compatibility_info_from_model,
    get_compatibility_info_from_model_bytes,
    get_model_compatibility_for_ep_devices,
)
from sardonyx.session.context.data import OrtEpContextData, OrtEpContextDataBuffer, OrtExternalInitializerInfo
from sardonyx.session.context.model_compiler import ModelCompiler, OrtCompileApiFlags
from sardonyx.session.native_session import (
    InferenceSession,
    SessionObjectInitializer,
    get_default_session_options,
    get_session_initializer,
)
from sardonyx.session.options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from sardonyx.session.placement.assignment_info import OrtEpAssignedNode, OrtEpAssignedSubgraph
from sardonyx.session.providers import get_all_providers, get_available_providers
from sardonyx.session.seeds import set_seed
from sardonyx.session.values import ModelMetadata, NodeArg
from sardonyx.values.device import OrtDevice, OrtDeviceMemoryType
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
    ArenaExtendStrategy,
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
from sardonyx.values.sparse_tensor import OrtSparseFormat, SparseBlockSparseView, SparseCooView, SparseCsrView, SparseTensor

__all__ = [
    "ArenaExtendStrategy",
    "DeviceReset",
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelCompiler",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelMetadata",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotFound",
    "NotImplemented",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtCompileApiFlags",
    "OrtCompiledModelCompatibility",
    "OrtDevice",
    "OrtDeviceEpIncompatibilityReason",
    "OrtDeviceMemoryType",
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
    "RunOptions",
    "RuntimeException",
    "SessionIOBinding",
    "SessionObjectInitializer",
    "SessionOptions",
    "SparseBlockSparseView",
    "SparseCooView",
    "SparseCsrView",
    "SparseTensor",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_operator_schema",
    "get_all_opkernel_def",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_compatibility_info_from_model",
    "get_compatibility_info_from_model_bytes",
    "get_default_session_options",
    "get_device",
    "get_ep_devices",
    "get_hardware_device_ep_incompatibility_details",
    "get_hardware_devices",
    "get_model_compatibility_for_ep_devices",
    "get_registered_ep_kernel_defs",
    "get_session_initializer",
    "get_version_string",
    "has_collective_ops",
    "kNextPowerOfTwo",
    "kSameAsRequested",
    "register_execution_provider_library",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "unregister_execution_provider_library",
]

kNextPowerOfTwo = ArenaExtendStrategy.kNextPowerOfTwo  # noqa: N816  onnxruntime's names
kSameAsRequested = ArenaExtendStrategy.kSameAsRequested  # noqa: N816  as above
