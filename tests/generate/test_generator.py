"""Tests of generators."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from support.decoders import END, VOCABULARY, write_decoder

from sardonyx.errors import InvalidArgument
from sardonyx.generate.generator import Generator
from sardonyx.generate.loading import load

PROMPTS = [[1, 2, 3], [5, 6, 7, 8, 9, 10], [11]]


@pytest.fixture(params=["growing", "shared", "none"])
def model(tmp_path: Path, request: pytest.FixtureRequest) -> Generator:
    """Return a generator of each kind of decoder."""
    return load(write_decoder(tmp_path / "model.onnx", request.param))


def test_all_kinds_of_caches_make_the_same_tokens(model: Generator, tmp_path: Path) -> None:
    """Those of a model that reads whole rows in every step."""
    plain = load(write_decoder(tmp_path / "plain.onnx", "none"))
    assert model.generate(PROMPTS, max_new_tokens=30) == plain.generate(PROMPTS, max_new_tokens=30)


def test_a_batch_makes_the_tokens_of_each_prompt_alone(model: Generator) -> None:
    """Greedy, and drawn with the place of the row."""
    assert model.generate(PROMPTS, max_new_tokens=9) == [model.generate(prompt, max_new_tokens=9)[0] for prompt in PROMPTS]
    assert (
        model.generate(PROMPTS, seed=1, temperature=2.0, max_new_tokens=9)[0]
        == model.generate(PROMPTS[0], seed=1, temperature=2.0, max_new_tokens=9)[0]
    )


def test_a_stream_gives_what_generate_returns(model: Generator) -> None:
    """Token by token, with the number of the row."""
    stream = model.stream(PROMPTS, max_new_tokens=4)
    tokens = list(stream)
    assert [[token.id for token in tokens if token.row == row] for row in range(3)] == [result.ids for result in stream.results]
    assert stream.results == model.generate(PROMPTS, max_new_tokens=4)


def test_tokens_are_made_when_they_are_asked_for(model: Generator) -> None:
    """A stream that nobody reads runs nothing."""
    calls: list[int] = []

    def count(ids: object, scores: np.ndarray) -> np.ndarray:
        calls.append(0)
        return scores

    stream = model.stream([1], max_new_tokens=50, processors=[count])
    next(stream)
    next(stream)
    assert len(calls) == 2


def test_a_closed_stream_frees_its_caches(tmp_path: Path) -> None:
    """At once, without a collection of garbage."""
    model = load(write_decoder(tmp_path / "model.onnx"))
    held: list[weakref.ref[object]] = []
    start = model.decoder.start

    def noted(*arguments: object, **more: object) -> object:
        found = start(*arguments, **more)  # type: ignore[arg-type]  # passed on
        held.append(weakref.ref(found[0].cache))
        return found

    model.decoder.start = noted  # type: ignore[method-assign,assignment]  # sees what the stream holds
    gc.disable()
    try:
        with model.stream([1, 2], max_new_tokens=50) as stream:
            next(stream)
            assert held[0]() is not None
        assert held[0]() is None
        assert list(stream) == []
    finally:
        gc.enable()


def test_a_row_ends_at_its_token(model: Generator) -> None:
    """A processor that makes it certain after two tokens."""

    def end(ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
        if len(ids) == 3:
            scores[END] = 1e6
        return scores

    (found,) = model.generate([1], max_new_tokens=9, processors=[end], eos_token_id=END)
    assert (len(found.ids), found.ids[-1], found.reason) == (3, END, "stop")


def test_several_results_are_drawn_for_a_prompt(model: Generator) -> None:
    """Each with numbers of its own."""
    found = model.generate([1, 2], num_return_sequences=3, temperature=1.5, seed=0, max_new_tokens=8)
    assert len({tuple(result.ids) for result in found}) == 3


def test_arrays_are_prompts(model: Generator) -> None:
    """Of one dimension for one, of two for several."""
    expected = model.generate([[1, 2], [3, 4]], max_new_tokens=3)
    assert model.generate(np.array([[1, 2], [3, 4]]), max_new_tokens=3) == expected
    assert model.generate(np.array([1, 2], np.int32), max_new_tokens=3) == expected[:1]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([], "row 0 is empty"),
        ([[1], []], "row 1 is empty"),
        ("text", "needs a tokenizer"),
        ([VOCABULARY], "vocabulary"),
        ([-1], "vocabulary"),
        ([1.5], "list of token ids"),
        (3, "got int"),
        ([["a"]], "list of token ids"),
    ],
)
def test_prompts_that_are_none_are_errors(model: Generator, prompt: object, message: str) -> None:
    """They say what was given, and what a prompt is."""
    with pytest.raises(InvalidArgument, match=message):
        model.generate(prompt)  # type: ignore[arg-type]  # wrong on purpose


def test_what_is_for_an_encoder_is_an_error_without_one(model: Generator) -> None:
    """It has none."""
    with pytest.raises(InvalidArgument, match="models with an encoder"):
        model.generate([1], decoder_prompt=[2])


def test_a_conversation_needs_a_template(model: Generator) -> None:
    """It says which files have them."""
    with pytest.raises(InvalidArgument, match="chat template"):
        model.chat([{"role": "user", "content": "Hi"}])


def test_arrays_of_any_package_are_prompts(model: Generator) -> None:
    """One of rank 1 is a prompt, one of rank 2 a batch, which may be empty."""

    class Tensor:
        def __init__(self, tokens: object) -> None:
            self.tokens = np.asarray(tokens)

        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return self.tokens

    expected = model.generate([[1, 2], [3, 4]], max_new_tokens=3)
    assert model.generate(Tensor([[1, 2], [3, 4]]), max_new_tokens=3) == expected
    assert model.generate(Tensor([1, 2]), max_new_tokens=3) == expected[:1]
    assert model.generate([Tensor([1, 2]), Tensor([3, 4])], max_new_tokens=3) == expected
    assert model.generate(np.zeros((0, 3), np.int64)) == []


@pytest.mark.parametrize("change", [{"draft": "model"}, {"draft_tokens": 2.5}, {"draft_tokens": 0}])
def test_a_draft_is_a_model_and_its_tokens_are_counted(model: Generator, change: dict[str, object]) -> None:
    """Anything else is refused by its name."""
    with pytest.raises(InvalidArgument, match=next(iter(change))):
        model.generate([1], **{"draft": model} | change)


def test_a_stream_that_was_closed_has_not_ended(model: Generator) -> None:
    """Its result says neither that it stopped nor that it was long enough."""
    stream = model.stream([1, 2], max_new_tokens=5)
    next(stream)
    stream.close()
    assert stream.results[0].reason == "open"
