"""Config entries of onnxruntime's that are accepted and mean nothing here, and why."""

from __future__ import annotations

from sardonyx.option import Ignored

__all__ = ["IGNORED", "IGNORED_OF_RUNS"]

_ARENA = "memory is planned for each shape, and given back by `InferenceSession.trim`"
_SPINNING = "threads spin for a bounded time before they sleep, longer while a run is on"
_ORT_FORMAT = "models of ONNX Runtime's format are read like all others"
_LOGGING = "verbose messages have one level"
_BLOCKS = "blocks of weights are as large as the model has them, and providers decide how they compute"

IGNORED = (
    Ignored("ep.cpu.", "the CPU provider has no such kernel"),
    Ignored("ep.cuda.", "there is no CUDA provider"),
    Ignored("ep.cudaexecutionprovider.", "there is no CUDA provider"),
    Ignored("ep.dynamic.workload_type", "sessions do not share a device that could prefer one of them"),
    Ignored("ep.enable_weightless_ep_context_nodes", "`ep.enable_weightless` says it", "0"),
    Ignored("mlas.", "these choose among kernels of onnxruntime's library"),
    Ignored("optimization.minimal_build_optimizations", "there is no minimal build", ""),
    Ignored("session.allow_released_opsets_only", "an operator set is not refused by its number"),
    Ignored("session.compile_only", "a session that cannot run is not made; `ModelCompiler` compiles to a file", "0"),
    Ignored("session.dynamic_block_base", "the work of a step is divided by its size"),
    Ignored("session.enable_cpu_mem_arena", _ARENA),
    Ignored("session.enable_mem_pattern", _ARENA),
    Ignored("session.enable_moe_expert_counting", "experts are not counted", "0"),
    Ignored("session.enable_moe_expert_statistics", "experts are not counted", "0"),
    Ignored("session.enable_saved_runtime_optimizations", _ORT_FORMAT),
    Ignored("session.external_data_loader.", "external data is mapped, not read"),
    Ignored("session.force_spinning_stop", _SPINNING),
    Ignored("session.function_expansion_byte_limit", "`sardonyx.config.Limits` bounds how far functions expand"),
    Ignored("session.function_expansion_node_limit", "`sardonyx.config.Limits` bounds how far functions expand"),
    Ignored("session.gqa_value_layout", "providers choose the layouts of their programs"),
    Ignored("session.inter_op.allow_spinning", _SPINNING),
    Ignored("session.inter_op.spin_backoff_max", _SPINNING),
    Ignored("session.inter_op.spin_duration_us", _SPINNING),
    Ignored("session.intra_op.allow_spinning", _SPINNING),
    Ignored("session.intra_op.spin_backoff_max", _SPINNING),
    Ignored("session.intra_op.spin_duration_us", _SPINNING),
    Ignored("session.kernel_dispatch_policy", "providers choose their kernels"),
    Ignored("session.load_model_format", "the format of a model is recognised by its content"),
    Ignored("session.log_verbosity_level", _LOGGING),
    Ignored("session.moe.offload.", "the weights of experts stay where providers have them"),
    Ignored("session.moe_expert_counter_", "experts are not counted"),
    Ignored("session.prepack.enable_parallel", "weights are packed when a session is made"),
    Ignored("session.disable_prepacking", "providers decide which weights they pack"),
    Ignored("session.qdq_matmulnbits_accuracy_level", _BLOCKS),
    Ignored("session.qdq_matmulnbits_block_size", _BLOCKS),
    Ignored(
        "session.save_external_prepacked_constant_initializers", "compiled models hold packed weights: `ep.context_enable`", "0"
    ),
    Ignored("session.strict_workspace_verification", _ARENA),
    Ignored("session.use_deterministic_compute", "which thread runs a task does not change what it computes"),
    Ignored("session.use_device_allocator_for_initializers", "providers choose how they hold weights"),
    Ignored("session.use_external_initializer_file_buffers_directly", "external data is mapped, not read"),
    Ignored("session.use_memory_mapped_ort_model", _ORT_FORMAT),
    Ignored("session.use_ort_model_bytes_directly", _ORT_FORMAT),
    Ignored("session.use_ort_model_bytes_for_initializers", _ORT_FORMAT),
)
"""Of sessions."""

IGNORED_OF_RUNS = (
    Ignored("disable_synchronize_execution_providers", "results are on the host, and complete, when a run returns"),
    Ignored("gpu_graph_id", "there are no captured graphs"),
    Ignored("qnn.", "there is no QNN provider"),
)
"""Of runs."""
