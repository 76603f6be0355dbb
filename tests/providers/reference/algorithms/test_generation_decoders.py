"""How the models inside generation loops are fed; their results are in test_contrib_generation.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, TensorType, Value
from sardonyx.providers.reference.algorithms.generation_decoders import LanguageModel, NextScores

INT, FLOAT = DataType.INT32, DataType.FLOAT


class Recorder:
    """A body that notes what it is fed, and gives zeros."""

    def __init__(self, *extra: str, heads: int | None = 2) -> None:
        past = TensorType(FLOAT, (2, None, heads, None, 4))  # type: ignore[arg-type]  # None stands for a size that is not known
        names = ["input_ids", "position_ids", "attention_mask"]
        inputs = [Value(name, TensorType(INT, None)) for name in names]
        inputs += [Value("past_0", past), *(Value(name, TensorType(INT, None)) for name in extra)]
        self.graph = Graph("decoder", inputs, [Value("logits"), Value("present_0")])
        self.input_count, self.output_count = len(inputs), 2
        self.fed: list[dict[str, Array]] = []

    def __call__(self, *inputs: Any) -> list[Any]:
        self.fed.append(dict(zip([value.name for value in self.graph.inputs], inputs, strict=True)))
        rows, length = inputs[0].shape
        return [np.zeros((rows, length, 5), np.float32), np.zeros((2, rows, 2, inputs[3].shape[3] + length, 4), np.float32)]


class Ranking(Recorder):
    """A body that gives the best token, too."""

    def __call__(self, *inputs: Any) -> list[Any]:
        return [*super().__call__(*inputs), np.array([[4]])]


def make(body: Recorder) -> LanguageModel:
    prompt, mask = np.array([[0, 3, 4]]), np.array([[0, 1, 1]], np.int32)
    return LanguageModel(body, None, prompt, mask, 1, 8)


def test_padding_has_no_position() -> None:
    """Positions count what is read; the next token goes on from there, and the past grows."""
    body = Recorder()
    model = make(body)
    model.start()
    model.advance(np.array([2]), [0], np.zeros((1, 4)))
    model.advance(np.array([1]), [0], np.zeros((1, 5)))
    assert [step["position_ids"].tolist() for step in body.fed] == [[[0, 0, 1]], [[2]], [[3]]]
    assert [step["attention_mask"].shape[1] for step in body.fed] == [3, 4, 5]
    assert [step["past_0"].shape[3] for step in body.fed] == [0, 3, 4]


def test_a_graph_with_buffers_is_told_how_much_of_them_counts() -> None:
    """The buffers have the longest length from the beginning; each beam's past is its own."""
    body = Recorder("past_sequence_length", "cache_indirection")
    model = make(body)
    model.start()
    model.advance(np.array([2]), [0], np.zeros((1, 4)))
    assert body.fed[0]["past_0"].shape == (2, 1, 2, 8, 4)
    assert [step["past_sequence_length"].tolist() for step in body.fed] == [[0], [3]]
    assert body.fed[0]["cache_indirection"].shape == (1, 1, 8)


def test_a_prompt_is_read_once_for_all_beams() -> None:
    """The rows of a batch element begin alike: its past is repeated for them."""
    body = Recorder()
    prompt, mask = np.array([[3, 4], [0, 5]]), np.array([[1, 1], [0, 1]], np.int32)
    model = LanguageModel(body, None, prompt, mask, 3, 8)
    assert model.start().logits.shape == (6, 5)
    model.advance(np.arange(6, dtype=np.int32), [0, 0, 1, 3, 4, 5], np.zeros((6, 3)))
    assert [step["input_ids"].shape for step in body.fed] == [(2, 2), (6, 1)]
    assert body.fed[1]["past_0"].shape == (2, 6, 2, 2, 4)
    assert body.fed[1]["attention_mask"].tolist() == [[1, 1, 1]] * 3 + [[0, 1, 1]] * 3
    assert body.fed[1]["position_ids"].ravel().tolist() == [2] * 3 + [1] * 3


def test_a_graph_that_picks_rows_is_fed_which() -> None:
    """The states stay where they are."""
    body = Recorder("sardonyx.rows")
    prompt, mask = np.array([[3, 4]]), np.array([[1, 1]], np.int32)
    model = LanguageModel(body, None, prompt, mask, 2, 8)
    model.start()
    model.advance(np.array([1, 2]), [1, 1], np.zeros((2, 3)))
    assert [step["sardonyx.rows"].tolist() for step in body.fed] == [[0], [1, 1]]


def test_what_a_graph_chose_for_one_row_is_of_the_first_beam() -> None:
    """Scores are repeated for all beams; the row that each goes on from is the first of its batch element."""
    chosen = [np.array([[5, 6, 7]] * 2), np.array([[0, 0, 0], [1, 1, 1]]), np.zeros((2, 3))]
    found = NextScores(np.zeros((2, 1, 9)), [np.array([[5, 6], [5, 6]])], chosen).repeated(3)
    assert found.logits.shape == (6, 9)
    assert found.best[0].shape == (6, 2)
    assert found.chosen[1].tolist() == [[0, 0, 0], [3, 3, 3]]


def test_a_graph_that_chooses_beams_is_fed_their_totals_and_rows() -> None:
    """One row for each batch element first, then all of them."""
    body = Recorder("sardonyx.totals", "sardonyx.beams")
    prompt, mask = np.array([[3, 4], [5, 6]]), np.ones((2, 2), np.int32)
    model = LanguageModel(body, None, prompt, mask, 2, 8)
    model.start()
    totals = np.array([[-1, -2], [-3, -4]], np.float32)
    model.advance(np.array([1, 2, 3, 4]), [0, 1, 2, 3], np.zeros((4, 3)), totals)
    assert [step["sardonyx.totals"].tolist() for step in body.fed] == [[[0], [0]], totals.tolist()]
    assert [step["sardonyx.beams"].tolist() for step in body.fed] == [[[0], [1]], [[0, 1], [2, 3]]]


def test_what_a_graph_ranks_comes_behind_its_states() -> None:
    """The outputs from the best tokens on are none that the next step reads."""
    body = Ranking()
    body.graph.add_output(Value("sardonyx.best_tokens"))
    model = make(body)
    assert [array.tolist() for array in model.start().best] == [[[4]]]
    model.advance(np.array([2]), [0], np.zeros((1, 4)))
    assert body.fed[1]["past_0"].shape == (2, 1, 2, 3, 4)


def test_logits_have_three_dimensions() -> None:
    """Others are an error that gives their shape."""
    with pytest.raises(InvalidArgument, match=r"logits have shape \(2, 5\)"):
        NextScores(np.zeros((2, 5), np.float32)).logits  # noqa: B018  # reading it is what raises


def test_states_must_be_declared() -> None:
    """Without heads and head size there are no empty pasts to begin with."""
    with pytest.raises(InvalidArgument, match="input 'past_0' of the decoder is declared as"):
        make(Recorder(heads=None)).start()
