"""Generation loops of com.microsoft: their lengths are inputs; their graphs are inferred from what they declare."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Graph
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.elements import dims_of
from sardonyx.trace import event

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


def _element(fact: Fact | None) -> Dim:
    """Return the one element of an input as a dimension."""
    dims = dims_of(fact)
    return anonymous() if dims is None or len(dims) != 1 or dims[0] is None else dims[0]


def _batch(fact: Fact) -> Dim:
    return anonymous() if not fact.shape else fact.shape[0]


def _infer_bodies(call: ShapeCall, *graphs: Graph | None) -> None:
    """Let the values inside the graphs be known; the loop feeds what the graphs declare."""
    for graph in graphs:
        if graph is None:
            continue
        try:
            call.infer_body(graph, [Fact(value.type) for value in graph.inputs])
        except InvalidGraph as error:
            event("infer.dead_branch", node=call.name, branch=graph.name, error=str(error))


@shape_function("BeamSearch", "WhisperBeamSearch", domain=_MICROSOFT)
def beam_search(
    call: ShapeCall,
    input_ids: Fact,
    max_length: Fact,
    min_length: Fact | None = None,
    num_beams: Fact | None = None,
    num_return_sequences: Fact | None = None,
    *others: Fact | None,
    decoder: Graph,
    encoder: Graph | None = None,
    init_decoder: Graph | None = None,
    vocab_size: int = -1,
) -> tuple[Fact, ...]:
    """Return sequences (B, returned, max_length), scores (B, returned), and per step (steps, B, beams, V).

    WhisperBeamSearch goes on with the products of cross attention (B, returned, P, T, F) and with a probability (B,).
    """
    _infer_bodies(call, encoder, init_decoder, decoder)
    B, length = _batch(input_ids), _element(max_length)
    beams: Dim = 1 if num_beams is None else _element(num_beams)
    returned: Dim = 1 if num_return_sequences is None else _element(num_return_sequences)
    V: Dim = vocab_size if vocab_size > 0 else anonymous()
    return (
        tensor(DataType.INT32, (B, returned, length)),
        tensor(DataType.FLOAT, (B, returned)),
        tensor(DataType.FLOAT, (anonymous(), B, beams, V)),
        tensor(DataType.FLOAT, (B, returned, anonymous(), anonymous(), anonymous())),
        tensor(DataType.FLOAT, (B,)),
    )[: call.output_count]


@shape_function("GreedySearch", "Sampling", domain=_MICROSOFT)
def greedy_search(
    call: ShapeCall,
    input_ids: Fact,
    max_length: Fact,
    *others: Fact | None,
    decoder: Graph,
    init_decoder: Graph | None = None,
    vocab_size: int = -1,
) -> tuple[Fact, ...]:
    """Return sequences (B, max_length), and of Sampling the last scores (B, V)."""
    _infer_bodies(call, init_decoder, decoder)
    B = _batch(input_ids)
    V: Dim = vocab_size if vocab_size > 0 else anonymous()
    return (tensor(DataType.INT32, (B, _element(max_length))), tensor(DataType.FLOAT, (B, V)))[: call.output_count]
