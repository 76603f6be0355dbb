"""How the models inside generation loops are fed; their results are in test_contrib_generation.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, TensorType, Value
from sardonyx.providers.reference.algorithms.generation_decoders import LanguageModel

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


def make(body: Recorder) -> LanguageModel:
    prompt, mask = np.array([[0, 3, 4]]), np.array([[0, 1, 1]], np.int32)
    return LanguageModel(body, None, prompt, mask, 1, 8)


def test_padding_has_no_position() -> None:
    """Positions count what is read; the next token goes on from there, and the past grows."""
    body = Recorder()
    model = make(body)
    model.start()
    model.advance(np.array([2]), np.array([0]), np.zeros((1, 4)))
    model.advance(np.array([1]), np.array([0]), np.zeros((1, 5)))
    assert [step["position_ids"].tolist() for step in body.fed] == [[[0, 0, 1]], [[2]], [[3]]]
    assert [step["attention_mask"].shape[1] for step in body.fed] == [3, 4, 5]
    assert [step["past_0"].shape[3] for step in body.fed] == [0, 3, 4]


def test_a_graph_with_buffers_is_told_how_much_of_them_counts() -> None:
    """The buffers have the longest length from the beginning; each beam's past is its own."""
    body = Recorder("past_sequence_length", "cache_indirection")
    model = make(body)
    model.start()
    model.advance(np.array([2]), np.array([0]), np.zeros((1, 4)))
    assert body.fed[0]["past_0"].shape == (2, 1, 2, 8, 4)
    assert [step["past_sequence_length"].tolist() for step in body.fed] == [[0], [3]]
    assert body.fed[0]["cache_indirection"].shape == (1, 1, 8)


def test_states_must_be_declared() -> None:
    """Without heads and head size there are no empty pasts to begin with."""
    with pytest.raises(InvalidArgument, match="input 'past_0' of the decoder is declared as"):
        make(Recorder(heads=None)).start()
