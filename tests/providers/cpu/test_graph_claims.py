"""Claims of a graph."""

from support.models import model

from sardonyx.dtypes import DataType
from sardonyx.ir import Graph
from sardonyx.provider import Capability, GraphView
from sardonyx.providers.cpu.claims import NodeClaim
from sardonyx.providers.cpu.graph_claims import claim_again, claim_nodes, noted_sizes
from sardonyx.providers.cpu.size_claims import SizesClaim


def _graph() -> Graph:
    graph = model("graph(x: float[n, 4]) -> (y: float[n, 4], s: int64[2]) {\ny = Relu(x)\ns = Shape(x)\n}").graph
    for node in graph:
        node.outputs[0].type = node.outputs[0].type or node.inputs[0].type
    return graph


def _claims() -> list[Capability]:
    graph = _graph()
    return list(claim_nodes(GraphView(graph, tuple(graph)), prefers_nhwc=False).capabilities)


def test_nodes_are_claimed_as_what_they_do_or_as_sizes() -> None:
    """A Relu is compiled; of a Shape only the numbers are needed."""
    assert [type(claim) for claim in _claims()] == [NodeClaim, SizesClaim]


def test_a_node_that_cannot_be_compiled_is_declined() -> None:
    """With the reason."""
    graph = model("graph(x: string[n]) -> (y: string[n]) { y = Identity(x) }").graph
    claims = claim_nodes(GraphView(graph, tuple(graph)), prefers_nhwc=False)
    assert not claims.capabilities
    assert all(claims.declined.values())


def test_claims_are_made_again_of_what_is_noted() -> None:
    """Sizes as they were, and what follows from the node."""
    for claim in _claims():
        again = claim_again(Capability(claim.nodes, reads=claim.reads), noted_sizes(claim))
        assert type(again) is type(claim)
        assert noted_sizes(again) == noted_sizes(claim)
        assert again.nodes[0].outputs[0].dtype in (DataType.FLOAT, DataType.INT64)
