"""What ONNX Runtime has kernels for."""

import pytest
from support.models import graph as graph_of

from sardonyx.provider import GraphView, Partition
from sardonyx.session.placement.peer_kernels import WITHOUT_KERNELS, PeerKernels


def test_narrow_floats_are_moved_only() -> None:
    """What computes on them is declined, and all else claimed."""
    graph = graph_of(
        "graph(x: float16[2, 3]) -> (y: float[3, 2]) {\nt: float16[3, 2] = Transpose(x)\nr: float16[3, 2] = Relu(t)\n"
        "c: float[3, 2] = Cast(r) {to = 1}\ny = Relu(c)\n}"
    )
    claims = PeerKernels().capabilities(GraphView(graph, tuple(graph)))
    assert [node.op_type for claim in claims.capabilities for node in claim.nodes] == ["Transpose", "Cast", "Relu"]
    assert [(node.op_type, reason) for node, reason in claims.declined.items()] == [("Relu", "it has no kernel for narrow floats")]


def test_it_compiles_nothing() -> None:
    """It only says what could be run."""
    graph = graph_of("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}")
    with pytest.raises(NotImplementedError, match="compiles nothing"):
        PeerKernels().compile(Partition("p", graph, (), (), (), (), ()), lambda body: None)  # type: ignore[arg-type,return-value]  # wrong on purpose


def test_operators_without_kernels_are_those_of_functions() -> None:
    """Elu has one."""
    assert "HardSwish" in WITHOUT_KERNELS
    assert "Elu" not in WITHOUT_KERNELS
