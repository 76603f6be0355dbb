"""Tokens ranked in the graphs of generation loops."""

from __future__ import annotations

import numpy as np
import pytest
from support.optimizing import model_of
from support.session_models import session

from sardonyx.dtypes import DataType
from sardonyx.ir import Graph, Model
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.rank_next_tokens import RANK_NEXT_TOKENS

OPSET = "17, com.microsoft 1"
BEAMS = "BeamSearch(ids, most, least, beams, one, scale, scale{inputs})"
GREEDY = "GreedySearch(ids, most, least, scale{inputs})"


def text(loop: str, attributes: str = "", inputs: str = "", logits: str = "float[rows, length, 8]") -> str:
    call = loop.format(inputs=inputs)
    return f"""graph(ids: int32[b, s], most: int32[1], least: int32[1], one: int32[1], scale: float[1], mask: int32[8]) -> (y) {{
        beams: int32[1] = [3]
        y = com.microsoft.{call} {{eos_token_id = 1, pad_token_id = 0 {attributes}, decoder = graph(
            input_ids: int32[rows, length], x: {logits}
        ) -> (logits: {logits}) {{logits = Identity(x)}}}}}}"""


def ranked(source: str) -> tuple[Graph, bool]:
    model: Model = model_of(source, OPSET)
    INFER_SHAPES.run(model, Context())
    changed = RANK_NEXT_TOKENS.run(model, Context())
    INFER_SHAPES.run(model, Context())
    verify(model)
    (node,) = model.graph
    body = node.subgraph("decoder")
    assert body is not None
    assert not RANK_NEXT_TOKENS.run(model, Context())
    return body, changed


def test_greedy_search_gets_the_likeliest_token() -> None:
    """One for each row, of the last place."""
    body, changed = ranked(text(GREEDY))
    assert changed
    assert [node.op_type for node in body] == ["Identity", "Gather", "ArgMax", "Cast"]
    assert body.outputs[1].name == "sardonyx.best_tokens"
    assert body.outputs[1].dtype is body.inputs[0].dtype


def test_beams_get_as_many_tokens_as_there_are_beams_and_one() -> None:
    """With the logarithms of their probabilities, as floats whatever the type of the logits."""
    body, changed = ranked(text(BEAMS, logits="float16[rows, length, 8]"))
    assert changed
    assert [node.op_type for node in body][:5] == ["Identity", "Gather", "Cast", "LogSoftmax", "TopK"]
    tokens, scores = body.outputs[1:3]
    assert (tokens.name, scores.name) == ("sardonyx.best_tokens", "sardonyx.best_scores")
    assert (tokens.shape or ())[1] == 4
    assert scores.dtype is DataType.FLOAT


def test_the_best_of_all_beams_are_chosen() -> None:
    """By their totals and rows, two further inputs; tokens are of the type that the next step reads."""
    body, _ = ranked(text(BEAMS))
    assert [value.name for value in body.inputs[-2:]] == ["sardonyx.totals", "sardonyx.beams"]
    tokens, rows, totals = body.outputs[3:]
    assert [value.name for value in (tokens, rows, totals)] == [
        "sardonyx.next_tokens",
        "sardonyx.next_rows",
        "sardonyx.next_totals",
    ]
    assert (tokens.dtype, rows.dtype, totals.dtype) == (DataType.INT32, DataType.INT64, DataType.FLOAT)
    assert all((value.shape or ())[1] == 3 for value in (tokens, rows, totals))


@pytest.mark.parametrize("source", [text(BEAMS.replace("beams", "one")), text(BEAMS, ", vocab_size = 3")])
def test_none_are_chosen_of_too_few(source: str) -> None:
    """A number of beams that is fed, and fewer tokens than beams and one."""
    body, _ = ranked(source)
    assert len(body.outputs) == 3


def test_a_number_of_beams_that_is_fed_gets_sixteen_tokens_or_all() -> None:
    """The vocabulary has fewer here."""
    body, _ = ranked(text(BEAMS.replace("beams", "one")))
    assert (body.outputs[1].shape or ())[1] == 8


def test_the_vocabulary_is_cut() -> None:
    """Scores behind it are of no tokens."""
    body, _ = ranked(text(BEAMS, ", vocab_size = 3"))
    assert "Slice" in [node.op_type for node in body]
    assert (body.outputs[1].shape or ())[1] == 3


@pytest.mark.parametrize(
    "source",
    [
        text(GREEDY, inputs=", mask"),
        text(BEAMS, inputs=", mask"),
        text(BEAMS, ", no_repeat_ngram_size = 2"),
        text(BEAMS, logits="float[rows, length, V]"),
        text(GREEDY, logits="int32[rows, length, 8]"),
        text(GREEDY, logits="float[rows, 8]"),
        text("Sampling(ids, most, least, scale{inputs})"),
    ],
)
def test_declines(source: str) -> None:
    """Tokens forbidden in each step, an unknown vocabulary, other logits, and Sampling."""
    assert not ranked(source)[1]


@pytest.mark.parametrize("least", [1, 7])
@pytest.mark.parametrize("end", [1, 4])
@pytest.mark.parametrize("loop", [BEAMS, GREEDY])
def test_it_chooses_the_same_tokens(loop: str, end: int, least: int) -> None:
    """With the pass and without it, whichever token is the end, and where it comes too early."""
    source = f"""graph(ids: int32[b, s], most: int32[1], least: int32[1], one: int32[1], scale: float[1], mask: int32[8]) -> (y) {{
        beams: int32[1] = [3]
        y = com.microsoft.{loop.format(inputs="")} {{eos_token_id = {end}, pad_token_id = 0, decoder = graph(
            input_ids: int32[rows, length]
        ) -> (logits: float[rows, length, 8]) {{
            table: float[8, 8] = ... 3
            logits = Gather(table, input_ids)}}}}}}"""
    feed = {
        "ids": np.array([[2, 3], [0, 5]], np.int32),
        "most": np.array([9], np.int32),
        "least": np.array([least], np.int32),
        "one": np.array([1], np.int32),
        "scale": np.array([1], np.float32),
        "mask": np.ones(8, np.int32),
    }
    with_pass = session(model_of(source, OPSET)).run(None, feed)[0]
    without = session(model_of(source, OPSET), disabled_optimizers=["rank_next_tokens"]).run(None, feed)[0]
    np.testing.assert_array_equal(with_pass, without)
