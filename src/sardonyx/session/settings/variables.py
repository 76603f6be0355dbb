"""The environment variables, for the documentation; `sardonyx.config` reads them."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses

__all__ = ["VARIABLES", "Variable"]


@dataclasses.dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable."""

    name: str
    """Its name."""
    values: str
    """What it may be."""
    default: str
    """What counts where it is not set, or is something else."""
    meaning: str
    """What it does, for the documentation."""
    since: str = "0.1"
    """The version of sardonyx that brought it."""


VARIABLES = (
    Variable(
        "SARDONYX_ISA",
        "portable, avx2, avx512, amx or neon; features to do without behind it: avx512,-avx512bf16",
        "the machine's",
        "a lower instruction set than the machine's",
    ),
    Variable(
        "SARDONYX_NUM_THREADS",
        "a number of at least 1",
        "one for each processor",
        "threads, where a session leaves the number open",
    ),
    Variable(
        "SARDONYX_FLOAT32_PRECISION",
        "highest, high or medium",
        "highest",
        "what operands of products of float32 models may be rounded to, where a session does not say it",
    ),
    Variable("SARDONYX_CACHE_DIR", "a folder; empty for none", "$XDG_CACHE_HOME/sardonyx", "where compiled kernels are kept"),
    Variable("SARDONYX_CACHE_BYTES", "a number of bytes", "1073741824", "how much that folder may hold"),
    Variable(
        "SARDONYX_KEEP_DECISIONS",
        "0",
        "",
        "do not keep in that folder what is decided of models when they are optimized and partitioned, nor use what was kept",
    ),
    Variable("SARDONYX_COMPILE", "inline", "", "run LLVM in this process, not in one of its own"),
    Variable("SARDONYX_NATIVE_RUN", "0", "", "enter every run through Python, also where machine code could take the call itself"),
    Variable("SARDONYX_GUARD", "1", "", "run compiled kernels in memory where leaving a buffer stops the process, to find defects"),
    Variable(
        "SARDONYX_MAP_WEIGHTS",
        "1",
        "",
        "map the files of models and compiled models, which then must not be written to while a session of theirs lives",
    ),
    Variable("SARDONYX_TRACE", "a file", "", "to which trace events are appended, as lines of JSON"),
    Variable(
        "SARDONYX_MAX_TENSOR_BYTES",
        "a number of at least 1",
        "half of the memory, of the machine or of the process's control groups, at most 64 GiB",
        "the largest tensor that a node may make",
    ),
    Variable("ORT_LOAD_CONFIG_FROM_MODEL", "1", "", "take the options of a session from `ort_config` in the model's metadata"),
    Variable("SARDONYX_MAX_ITERATIONS", "a number of at least 1", "10000000", "the most iterations of a Loop"),
)
"""Every variable that `sardonyx.config` reads, but for XDG_CACHE_HOME."""
