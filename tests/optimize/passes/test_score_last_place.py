"""Scores of the last place only, in the graphs of generation loops."""

from __future__ import annotations

import numpy as np
import pytest
from support.optimizing import model_of
from support.session_models import session

import sardonyx
from sardonyx.ir import Graph, Model
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.score_last_place import SCORE_LAST_PLACE

OPSET = "17, com.microsoft 1"
PRODUCT = "logits = MatMul(h, w)"


def text(body: str, loop: str = "GreedySearch", length: str = "length", outputs: str = "") -> str:
    return f"""graph(ids: int32[b, s], most: int32[1], least: int32[1], scale: float[1]) -> (y) {{
        y = com.microsoft.{loop}(ids, most, least, scale) {{eos_token_id = 1, pad_token_id = 0, decoder = graph(
            input_ids: int32[rows, {length}], position_ids: int32[rows, {length}], attention_mask: int32[rows, total],
            past_0: float[2, rows, 1, past, 1]
        ) -> (logits: float[rows, {length}, 9], present_0: float[2, rows, 1, total, 1]{outputs}) {{
            table: float[9, 5] = ... 1
            w: float[5, 9] = ... 2
            b: float[9] = ... 3
            c: float[1, 4, 9] = ... 4
            h = Gather(table, input_ids)
            {body}
            t = Cast(input_ids) {{to = 1}}
            u = Unsqueeze(t, axes)
            axes: int64[3] = [0, 2, 4]
            both: int64[5] = [2, 1, 1, 1, 1]
            n = Tile(u, both)
            present_0 = Concat(past_0, n) {{axis = 3}}}}}}}}"""


def shortened(source: str) -> tuple[Graph, bool]:
    model: Model = model_of(source, OPSET)
    INFER_SHAPES.run(model, Context())
    changed = SCORE_LAST_PLACE.run(model, Context())
    INFER_SHAPES.run(model, Context())
    verify(model)
    assert not SCORE_LAST_PLACE.run(model, Context())
    (node,) = model.graph
    body = node.subgraph("decoder")
    assert body is not None
    return body, changed


@pytest.mark.parametrize("loop", ["GreedySearch", "Sampling"])
@pytest.mark.parametrize(
    "body", [PRODUCT, "p = MatMul(h, w) logits = Add(p, b)", "p = MatMul(h, w) q = Tanh(p) logits = Mul(b, q)"]
)
def test_the_place_is_taken_before_the_product(body: str, loop: str) -> None:
    """Also where numbers follow it that are the same at all places."""
    graph, changed = shortened(text(body, loop))
    assert changed
    product = next(node for node in graph if node.op_type == "MatMul")
    source = product.inputs[0]
    assert source is not None
    assert source.producer is not None
    assert source.producer.op_type == "Gather"
    assert [(value.shape or ())[1] for value in (source, product.output, graph.outputs[0])] == [1, 1, 1]


@pytest.mark.parametrize(
    "source",
    [
        text(PRODUCT, length="1"),
        text("p = MatMul(h, w) logits = Softmax(p)"),
        text("p = MatMul(h, w) logits = Add(p, c)", length="4"),
        text("logits = MatMul(h, w) other = Relu(logits)", outputs=", other: float[rows, length, 9]"),
        text("p = MatMul(h, w) logits = Add(p, p)"),
    ],
)
def test_declines(source: str) -> None:
    """One place, other operators, numbers that differ from place to place, and scores that something else reads."""
    _, changed = shortened(source)
    assert not changed


@pytest.mark.parametrize("loop", ["GreedySearch", "Sampling"])
def test_the_tokens_stay_the_same(loop: str) -> None:
    """Those of an optimized session are those of one that changes nothing."""
    model = model_of(text("p = MatMul(h, w) logits = Add(p, b)", loop), OPSET)
    plain = sardonyx.SessionOptions()
    plain.graph_optimization_level = sardonyx.GraphOptimizationLevel.ORT_DISABLE_ALL
    feeds = {
        "ids": np.array([[3, 4, 5], [7, 2, 6]], np.int32),
        "most": np.array([9], np.int32),
        "least": np.array([9], np.int32),
        "scale": np.array([1], np.float32),
    }
    if loop == "Sampling":
        sardonyx.set_seed(3)
    found = session(model).run(None, feeds)
    if loop == "Sampling":
        sardonyx.set_seed(3)
    np.testing.assert_array_equal(found[0], session(model, sess_options=plain).run(None, feeds)[0])
