"""The tables of ONNX Runtime's own format.

Source: the public schema of ONNX Runtime (onnxruntime/core/flatbuffers/schema/ort.fbs). Vectors of tables with a required text
are sorted by it, since ONNX Runtime searches them.
"""

from __future__ import annotations

from sardonyx.formats.flat.schema import Schema

__all__ = ["ORT"]

_ENUMS = {
    "AttributeType": "int: UNDEFINED FLOAT INT STRING TENSOR GRAPH FLOATS INTS STRINGS TENSORS GRAPHS SPARSE_TENSOR SPARSE_TENSORS",
    "DimensionValueType": "byte: UNKNOWN VALUE PARAM",
    "TensorDataType": (
        "int: UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64 COMPLEX128 "
        "BFLOAT16 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ"
    ),
    "NodeType": "int: Primitive Fused",
    "ArgType": "byte: INPUT OUTPUT",
}
_UNIONS = {
    "TypeInfoValue": "TensorTypeAndShape SequenceType MapType",
}
_STRUCTS = {
    "EdgeEnd": "node_index:uint src_arg_index:int dst_arg_index:int",
}
_TABLES = {
    "Shape": "dim:[Dimension]",
    "Dimension": "value:DimensionValue denotation:string",
    "DimensionValue": "dim_type:DimensionValueType dim_value:long dim_param:string",
    "TensorTypeAndShape": "elem_type:TensorDataType shape:Shape",
    "MapType": "key_type:TensorDataType value_type:TypeInfo",
    "SequenceType": "elem_type:TypeInfo",
    "NodeEdge": "node_index:uint input_edges:[EdgeEnd] output_edges:[EdgeEnd]",
    "Node": (
        "name:string doc_string:string domain:string since_version:int index:uint op_type:string type:NodeType "
        "execution_provider_type:string inputs:[string] outputs:[string] attributes:[Attribute] input_arg_counts:[int] "
        "implicit_inputs:[string]"
    ),
    "ValueInfo": "name:string doc_string:string type:TypeInfo",
    "TypeInfo": "denotation:string value:TypeInfoValue",
    "OperatorSetId": "domain:string version:long",
    "Tensor": (
        "name:string doc_string:string dims:[long] data_type:TensorDataType raw_data:[ubyte] string_data:[string] "
        "external_data_offset:long=-1"
    ),
    "SparseTensor": "values:Tensor indices:Tensor dims:[long]",
    "Attribute": (
        "name:string doc_string:string type:AttributeType f:float i:long s:string t:Tensor g:Graph floats:[float] ints:[long] "
        "strings:[string] tensors:[Tensor] graphs:[Graph]"
    ),
    "NodesToOptimizeIndices": (
        "node_indices:[uint] num_inputs:uint num_outputs:uint has_variadic_input:bool has_variadic_output:bool "
        "num_variadic_inputs:uint num_variadic_outputs:uint"
    ),
    "DeprecatedNodeIndexAndKernelDefHash": "node_index:uint kernel_def_hash:ulong",
    "RuntimeOptimizationRecord": (
        "action_id:string nodes_to_optimize_indices:NodesToOptimizeIndices produced_nodes:[DeprecatedNodeIndexAndKernelDefHash] "
        "produced_op_ids:[string]"
    ),
    "RuntimeOptimizationRecordContainerEntry": "optimizer_name:string! runtime_optimization_records:[RuntimeOptimizationRecord]",
    "RuntimeOptimizations": "records:[RuntimeOptimizationRecordContainerEntry]",
    "Graph": (
        "initializers:[Tensor] node_args:[ValueInfo] nodes:[Node] max_node_index:uint node_edges:[NodeEdge] inputs:[string] "
        "outputs:[string] sparse_initializers:[SparseTensor] runtime_optimizations:RuntimeOptimizations"
    ),
    "StringStringEntry": "key:string value:string",
    "Model": (
        "ir_version:long opset_import:[OperatorSetId] producer_name:string producer_version:string domain:string "
        "model_version:long doc_string:string graph:Graph graph_doc_string:string metadata_props:[StringStringEntry]"
    ),
    "DeprecatedKernelCreateInfos": "node_indices:[uint] kernel_def_hashes:[ulong]",
    "DeprecatedSubGraphSessionState": "graph_id:string! session_state:DeprecatedSessionState",
    "DeprecatedSessionState": "kernels:DeprecatedKernelCreateInfos sub_graph_session_states:[DeprecatedSubGraphSessionState]",
    "ArgTypeAndIndex": "arg_type:ArgType index:uint",
    "KernelTypeStrArgsEntry": "kernel_type_str:string! args:[ArgTypeAndIndex]",
    "OpIdKernelTypeStrArgsEntry": "op_id:string! kernel_type_str_args:[KernelTypeStrArgsEntry]",
    "KernelTypeStrResolver": "op_kernel_type_str_args:[OpIdKernelTypeStrArgsEntry]",
    "InferenceSession": (
        "ort_version:string model:Model session_state:DeprecatedSessionState kernel_type_str_resolver:KernelTypeStrResolver"
    ),
}

ORT = Schema("ONNX Runtime", b"ORTM", "InferenceSession", enums=_ENUMS, unions=_UNIONS, structs=_STRUCTS, tables=_TABLES)
