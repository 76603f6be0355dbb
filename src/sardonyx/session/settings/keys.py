"""The table of session config entries: the key, the values, the default and the meaning of each.

`session/settings/settings.py` reads them, and nothing else does; `docs/options.md` is written of them. Where a property of
SessionOptions says the same, that counts which differs from its default; where both do, the property, but for `execution_mode`.
"""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.option import COUNT, FLAG, NAMES, PATH, SECONDS, SIZE_BYTES, TEXT, Option, choice
from sardonyx.partition.pins import Pins
from sardonyx.session.settings.grammar import (
    AFFINITY,
    DEVICES,
    EXECUTOR_NAME,
    LAYERS,
    LEVEL,
    LIMIT,
    LIMITS,
    MODE,
    PINS,
    SHAPES,
    YES,
    Limit,
)

__all__ = ["KEYS", "KEYS_OF_RUNS", "OPTIMIZER_FLAGS"]

_FAILURE = choice("error", "skip")
_NO_LAYERS: Mapping[str, str] = {}
_NO_SHAPES: Mapping[str, tuple[int, ...]] = {}
_NO_LIMITS: tuple[tuple[str, Limit], ...] = ()
_NO_PROCESSORS: tuple[frozenset[int], ...] = ()
_NO_DEVICES: tuple[tuple[str, str], ...] = ()
_NO_NAMES: tuple[str, ...] = ()

EXTERNAL_FOLDER = Option(
    "session.model_external_initializers_file_folder_path",
    PATH,
    "",
    "the folder of a model's external data; beside the model where empty",
)

KEEP_DECISIONS = Option(
    "session.keep_decisions",
    FLAG,
    True,
    "keep in the folder of compiled kernels how the model was optimized and partitioned, and, where programs are shared, these "
    "with their packed weights, for later sessions of it",
)

SHARE_PROGRAMS = Option(
    "session.share_programs",
    FLAG,
    True,
    "share programs and packed weights with the process's other sessions of the same model and options",
)

LEVEL_OF_OPTIMIZATION = Option("session.graph_optimization_level", LEVEL, 99, "`graph_optimization_level`")
LOOPS = Option(
    "session.graph_optimizations_loop_level",
    choice("0", "1", "2"),
    "1",
    "whether the levels are repeated: never, after changes of higher levels, or until nothing changes",
)
DISABLED = Option(
    "optimization.disable_specified_optimizers", NAMES, _NO_NAMES, "rules and passes to leave out, by our names or onnxruntime's"
)
FOLD_BYTES: Option[int | None] = Option(
    "optimization.constant_folding_max_output_size_in_bytes",
    SIZE_BYTES,
    None,
    "the largest constant that folding makes; by default 16 MiB, and 1 GiB for arithmetic that makes no more than it reads",
)
FOLD_SECONDS: Option[float | None] = Option(
    "optimization.constant_folding_max_seconds", SECONDS, None, "processor time for which folding may compute; 10 s by default"
)
VERIFY = Option("optimization.verify", FLAG, False, "`verify`")
VERIFY_FOLDER = Option("optimization.verify_folder", PATH, "", "where models are saved that show what is wrong with a rule or pass")
OPTIMIZER_FAILURE = Option("optimization.failure", _FAILURE, "error", "`optimizer_failure`")
KEEP_CALLS = Option(
    "session.disable_aot_function_inlining",
    FLAG,
    False,
    "offer calls of model-local functions to the providers before they are inlined",
)
KEEP_NARROW = Option(
    "session.keep_narrow_floats", FLAG, False, "leave float16 and bfloat16 in their type where no provider has a kernel for it"
)
LAYOUT_FOLDER = Option(
    "session.debug_layout_transformation",
    TEXT,
    "0",
    'write the steps of layout conversions as models: "1" into the working folder, another text is the folder',
)

SAVED_PATH = Option("session.optimized_model_filepath", PATH, "", "`optimized_model_filepath`")
SAVED_FORMAT = Option(
    "session.save_model_format",
    TEXT,
    "",
    "the format of the optimized model, such as ORT or ONNX; where empty, the suffix of its name decides, `.ort` or any other",
)
SAVED_DATA = Option(
    "session.optimized_model_external_initializers_file_name", PATH, "", "a file beside the optimized model for its weights"
)
SAVED_LEAST = Option(
    "session.optimized_model_external_initializers_min_size_in_bytes",
    SIZE_BYTES,
    0,
    "the least size of a weight that goes to that file",
)
SAVED_ASSIGNMENT = Option("session.save_assignment", FLAG, False, "note in the optimized model which providers can run each node")

_OPTIMIZER_FLAGS = (
    Option("optimization.enable_cast_chain_elimination", FLAG, False, "shorten chains of casts that round"),
    Option("optimization.enable_gelu_approximation", FLAG, False, "compute Gelu by the hyperbolic tangent"),
    Option("session.disable_double_qdq_remover", FLAG, False, "keep pairs of quantizations, one after the other, as they are"),
    Option("session.disable_qdq_constant_folding", FLAG, False, "keep DequantizeLinear of constants"),
    Option(
        "session.disable_quant_qdq",
        FLAG,
        False,
        "make no quantized operators of floats between QuantizeLinear and DequantizeLinear",
    ),
    Option("session.enable_dq_matmulnbits_fusion", FLAG, False, "make MatMulNBits of DequantizeLinear and MatMul"),
    Option("session.enable_quant_qdq_cleanup", FLAG, False, "remove pairs of QuantizeLinear and DequantizeLinear that are left"),
    Option("session.qdqisint8allowed", FLAG, True, '"0" quantizes activations to uint8 where the model has int8'),
    Option("session.x64quantprecision", FLAG, False, "store the int8 weights of quantized operators as uint8"),
)
OPTIMIZER_FLAGS: Mapping[str, Option[bool]] = {option.name: option for option in _OPTIMIZER_FLAGS}
"""The entries that rules and passes of this package ask for (`opt_in`, `opt_out`), by name."""

PLACEMENT = Option("session.placement", choice("priority", "measured"), "", "`placement`")
PLACEMENT_PROFILE = Option("session.placement_profile", PATH, "", "`placement_profile`")
PLACEMENT_FILE = Option("session.placement_file", PATH, "", "`placement_file`")
PLACEMENT_ORDER = Option(
    "session.placement_order", NAMES, _NO_NAMES, "the order in which providers are asked, and which, where the session names none"
)
FALL_THROUGH = Option("session.placement_fall_through", FLAG, False, "`placement_fall_through`")
PLACED = Option("session.place", PINS, Pins(), 'what `place` takes: "Conv=CPU; node:last=Reference"')
LAYERS_BY_ANNOTATION = Option(
    "session.layer_assignment_settings", LAYERS, _NO_LAYERS, "devices by the annotations of nodes (`layer_ann`)"
)
LAYERS_BY_NAME = Option("session.name_based_layer_assignment", LAYERS, _NO_LAYERS, "devices by parts of the names of nodes")
STREAMS = Option(
    "session.node_partition_config_file", PATH, "", "a JSON file of nodes that are one stream; one that is not there is written"
)
NO_FALLBACK = Option(
    "session.disable_cpu_ep_fallback", FLAG, False, "an error where a node runs on a provider that the session does not name"
)
RECORD_ASSIGNMENT = Option(
    "session.record_ep_graph_assignment_info", FLAG, False, "allow `InferenceSession.get_provider_graph_assignment_info`"
)
PROVIDER_FAILURE = Option("session.provider_failure", _FAILURE, "error", "`provider_failure`")

MEMORY_LIMITS = Option(
    "session.memory_limits", LIMITS, _NO_LIMITS, "how much memory providers may take, and files of what nodes need"
)
CUDA_LIMIT: Option[Limit | None] = Option(
    "session.resource_cuda_partitioning_settings", LIMIT, None, "the same for CUDAExecutionProvider"
)
MAX_SHAPES = Option("session.max_shape_override", SHAPES, _NO_SHAPES, "shapes of inputs by which the memory of nodes is estimated")
MEMORY_STATS = Option(
    "session.collect_node_memory_stats_to_file", PATH, "", "a file beside the model to which runs write what nodes need"
)

EXECUTOR = Option("session.executor", EXECUTOR_NAME, "", "the executor, above what `execution_mode` says")
EXECUTION_MODE = Option("session.execution_mode", MODE, "", "`execution_mode`, which it stands above")
INTRA_THREADS = Option("session.intra_op_num_threads", COUNT, 0, "`intra_op_num_threads`")
INTER_THREADS = Option("session.inter_op_num_threads", COUNT, 0, "`inter_op_num_threads`")
LOG_SEVERITY = Option("session.log_severity_level", choice("-1", "0", "1", "2", "3", "4"), "-1", "`log_severity_level`")
LOG_ID = Option("session.log_id", TEXT, "", "`logid`")
OWN_THREADS = Option("session.use_per_session_threads", YES, True, "`use_per_session_threads`")
PROFILING = Option("session.enable_profiling", TEXT, "", "`enable_profiling` with this `profile_file_prefix`")

CONTEXT_ENABLE = Option("ep.context_enable", FLAG, False, "write a model whose partitions are compiled already")
CONTEXT_PATH = Option(
    "ep.context_file_path",
    PATH,
    "",
    "where it goes, NAME_ctx.onnx by default; beside this path a compiled model from memory has its files",
)
CONTEXT_EMBED = Option("ep.context_embed_mode", FLAG, False, "put the programs into the model, not into a file beside it")
CONTEXT_PREFIX = Option("ep.context_node_name_prefix", TEXT, "", "what the names of its nodes begin with")
CONTEXT_DATA = Option(
    "ep.context_model_external_initializers_file_name", PATH, "", "a file beside it for the weights of nodes that are not compiled"
)
CONTEXT_LEAST = Option(
    "ep.context_model_external_initializers_size", SIZE_BYTES, 1024, "the least size of a weight that goes to that file"
)
CONTEXT_SOURCE = Option("ep.context_source_model_path", PATH, "", "the model that a compiled one has left its weights in")
CONTEXT_SHARE = Option("ep.share_ep_contexts", FLAG, False, "share one file of programs with other sessions")
CONTEXT_STOP = Option("ep.stop_share_ep_contexts", FLAG, False, "share it, and be the last that does")
CONTEXT_WEIGHTLESS = Option("ep.enable_weightless", FLAG, False, "leave weights in the model that is compiled")
CONTEXT_TRUST = Option(
    "session.trust_compiled_context", FLAG, False, "load machine code that was not written by this user on this machine"
)
CONTEXT_CHECK = Option(
    "session.check_compiled_weights",
    FLAG,
    False,
    "compare a SHA-256 of all elements of weights, not of their sums, or of samples of those in mapped files",
)
NO_COMPILING = Option(
    "session.disable_model_compile", FLAG, False, "an error where a partition is not compiled already: ModelRequiresCompilation"
)
FAIL_ON_SUBOPTIMAL = Option(
    "session.fail_on_suboptimal_compiled_model", FLAG, False, "an error where compiling a model anew would be better"
)

STRICT_SHAPES = Option(
    "session.strict_shape_type_inference",
    FLAG,
    False,
    "an error where a shape that the model declares contradicts the one that its operator makes; else the latter counts",
)
AFFINITIES = Option(
    "session.intra_op_thread_affinities",
    AFFINITY,
    _NO_PROCESSORS,
    "the processors of each thread that helps the calling one, counted from 1: one list less than there are threads",
)
DENORMALS = Option(
    "session.set_denormal_as_zero",
    FLAG,
    False,
    "compute with zeros for denormal numbers, in kernels and in the reference provider; every thread is left as it was",
)
PRECISION = Option(
    "session.float32_precision",
    choice("highest", "high", "medium"),
    "",
    "what operands of products of float32 models may be rounded to: nothing (highest), or bfloat16 with sums in float32 (medium); "
    "high is as precise as three products of bfloat16",
)
SHARED_ARENA = Option(
    "session.use_env_allocators",
    FLAG,
    False,
    "take arenas of the host from the allocator that `create_and_register_allocator` registered, which sessions share",
)

KEYS: Mapping[str, tuple[Option[object], ...]] = {
    "Loading": (EXTERNAL_FOLDER, STRICT_SHAPES, KEEP_DECISIONS, SHARE_PROGRAMS),
    "Optimization": (
        LEVEL_OF_OPTIMIZATION,
        LOOPS,
        DISABLED,
        FOLD_BYTES,
        FOLD_SECONDS,
        VERIFY,
        VERIFY_FOLDER,
        OPTIMIZER_FAILURE,
        KEEP_CALLS,
        KEEP_NARROW,
        LAYOUT_FOLDER,
        *_OPTIMIZER_FLAGS,
    ),
    "The optimized model": (SAVED_PATH, SAVED_FORMAT, SAVED_DATA, SAVED_LEAST, SAVED_ASSIGNMENT),
    "Placement": (
        PLACEMENT,
        PLACEMENT_PROFILE,
        PLACEMENT_FILE,
        PLACEMENT_ORDER,
        FALL_THROUGH,
        PLACED,
        LAYERS_BY_ANNOTATION,
        LAYERS_BY_NAME,
        STREAMS,
        NO_FALLBACK,
        RECORD_ASSIGNMENT,
        PROVIDER_FAILURE,
    ),
    "Memory of providers": (MEMORY_LIMITS, CUDA_LIMIT, MAX_SHAPES, MEMORY_STATS),
    "Execution": (
        EXECUTOR,
        EXECUTION_MODE,
        INTRA_THREADS,
        INTER_THREADS,
        OWN_THREADS,
        AFFINITIES,
        DENORMALS,
        PRECISION,
        SHARED_ARENA,
        PROFILING,
        LOG_SEVERITY,
        LOG_ID,
    ),
    "Compiled models": (
        CONTEXT_ENABLE,
        CONTEXT_PATH,
        CONTEXT_EMBED,
        CONTEXT_PREFIX,
        CONTEXT_DATA,
        CONTEXT_LEAST,
        CONTEXT_SOURCE,
        CONTEXT_SHARE,
        CONTEXT_STOP,
        CONTEXT_WEIGHTLESS,
        CONTEXT_TRUST,
        CONTEXT_CHECK,
        NO_COMPILING,
        FAIL_ON_SUBOPTIMAL,
    ),
}
"""Subject -> the session config entries that mean something here."""

SHRINKAGE = Option(
    "memory.enable_memory_arena_shrinkage",
    DEVICES,
    _NO_DEVICES,
    "give back the idle arenas of these devices when the run ends; there is `cpu:0`",
)
KEYS_OF_RUNS: tuple[Option[object], ...] = (SHRINKAGE,)
"""The run config entries that mean something here."""
