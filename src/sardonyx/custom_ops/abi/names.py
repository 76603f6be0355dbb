"""The functions of OrtApi in the order of the table, by the version of the interface that added them.

The table only ever grows: a library compiled for version N calls the functions of the versions up to N, by position.
Source: struct OrtApi of onnxruntime_c_api.h, ONNX Runtime 1.1 to 1.29.
"""

from __future__ import annotations

__all__ = ["API_VERSION", "FUNCTIONS", "INDEX", "NO_STATUS", "SINCE"]

_ADDED = {
    1: """
    CreateStatus GetErrorCode GetErrorMessage CreateEnv CreateEnvWithCustomLogger EnableTelemetryEvents DisableTelemetryEvents
    CreateSession CreateSessionFromArray Run CreateSessionOptions SetOptimizedModelFilePath CloneSessionOptions
    SetSessionExecutionMode EnableProfiling DisableProfiling EnableMemPattern DisableMemPattern EnableCpuMemArena
    DisableCpuMemArena SetSessionLogId SetSessionLogVerbosityLevel SetSessionLogSeverityLevel SetSessionGraphOptimizationLevel
    SetIntraOpNumThreads SetInterOpNumThreads CreateCustomOpDomain CustomOpDomain_Add AddCustomOpDomain RegisterCustomOpsLibrary
    SessionGetInputCount SessionGetOutputCount SessionGetOverridableInitializerCount SessionGetInputTypeInfo
    SessionGetOutputTypeInfo SessionGetOverridableInitializerTypeInfo SessionGetInputName SessionGetOutputName
    SessionGetOverridableInitializerName CreateRunOptions RunOptionsSetRunLogVerbosityLevel RunOptionsSetRunLogSeverityLevel
    RunOptionsSetRunTag RunOptionsGetRunLogVerbosityLevel RunOptionsGetRunLogSeverityLevel RunOptionsGetRunTag
    RunOptionsSetTerminate RunOptionsUnsetTerminate CreateTensorAsOrtValue CreateTensorWithDataAsOrtValue IsTensor
    GetTensorMutableData FillStringTensor GetStringTensorDataLength GetStringTensorContent CastTypeInfoToTensorInfo
    GetOnnxTypeFromTypeInfo CreateTensorTypeAndShapeInfo SetTensorElementType SetDimensions GetTensorElementType
    GetDimensionsCount GetDimensions GetSymbolicDimensions GetTensorShapeElementCount GetTensorTypeAndShape GetTypeInfo
    GetValueType CreateMemoryInfo CreateCpuMemoryInfo CompareMemoryInfo MemoryInfoGetName MemoryInfoGetId MemoryInfoGetMemType
    MemoryInfoGetType AllocatorAlloc AllocatorFree AllocatorGetInfo GetAllocatorWithDefaultOptions AddFreeDimensionOverride
    GetValue GetValueCount CreateValue CreateOpaqueValue GetOpaqueValue KernelInfoGetAttribute_float KernelInfoGetAttribute_int64
    KernelInfoGetAttribute_string KernelContext_GetInputCount KernelContext_GetOutputCount KernelContext_GetInput
    KernelContext_GetOutput ReleaseEnv ReleaseStatus ReleaseMemoryInfo ReleaseSession ReleaseValue ReleaseRunOptions
    ReleaseTypeInfo ReleaseTensorTypeAndShapeInfo ReleaseSessionOptions ReleaseCustomOpDomain
    """,
    2: """
    GetDenotationFromTypeInfo CastTypeInfoToMapTypeInfo CastTypeInfoToSequenceTypeInfo GetMapKeyType GetMapValueType
    GetSequenceElementType ReleaseMapTypeInfo ReleaseSequenceTypeInfo SessionEndProfiling SessionGetModelMetadata
    ModelMetadataGetProducerName ModelMetadataGetGraphName ModelMetadataGetDomain ModelMetadataGetDescription
    ModelMetadataLookupCustomMetadataMap ModelMetadataGetVersion ReleaseModelMetadata
    """,
    3: """
    CreateEnvWithGlobalThreadPools DisablePerSessionThreads CreateThreadingOptions ReleaseThreadingOptions
    ModelMetadataGetCustomMetadataMapKeys AddFreeDimensionOverrideByName
    """,
    4: """
    GetAvailableProviders ReleaseAvailableProviders
    """,
    5: """
    GetStringTensorElementLength GetStringTensorElement FillStringTensorElement AddSessionConfigEntry CreateAllocator
    ReleaseAllocator RunWithBinding CreateIoBinding ReleaseIoBinding BindInput BindOutput BindOutputToDevice GetBoundOutputNames
    GetBoundOutputValues ClearBoundInputs ClearBoundOutputs TensorAt CreateAndRegisterAllocator SetLanguageProjection
    SessionGetProfilingStartTimeNs SetGlobalIntraOpNumThreads SetGlobalInterOpNumThreads SetGlobalSpinControl
    """,
    6: """
    AddInitializer CreateEnvWithCustomLoggerAndGlobalThreadPools SessionOptionsAppendExecutionProvider_CUDA
    SessionOptionsAppendExecutionProvider_ROCM SessionOptionsAppendExecutionProvider_OpenVINO SetGlobalDenormalAsZero
    CreateArenaCfg ReleaseArenaCfg
    """,
    7: """
    ModelMetadataGetGraphDescription SessionOptionsAppendExecutionProvider_TensorRT SetCurrentGpuDeviceId GetCurrentGpuDeviceId
    """,
    8: """
    KernelInfoGetAttributeArray_float KernelInfoGetAttributeArray_int64 CreateArenaCfgV2 AddRunConfigEntry
    CreatePrepackedWeightsContainer ReleasePrepackedWeightsContainer CreateSessionWithPrepackedWeightsContainer
    CreateSessionFromArrayWithPrepackedWeightsContainer
    """,
    9: """
    SessionOptionsAppendExecutionProvider_TensorRT_V2 CreateTensorRTProviderOptions UpdateTensorRTProviderOptions
    GetTensorRTProviderOptionsAsString ReleaseTensorRTProviderOptions EnableOrtCustomOps RegisterAllocator UnregisterAllocator
    IsSparseTensor CreateSparseTensorAsOrtValue FillSparseTensorCoo FillSparseTensorCsr FillSparseTensorBlockSparse
    CreateSparseTensorWithValuesAsOrtValue UseCooIndices UseCsrIndices UseBlockSparseIndices GetSparseTensorFormat
    GetSparseTensorValuesTypeAndShape GetSparseTensorValues GetSparseTensorIndicesTypeShape GetSparseTensorIndices
    """,
    10: """
    HasValue KernelContext_GetGPUComputeStream GetTensorMemoryInfo GetExecutionProviderApi SessionOptionsSetCustomCreateThreadFn
    SessionOptionsSetCustomThreadCreationOptions SessionOptionsSetCustomJoinThreadFn SetGlobalCustomCreateThreadFn
    SetGlobalCustomThreadCreationOptions SetGlobalCustomJoinThreadFn SynchronizeBoundInputs SynchronizeBoundOutputs
    """,
    11: """
    SessionOptionsAppendExecutionProvider_CUDA_V2 CreateCUDAProviderOptions UpdateCUDAProviderOptions
    GetCUDAProviderOptionsAsString ReleaseCUDAProviderOptions SessionOptionsAppendExecutionProvider_MIGraphX
    """,
    12: """
    AddExternalInitializers CreateOpAttr ReleaseOpAttr CreateOp InvokeOp ReleaseOp SessionOptionsAppendExecutionProvider
    CopyKernelInfo ReleaseKernelInfo
    """,
    13: """
    GetTrainingApi SessionOptionsAppendExecutionProvider_CANN CreateCANNProviderOptions UpdateCANNProviderOptions
    GetCANNProviderOptionsAsString ReleaseCANNProviderOptions
    """,
    14: """
    MemoryInfoGetDeviceType UpdateEnvWithCustomLogLevel SetGlobalIntraOpThreadAffinity RegisterCustomOpsLibrary_V2
    RegisterCustomOpsUsingFunction KernelInfo_GetInputCount KernelInfo_GetOutputCount KernelInfo_GetInputName
    KernelInfo_GetOutputName KernelInfo_GetInputTypeInfo KernelInfo_GetOutputTypeInfo KernelInfoGetAttribute_tensor
    HasSessionConfigEntry GetSessionConfigEntry
    """,
    15: """
    SessionOptionsAppendExecutionProvider_Dnnl CreateDnnlProviderOptions UpdateDnnlProviderOptions GetDnnlProviderOptionsAsString
    ReleaseDnnlProviderOptions KernelInfo_GetNodeName KernelInfo_GetLogger KernelContext_GetLogger Logger_LogMessage
    Logger_GetLoggingSeverityLevel KernelInfoGetConstantInput_tensor CastTypeInfoToOptionalTypeInfo GetOptionalContainedTypeInfo
    GetResizedStringTensorElementBuffer KernelContext_GetAllocator GetBuildInfoString
    """,
    16: """
    CreateROCMProviderOptions UpdateROCMProviderOptions GetROCMProviderOptionsAsString ReleaseROCMProviderOptions
    CreateAndRegisterAllocatorV2 RunAsync UpdateTensorRTProviderOptionsWithValue GetTensorRTProviderOptionsByName
    UpdateCUDAProviderOptionsWithValue GetCUDAProviderOptionsByName KernelContext_GetResource
    """,
    17: """
    SetUserLoggingFunction ShapeInferContext_GetInputCount ShapeInferContext_GetInputTypeShape ShapeInferContext_GetAttribute
    ShapeInferContext_SetOutputTypeShape SetSymbolicDimensions ReadOpAttr SetDeterministicCompute KernelContext_ParallelFor
    SessionOptionsAppendExecutionProvider_OpenVINO_V2
    """,
    18: """
    SessionOptionsAppendExecutionProvider_VitisAI KernelContext_GetScratchBuffer KernelInfoGetAllocator
    AddExternalInitializersFromFilesInMemory
    """,
    20: """
    CreateLoraAdapter CreateLoraAdapterFromArray ReleaseLoraAdapter RunOptionsAddActiveLoraAdapter SetEpDynamicOptions
    """,
    22: """
    ReleaseValueInfo ReleaseNode ReleaseGraph ReleaseModel GetValueInfoName GetValueInfoTypeInfo GetModelEditorApi
    CreateTensorWithDataAndDeleterAsOrtValue SessionOptionsSetLoadCancellationFlag GetCompileApi CreateKeyValuePairs
    AddKeyValuePair GetKeyValue GetKeyValuePairs RemoveKeyValuePair ReleaseKeyValuePairs RegisterExecutionProviderLibrary
    UnregisterExecutionProviderLibrary GetEpDevices SessionOptionsAppendExecutionProvider_V2 SessionOptionsSetEpSelectionPolicy
    SessionOptionsSetEpSelectionPolicyDelegate HardwareDevice_Type HardwareDevice_VendorId HardwareDevice_Vendor
    HardwareDevice_DeviceId HardwareDevice_Metadata EpDevice_EpName EpDevice_EpVendor EpDevice_EpMetadata EpDevice_EpOptions
    EpDevice_Device GetEpApi
    """,
    23: """
    GetTensorSizeInBytes AllocatorGetStats CreateMemoryInfo_V2 MemoryInfoGetDeviceMemType MemoryInfoGetVendorId
    ValueInfo_GetValueProducer ValueInfo_GetValueNumConsumers ValueInfo_GetValueConsumers ValueInfo_GetInitializerValue
    ValueInfo_GetExternalInitializerInfo ValueInfo_IsRequiredGraphInput ValueInfo_IsOptionalGraphInput ValueInfo_IsGraphOutput
    ValueInfo_IsConstantInitializer ValueInfo_IsFromOuterScope Graph_GetName Graph_GetModelPath Graph_GetOnnxIRVersion
    Graph_GetNumOperatorSets Graph_GetOperatorSets Graph_GetNumInputs Graph_GetInputs Graph_GetNumOutputs Graph_GetOutputs
    Graph_GetNumInitializers Graph_GetInitializers Graph_GetNumNodes Graph_GetNodes Graph_GetParentNode Graph_GetGraphView
    Node_GetId Node_GetName Node_GetOperatorType Node_GetDomain Node_GetSinceVersion Node_GetNumInputs Node_GetInputs
    Node_GetNumOutputs Node_GetOutputs Node_GetNumImplicitInputs Node_GetImplicitInputs Node_GetNumAttributes Node_GetAttributes
    Node_GetAttributeByName OpAttr_GetTensorAttributeAsOrtValue OpAttr_GetType OpAttr_GetName Node_GetNumSubgraphs
    Node_GetSubgraphs Node_GetGraph Node_GetEpName ReleaseExternalInitializerInfo ExternalInitializerInfo_GetFilePath
    ExternalInitializerInfo_GetFileOffset ExternalInitializerInfo_GetByteSize GetRunConfigEntry EpDevice_MemoryInfo
    CreateSharedAllocator GetSharedAllocator ReleaseSharedAllocator GetTensorData GetSessionOptionsConfigEntries
    SessionGetMemoryInfoForInputs SessionGetMemoryInfoForOutputs SessionGetEpDeviceForInputs CreateSyncStreamForEpDevice
    SyncStream_GetHandle ReleaseSyncStream CopyTensors Graph_GetModelMetadata GetModelCompatibilityForEpDevices
    CreateExternalInitializerInfo
    """,
    24: """
    TensorTypeAndShape_HasShape KernelInfo_GetConfigEntries KernelInfo_GetOperatorDomain KernelInfo_GetOperatorType
    KernelInfo_GetOperatorSinceVersion GetInteropApi SessionGetEpDeviceForOutputs GetNumHardwareDevices GetHardwareDevices
    GetHardwareDeviceEpIncompatibilityDetails DeviceEpIncompatibilityDetails_GetReasonsBitmask
    DeviceEpIncompatibilityDetails_GetNotes DeviceEpIncompatibilityDetails_GetErrorCode ReleaseDeviceEpIncompatibilityDetails
    GetCompatibilityInfoFromModel GetCompatibilityInfoFromModelBytes CreateEnvWithOptions Session_GetEpGraphAssignmentInfo
    EpAssignedSubgraph_GetEpName EpAssignedSubgraph_GetNodes EpAssignedNode_GetName EpAssignedNode_GetDomain
    EpAssignedNode_GetOperatorType RunOptionsSetSyncStream GetTensorElementTypeAndShapeDataReference
    """,
    25: """
    RunOptionsEnableProfiling RunOptionsDisableProfiling KernelInfoGetAttributeArray_string SetPerSessionThreadPoolCallbacks
    """,
    27: """
    GetMemPatternEnabled GetSessionExecutionMode SessionReleaseCapturedGraph
    """,
    28: """
    GetExperimentalFunction KernelContext_GetSyncStream
    """,
    29: """
    SessionOptionsSetWeightlessSourceModelBuffer
    """,
}
"""Version -> the functions that it added, in order."""

API_VERSION = 32
"""The newest version of the interface that is handed out; versions 30 to 32 add nothing that a custom operator calls."""

FUNCTIONS: tuple[str, ...] = tuple(name for names in _ADDED.values() for name in names.split())
"""The name of each entry of the table."""

INDEX: dict[str, int] = {name: index for index, name in enumerate(FUNCTIONS)}
"""Name -> its place in the table."""

SINCE: dict[str, int] = {name: version for version, names in _ADDED.items() for name in names.split()}
"""Name -> the version of the interface that added it."""

NO_STATUS: frozenset[str] = frozenset(
    """
    GetErrorCode GetErrorMessage ClearBoundInputs ClearBoundOutputs GetTrainingApi MemoryInfoGetDeviceType
    GetBuildInfoString GetModelEditorApi GetCompileApi CreateKeyValuePairs AddKeyValuePair GetKeyValue GetKeyValuePairs
    RemoveKeyValuePair HardwareDevice_Type HardwareDevice_VendorId HardwareDevice_Vendor HardwareDevice_DeviceId
    HardwareDevice_Metadata EpDevice_EpName EpDevice_EpVendor EpDevice_EpMetadata EpDevice_EpOptions EpDevice_Device
    GetEpApi MemoryInfoGetDeviceMemType MemoryInfoGetVendorId ExternalInitializerInfo_GetFilePath
    ExternalInitializerInfo_GetFileOffset ExternalInitializerInfo_GetByteSize GetRunConfigEntry EpDevice_MemoryInfo
    SyncStream_GetHandle TensorTypeAndShape_HasShape GetInteropApi RunOptionsSetSyncStream GetExperimentalFunction
    """.split()
) | frozenset(
    name for name in FUNCTIONS if name.startswith("Release") and name not in ("ReleaseAvailableProviders", "ReleaseSharedAllocator")
)
"""The functions that return something else than a status, or nothing."""
