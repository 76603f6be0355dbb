"""Configuration files of NN packages: `KEY=VALUE` lines, as onert reads them, and what they mean here.

    BACKENDS="cpu"                  the backend of all operations; of several, the first
    OP_BACKEND_ALLOPS=cpu           the same, before it
    OP_BACKEND_Conv2D=acl_cl        the backend of an operation, by onert's name or by that of the operator here
    OP_BACKEND_MAP="0=cpu;3=gpu_cl" the backend of the operations with these numbers
    EXECUTOR=Dataflow               Linear, Dataflow or Parallel: the executor of the session
    NUM_THREADS=2                   `intra_op_num_threads`
    TRACING_MODE=1                  a profile is recorded, as by PROFILING_MODE; TRACE_FILEPATH is the beginning of its name
    ENABLE_LOG=1                    messages of all levels are written

A backend is the provider that it names, or the CPU provider where onert's backend computes on the processor. Where the session has
no such provider, an operation goes where it would go without. Other keys have no effect here.

Source: the specification of NN packages, and onert's list of its options (util/Config.lst).
"""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx import trace
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Model, Node

__all__ = ["Config", "place_nodes", "read_config", "session_options"]

PROVIDER_KEY = "sardonyx.provider"
"""The metadata of a node that names its provider."""
_ON_PROCESSOR = ("cpu", "ruy", "xnnpack", "acl_neon", "builtin", "bcq", "ggml")
_OPERATION = "OP_BACKEND_"
_EXECUTORS = {"Linear": "sequential", "Dataflow": "dataflow", "Parallel": "parallel"}
_OPERATORS = {
    "BinaryArithmetic": "Add Sub Mul Div",
    "BroadcastTo": "Expand",
    "Comparison": "Equal Greater GreaterOrEqual Less LessOrEqual",
    "ElementwiseActivation": "Relu LeakyRelu Elu Sigmoid Tanh Clip",
    "ElementwiseBinary": "And Or Max Min",
    "ElementwiseUnary": "Abs Cast Cos Erf Exp Floor Log Neg Not Reciprocal Round Sqrt Sin",
    "Fill": "ConstantOfShape",
    "FullyConnected": "Gemm MatMul",
    "BatchMatMul": "MatMul",
    "InstanceNorm": "InstanceNormalization",
    "Pack": "Concat",
    "Pool2D": "AveragePool MaxPool",
    "ResizeBilinear": "Resize",
    "ResizeNearestNeighbor": "Resize",
    "TransposeConv": "ConvTranspose",
}
"""onert's operations that have another name here, or are several."""


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """What a configuration file says."""

    entries: Mapping[str, str]
    """Key -> value."""

    @property
    def backend(self) -> str:
        """The backend of all operations; empty where none is named."""
        return self.entries.get("OP_BACKEND_ALLOPS") or self.entries.get("BACKENDS", "").split(";")[0].strip()

    @property
    def by_operation(self) -> dict[str, str]:
        """Operation -> backend."""
        others = (f"{_OPERATION}ALLOPS", f"{_OPERATION}MAP")
        return {
            key[len(_OPERATION) :]: text
            for key, text in self.entries.items()
            if key.startswith(_OPERATION) and key not in others and text
        }

    @property
    def by_number(self) -> dict[int, str]:
        """Number of an operation -> backend."""
        found = {}
        for part in filter(None, self.entries.get("OP_BACKEND_MAP", "").split(";")):
            number, separator, backend = part.partition("=")
            if not separator or not (number.strip().isascii() and number.strip().isdigit() and len(number) < 10):
                raise InvalidGraph(f'OP_BACKEND_MAP: expected "NUMBER=BACKEND;…", got {part!r:.80}')
            found[int(number)] = backend.strip()
        return found


def read_config(content: bytes) -> Config:
    """Return what a file says; what follows `#` on a line is a comment, and quotes around a value are left out."""
    entries = {}
    for line in content.decode("utf-8", "replace").splitlines():
        key, separator, text = line.partition("#")[0].partition("=")
        if separator and key.strip():
            entries[key.strip()] = text.strip().strip('"')
    return Config(entries)


def place_nodes(model: Model, config: Config) -> None:
    """Note in the nodes of a model which provider the configuration gives them."""
    general, by_number = config.backend, config.by_number
    by_operator = {name: backend for operation, backend in config.by_operation.items() for name in _names_of(operation)}
    for index, node in enumerate(model.graph):
        number = _number_of(node, index)
        backend = by_number.get(number) or _of_operator(node, by_operator) or general
        if backend:
            node.metadata = {**(node.metadata or {}), PROVIDER_KEY: _provider(backend)}
    for operation in config.by_operation:
        if not any(name in by_operator for name in _names_of(operation)):
            trace.event("load.ignored", what=f"backend of {operation}")


def session_options(config: Config) -> dict[str, str]:
    """Return the properties and config entries of a session that a configuration sets."""
    entries, found = config.entries, {}
    if entries.get("EXECUTOR") in _EXECUTORS:
        found["session.executor"] = _EXECUTORS[entries["EXECUTOR"]]
    threads = entries.get("NUM_THREADS", "")
    if threads.isascii() and threads.isdigit() and 0 < int(threads) <= 1024:
        found["intra_op_num_threads"] = threads
    if any(entries.get(key, "0").lower() in ("1", "true") for key in ("TRACING_MODE", "PROFILING_MODE")) or entries.get(
        "TRACE_FILEPATH"
    ):
        found["enable_profiling"] = "1"
    if entries.get("TRACE_FILEPATH"):
        found["profile_file_prefix"] = entries["TRACE_FILEPATH"]
    if entries.get("ENABLE_LOG", "0").lower() in ("1", "true"):
        found["log_severity_level"] = "0"
    return found


def _names_of(operation: str) -> list[str]:
    return [operation, *_OPERATORS.get(operation, "").split()]


def _of_operator(node: Node, by_operator: Mapping[str, str]) -> str:
    is_depthwise = node.op_type == "Conv" and node.integer("group", 1) > 1
    if is_depthwise and "DepthwiseConv2D" in by_operator:
        return by_operator["DepthwiseConv2D"]
    if node.op_type == "Conv" and not is_depthwise and "Conv2D" in by_operator:
        return by_operator["Conv2D"]
    return by_operator.get(node.op_type, "")


def _number_of(node: Node, index: int) -> int:
    """Return the number that an operation had in its file, where its reader noted it; else its place here."""
    noted = (node.metadata or {}).get("sardonyx.operation", "")
    return int(noted) if noted.isdigit() else index


def _provider(backend: str) -> str:
    if backend.lower() in _ON_PROCESSOR:
        return "CPUExecutionProvider"
    return "ReferenceExecutionProvider" if backend.lower() == "reference" else backend
