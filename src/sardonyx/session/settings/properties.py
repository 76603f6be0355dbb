"""What the properties of SessionOptions and RunOptions do, for the documentation; their classes have the defaults."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PROPERTIES", "PROPERTIES_OF_RUNS"]

_ARENA = "no effect: memory is planned for each shape, and given back by `InferenceSession.trim`"
_SEVERITY = "from which severity on messages are written, 0 (verbose) to 4 (fatal), -1 for the process's"
_LOGID = "messages go to the logger `sardonyx.LOGID` of Python's `logging`"
_VERBOSITY = "no effect: verbose messages have one level"

PROPERTIES: Mapping[str, str] = {
    "enable_cpu_mem_arena": _ARENA,
    "enable_mem_pattern": _ARENA,
    "enable_mem_reuse": _ARENA,
    "enable_profiling": "record runs, for `InferenceSession.end_profiling`",
    "execution_mode": "ORT_PARALLEL runs parts at once that do not wait for one another",
    "execution_order": "no effect, and a warning: steps run in the order in which they are planned",
    "graph_optimization_level": "how far a model is optimized",
    "inter_op_num_threads": "threads of the parallel executor; 0 leaves the number open",
    "intra_op_num_threads": "threads of the CPU provider; 0 leaves the number open",
    "load_timeout_ms": "how many milliseconds making a session may take; more raises ModelLoadTimedOut, 0 allows any time",
    "log_severity_level": _SEVERITY,
    "log_verbosity_level": _VERBOSITY,
    "logid": _LOGID,
    "optimized_model_filepath": "where the optimized model is saved",
    "optimizer_failure": '"skip" goes on without a rule or pass that fails; "error" (as where empty) raises',
    "placement": '"measured" follows `placement_profile`; "priority" (as where empty) asks providers in order',
    "placement_fall_through": "let a placed node that its provider declines go to the others",
    "placement_file": "a TOML file that says where operators run",
    "placement_profile": "what `sardonyx profile --placement` wrote",
    "profile_file_prefix": "what the name of the file of `enable_profiling` begins with",
    "provider_failure": '"skip" goes on without a provider that fails; "error" (as where empty) raises',
    "use_deterministic_compute": "no effect: which thread runs a task does not change what it computes",
    "use_per_session_threads": "off: take the numbers of threads from `set_global_thread_pool_sizes`, not from this session",
    "verify": "compare each rewrite on random inputs with what it replaces, and leave out one that changes results",
}
"""Of SessionOptions: name -> what it does."""

PROPERTIES_OF_RUNS: Mapping[str, str] = {
    "log_severity_level": _SEVERITY,
    "log_verbosity_level": _VERBOSITY,
    "logid": _LOGID,
    "only_execute_path_to_fetches": "compute nothing but what leads to the outputs that are asked for",
    "terminate": "set it, from any thread, to end the runs that were given these options with RunTerminated",
    "timeout_ms": "how many milliseconds each run may take; more raises RunTimedOut, 0 allows any time",
}
"""Of RunOptions: name -> what it does."""
