"""Configurations of NN packages: backends of operations, and options of sessions."""

import pytest

from sardonyx.errors import InvalidGraph
from sardonyx.formats.nnpackage.config import PROVIDER_KEY, place_nodes, read_config, session_options
from sardonyx.ir.text import parse_model

_TEXT = """opset 21
graph g(x: float[1, 2, 4, 4]) -> (y: float[1, 2, 4, 4]) {
w: float[2, 2, 1, 1] = ...
d: float[2, 1, 1, 1] = ...
a = Conv(x, w)
b = Conv(a, d) {group = 2}
c = Add(a, b)
y = Relu(c)
}"""


def _places(config: str) -> list[str]:
    model = parse_model(_TEXT)
    place_nodes(model, read_config(config.encode()))
    return [(node.metadata or {}).get(PROVIDER_KEY, "") for node in model.graph]


def test_lines_are_keys_and_values() -> None:
    """With comments, white space and quotes, as onert has them."""
    config = read_config(b'BACKENDS="acl_cl"\n# comment\n  EXECUTOR = Linear # more\nnothing\n=x\n')
    assert config.entries == {"BACKENDS": "acl_cl", "EXECUTOR": "Linear"}


@pytest.mark.parametrize(
    ("config", "places"),
    [
        ("", ["", "", "", ""]),
        ("BACKENDS=cpu;gpu_cl", ["CPUExecutionProvider"] * 4),
        ("BACKENDS=gpu_cl", ["gpu_cl"] * 4),
        ("BACKENDS=gpu_cl\nOP_BACKEND_ALLOPS=ruy", ["CPUExecutionProvider"] * 4),
        ("OP_BACKEND_Conv2D=gpu_cl", ["gpu_cl", "", "", ""]),
        ("OP_BACKEND_DepthwiseConv2D=reference", ["", "ReferenceExecutionProvider", "", ""]),
        ("OP_BACKEND_BinaryArithmetic=a\nOP_BACKEND_ElementwiseActivation=b", ["", "", "a", "b"]),
        ("OP_BACKEND_Add=a\nOP_BACKEND_ALLOPS=b", ["b", "b", "a", "b"]),
        ("OP_BACKEND_MAP=0=a;3=b\nOP_BACKEND_Relu=c", ["a", "", "", "b"]),
    ],
)
def test_backends_are_providers_of_nodes(config: str, places: list[str]) -> None:
    """By number, by operation, else for all; onert's backends on the processor are the CPU provider."""
    assert _places(config) == places


@pytest.mark.parametrize("text", ["0", "x=cpu", "=cpu", "99999999999=cpu"])
def test_a_map_that_is_none_is_refused(text: str) -> None:
    """With what was expected."""
    with pytest.raises(InvalidGraph, match="OP_BACKEND_MAP: expected"):
        _places(f"OP_BACKEND_MAP={text}")


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ("EXECUTOR=Dataflow", {"session.executor": "dataflow"}),
        ("EXECUTOR=Linear\nNUM_THREADS=2", {"session.executor": "sequential", "intra_op_num_threads": "2"}),
        ("EXECUTOR=Mine\nNUM_THREADS=-1", {}),
        ("TRACING_MODE=1", {"enable_profiling": "1"}),
        ("PROFILING_MODE=true", {"enable_profiling": "1"}),
        ("TRACE_FILEPATH=t", {"enable_profiling": "1", "profile_file_prefix": "t"}),
        ("ENABLE_LOG=1", {"log_severity_level": "0"}),
    ],
)
def test_other_keys_are_options_of_sessions(config: str, options: dict[str, str]) -> None:
    """Executor, threads, profile and messages."""
    assert session_options(read_config(config.encode())) == options
