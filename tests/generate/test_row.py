"""Tests of rows."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.generate.row import Row, most_tokens
from sardonyx.generate.settings import Settings


def test_a_row_ends_with_its_reason() -> None:
    """The token that ends it is part of the result."""
    row = Row([1], Settings(eos_token_id=(2,), max_new_tokens=5))
    row.push(3)
    row.push(2)
    assert (row.result().ids, row.result().reason, row.result().prompt_tokens) == ([3, 2], "stop", 1)


def test_the_models_range_limits_a_row() -> None:
    """The last token is made and not read, so there is one more than fits."""
    assert most_tokens(Settings(max_new_tokens=50), 10, 12) == 3
    assert most_tokens(Settings(), 10, None) == 256


def test_a_prompt_that_is_too_long_is_an_error() -> None:
    """It says by how much."""
    with pytest.raises(InvalidArgument, match="13 tokens, and the model reads 12"):
        most_tokens(Settings(), 13, 12)


def test_stop_words_need_a_tokenizer() -> None:
    """The message names what does without."""
    with pytest.raises(InvalidArgument, match="stop_sequences"):
        Row([1], Settings(stop_words=("a",)))


def test_processors_see_prompt_and_new_tokens() -> None:
    """In order."""
    seen: list[list[int]] = []

    def note(ids: object, scores: np.ndarray) -> np.ndarray:
        seen.append(list(ids))  # type: ignore[call-overload]  # a sequence of tokens
        return scores

    row = Row([1, 2], Settings(processors=(note,)))
    row.push(row.choose(np.array([0, 1], np.float32)))
    row.choose(np.array([0, 1], np.float32))
    assert seen == [[1, 2], [1, 2, 1]]


def test_a_row_goes_back_to_a_mark() -> None:
    """With its tokens, its end and the numbers that it draws."""
    row = Row([1], Settings(do_sample=True, seed=3, max_new_tokens=2))
    mark, scores = row.mark(), np.zeros(1000, np.float32)
    first = [row.push(row.choose(scores)).id for _ in range(2)]
    row.go_back(mark)
    assert (row.new, row.reason) == ([], None)
    assert [row.push(row.choose(scores)).id for _ in range(2)] == first
