"""Rank the tokens that may come next in the graphs of generation loops, where the rest of a step is computed."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Graph, Model, Node, Tensor, TensorType, Value, symbol
from sardonyx.ir.walk import all_nodes
from sardonyx.ops.generation_bodies import (
    BEAMS,
    BEST_SCORES,
    BEST_TOKENS,
    NEXT_ROWS,
    NEXT_TOKENS,
    NEXT_TOTALS,
    TOTALS,
    is_generation_loop,
    loop_bodies,
)
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import small_constant

__all__ = ["RANK_NEXT_TOKENS"]

_VOCAB_MASK = {"BeamSearch": 7, "GreedySearch": 4, "WhisperBeamSearch": 7}
"""Loops whose choice depends on few of the scores, and which of their inputs forbids tokens."""
_NUM_BEAMS = 3
_CANDIDATES = 16
"""How many tokens are ranked where the number of beams is an input of the model: enough for 15 beams."""
_NEWEST = 13
"""The version of ai.onnx from which on the operators made here mean what they mean."""
_FLOATS = (DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16, DataType.DOUBLE)


class _RankNextTokens:
    """Give the decoders of generation loops outputs that say which tokens are the likeliest, so that a loop reads few scores.

        GreedySearch {decoder = … -> (logits, …)}
        ->      … -> (logits, …, ArgMax(x))                                 x = Gather(logits, -1, axis=1)[:, :vocab_size]

        BeamSearch, WhisperBeamSearch {decoder = … -> (logits, …)}
        ->      … -> (logits, …, tokens, scores)                            scores, tokens = TopK(LogSoftmax(x), beams + 1)

    A beam goes on with as many tokens as there are beams at most, beside the one that ends it. Where the number of beams is known,
    the best of all beams of a batch element are chosen too, by the totals t of beams, and the rows r of these, two further inputs:

        (…, t: float[batch, beams], r: int64[batch, beams])
        -> (logits, …, tokens, scores, GatherElements(Gather(tokens, r), i), GatherElements(r, i / (beams + 1)), next)
                                                                                  next, i = TopK(Gather(scores, r) + t, beams)

    Left alone: Sampling, which needs all scores; loops that forbid tokens by a mask or n-grams in each step; logits that are not
    known to be floats of rank 3, and, for beams, of a known vocabulary.

    Holds before: shapes inferred. Cost: O(nodes).
    """

    name = "rank_next_tokens"
    not_saved = "onnxruntime's loops read the outputs that exporters write"

    def run(self, model: Model, context: Context) -> bool:
        """Add outputs; whether any were."""
        version = max(model.opset_imports.get("", _NEWEST), _NEWEST)
        changed = False
        for node in [node for node in all_nodes(model) if is_generation_loop(node) and _reads_few_scores(node)]:
            for body in loop_bodies(node):
                changed |= _rank(body, node, version)
        return changed


RANK_NEXT_TOKENS: Pass = _RankNextTokens()


def _reads_few_scores(node: Node) -> bool:
    mask = _VOCAB_MASK.get(node.op_type)
    return mask is not None and node.input(mask) is None and node.integer("no_repeat_ngram_size", 0) == 0


def _rank(body: Graph, node: Node, version: int) -> bool:
    """Add the outputs to one graph; whether they were missing and can be computed."""
    logits = body.outputs[0] if body.outputs else None
    if logits is None or logits.dtype not in _FLOATS or logits.shape is None or len(logits.shape) != 3:
        return False
    if any(value.name == BEST_TOKENS for value in body.outputs):
        return False
    stated = node.integer("vocab_size", -1)
    size = logits.shape[2] if isinstance(logits.shape[2], int) else 0
    is_greedy = node.op_type == "GreedySearch"
    if not (is_greedy or size):
        return False
    maker = _Maker(body, version)
    scores = maker.make("Gather", logits, maker.constant(-1), axis=1)
    if stated > 0 and size != stated:
        scores = maker.make("Slice", scores, maker.constant([0]), maker.constant([stated]), maker.constant([1]))
    if is_greedy:
        found = {BEST_TOKENS: maker.as_next_input(maker.make("ArgMax", scores, axis=1))}
    else:
        wide = scores if logits.dtype is DataType.FLOAT else maker.make("Cast", scores, to=int(DataType.FLOAT))
        count = min(_candidates(node), size, stated if stated > 0 else size)
        best = maker.outputs("TopK", 2, maker.make("LogSoftmax", wide, axis=1), maker.constant([count]), axis=1)
        found = {BEST_TOKENS: best[1], BEST_SCORES: best[0]}
        if count - 1 == _beams(node):
            found |= _choose(maker, best[1], best[0], count)
    for name, value in found.items():
        value.name = name
        body.add_output(value)
    return True


def _choose(maker: _Maker, tokens: Value, scores: Value, count: int) -> dict[str, Value]:
    """Return the outputs for the best of all beams of a batch element, of `count` ranked tokens for each beam."""
    dims = symbol(f"{TOTALS}.batch"), symbol(f"{TOTALS}.beams")
    totals = maker.add_input(TOTALS, TensorType(DataType.FLOAT, dims))
    beams = maker.add_input(BEAMS, TensorType(DataType.INT64, dims))
    sums = maker.make("Add", maker.make("Gather", scores, beams), maker.make("Unsqueeze", totals, maker.constant([2])))
    flat = maker.constant([0, -1])
    best, places = maker.outputs("TopK", 2, maker.make("Reshape", sums, flat), maker.constant([count - 1]), axis=1)
    chosen = maker.make("GatherElements", maker.make("Reshape", maker.make("Gather", tokens, beams), flat), places, axis=1)
    rows = maker.make("GatherElements", beams, maker.make("Div", places, maker.constant([count])), axis=1)
    return {NEXT_TOKENS: maker.as_next_input(chosen), NEXT_ROWS: rows, NEXT_TOTALS: best}


def _beams(node: Node) -> int | None:
    """Return the number of beams, None where it is an input of the model."""
    beams = small_constant(node.input(_NUM_BEAMS), max_elements=1)
    return None if beams is None or beams.size != 1 else max(int(beams.item()), 1)


def _candidates(node: Node) -> int:
    """Return how many tokens a beam may need."""
    beams = _beams(node)
    return _CANDIDATES if beams is None else beams + 1


class _Maker:
    """Puts nodes at the end of a graph."""

    def __init__(self, graph: Graph, version: int) -> None:
        self._graph, self._version = graph, version

    def constant(self, number: int | list[int]) -> Value:
        return self._graph.add_initializer(Tensor.from_array(np.array(number, np.int64), f"{BEST_TOKENS}.constant"))

    def add_input(self, name: str, kind: TensorType) -> Value:
        value = Value(name, kind)
        self._graph.inputs.append(value)
        return value

    def as_next_input(self, tokens: Value) -> Value:
        """Return tokens in the type of the first input."""
        first = self._graph.inputs[0].dtype
        return tokens if first in (None, DataType.INT64) else self.make("Cast", tokens, to=int(first))

    def make(self, op_type: str, *inputs: Value, **attributes: int) -> Value:
        return self.outputs(op_type, 1, *inputs, **attributes)[0]

    def outputs(self, op_type: str, count: int, *inputs: Value, **attributes: int) -> tuple[Value, ...]:
        return self._graph.append(Node(op_type, inputs, count, attributes, version=self._version)).outputs
