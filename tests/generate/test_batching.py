"""Tests of requests that share the steps of a decoder."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from support.decoders import write_decoder

from sardonyx import generate
from sardonyx.errors import InvalidArgument
from sardonyx.generate.batching import Batch, group_prompts
from sardonyx.generate.generator import Generator
from sardonyx.generate.loading import load

_PACKAGE = Path(generate.__file__).parent
PROMPTS = [[1, 2, 3], [5, 6, 7, 8, 9, 10], [11], [4, 4], [9, 8, 7, 6]]


@pytest.fixture(params=["growing", "shared", "none"])
def model(tmp_path: Path, request: pytest.FixtureRequest) -> Generator:
    """Return a generator of each kind of decoder."""
    return load(write_decoder(tmp_path / "model.onnx", request.param))


def test_requests_that_come_and_go_get_their_own_tokens(model: Generator) -> None:
    """Two places, five requests of different lengths, some of which come later."""
    counts = [12, 3, 9, 1, 6]
    expected = [model.generate(prompt, max_new_tokens=count)[0] for prompt, count in zip(PROMPTS, counts, strict=True)]
    batch = Batch(model, 2)
    requests = [batch.submit(prompt, max_new_tokens=count) for prompt, count in zip(PROMPTS[:3], counts[:3], strict=True)]
    batch.step()
    batch.step()
    requests += [batch.submit(prompt, max_new_tokens=count) for prompt, count in zip(PROMPTS[3:], counts[3:], strict=True)]
    assert len(list(batch)) == sum(counts) - 4
    assert [request.result for request in requests] == expected
    assert not batch.is_busy


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [
        ([], []),
        ([40], [[0]]),
        ([40, 40, 40], [[0, 1, 2]]),
        ([16, 21, 26], [[0], [1, 2]]),
        ([60, 5, 61, 4], [[3, 1], [0, 2]]),
        ([1, 2, 3, 4], [[0, 1, 2, 3]]),
    ],
)
def test_prompts_are_read_together_where_little_is_padded(lengths: list[int], groups: list[list[int]]) -> None:
    """Equal ones, and short ones, of which a run takes as long as of one."""
    assert group_prompts(lengths) == groups


def test_a_drawn_request_gets_the_tokens_of_its_seed(model: Generator) -> None:
    """Whatever else shares its steps."""
    batch = Batch(model)
    requests = [batch.submit(prompt, seed=3, temperature=3.0, max_new_tokens=5) for prompt in PROMPTS]
    list(batch)
    alone = [model.generate(prompt, seed=3, temperature=3.0, max_new_tokens=5)[0].ids for prompt in PROMPTS]
    assert [request.result.ids for request in requests] == alone


def test_a_cancelled_request_gives_its_place_back(model: Generator) -> None:
    """One that runs before the next step, one that waits before it begins."""
    batch = Batch(model, 1)
    running, waiting, last = (batch.submit(prompt, max_new_tokens=3) for prompt in PROMPTS[:3])
    batch.step()
    running.cancel()
    waiting.cancel()
    list(batch)
    assert (len(running.result.ids), len(waiting.result.ids), len(last.result.ids)) == (1, 0, 3)


def test_a_closed_batch_holds_nothing(tmp_path: Path) -> None:
    """Its requests are done."""
    model = load(write_decoder(tmp_path / "model.onnx"))
    with Batch(model) as batch:
        request = batch.submit([1, 2])
        batch.step()
        assert batch.size_bytes > 0
    assert batch.size_bytes == 0
    assert request.is_done
    assert batch.step() == []


def test_prompts_that_begin_alike_are_read_once(tmp_path: Path) -> None:
    """Where the generator keeps prompts."""
    model = load(write_decoder(tmp_path / "model.onnx"), prompt_cache_bytes=1 << 20)
    expected = [model.generate([1, 2, 3, 4], max_new_tokens=3)[0].ids, model.generate([1, 2, 3, 9], max_new_tokens=3)[0].ids]
    batch = Batch(model)
    requests = [batch.submit(ids, max_new_tokens=3) for ids in ([1, 2, 3, 4], [1, 2, 3, 9])]
    list(batch)
    assert [request.result.ids for request in requests] == expected


def test_requests_come_from_other_threads(model: Generator) -> None:
    """While steps are made."""
    batch, requests = Batch(model), []
    threads = [threading.Thread(target=lambda ids=ids: requests.append(batch.submit(ids, max_new_tokens=4))) for ids in PROMPTS]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or batch.is_busy:
        batch.step()
    assert all(len(request.result.ids) == 4 for request in requests)


def test_a_request_that_cannot_run_is_refused_at_once(model: Generator) -> None:
    """Those that run are not disturbed."""
    batch = Batch(model)
    for prompt, settings in (([], {}), ([1000], {}), ([1], {"num_beams": 2}), ([1], {"unknown": 1})):
        with pytest.raises(InvalidArgument):
            batch.submit(prompt, **settings)
    with pytest.raises(InvalidArgument, match="most_rows"):
        Batch(model, 0)


def test_an_error_of_one_request_costs_the_others_nothing(model: Generator) -> None:
    """A processor that fails ends its own request; the tokens of that step come with the next."""
    expected = model.generate(PROMPTS[1], max_new_tokens=6)[0]
    batch = Batch(model)
    failing = batch.submit(PROMPTS[0], max_new_tokens=6, processors=[lambda ids, scores: {len(PROMPTS[0]): scores}[len(ids)]])
    other = batch.submit(PROMPTS[1], max_new_tokens=6)
    made = batch.step()
    with pytest.raises(KeyError):
        batch.step()
    assert (failing.is_done, type(failing.error)) == (True, KeyError)
    made += list(batch)
    assert [token.id for request, token in made if request is other] == other.result.ids == expected.ids


def test_a_prompt_whose_run_fails_is_not_lost(model: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its request has the error, and the batch goes on."""
    batch = Batch(model)
    request = batch.submit(PROMPTS[0], max_new_tokens=2)
    monkeypatch.setattr(model, "start", _run_out_of_memory)
    with pytest.raises(MemoryError):
        batch.step()
    assert (request.is_done, type(request.error), batch.is_busy) == (True, MemoryError, False)


def test_a_step_that_ctrl_c_ends_has_not_taken_place(model: Generator) -> None:
    """Wherever it comes: at the n-th line of this package's code for every 37th n; drawn tokens are those of the seed."""
    settings = [{}, {"seed": 3, "temperature": 3.0}, {"max_new_tokens": 2}]
    settings = [{"max_new_tokens": 4, **chosen} for chosen in settings]
    expected = [model.generate(prompt, **chosen)[0] for prompt, chosen in zip(PROMPTS, settings, strict=False)]
    ended, line = 0, 1
    while line == 1 or ended:
        batch, ended = Batch(model, 2), 0
        requests = [batch.submit(prompt, **chosen) for prompt, chosen in zip(PROMPTS, settings, strict=False)]
        while batch.is_busy:
            try:
                with interrupted_at(line):
                    batch.step()
            except KeyboardInterrupt:
                ended += 1
            batch.step()
        assert [request.result for request in requests] == expected, line
        line += 37


def test_a_run_that_fails_costs_no_tokens(model: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next step makes them."""
    expected = model.generate(PROMPTS[1], max_new_tokens=6)[0]
    batch = Batch(model)
    request = batch.submit(PROMPTS[1], max_new_tokens=6)
    batch.step()
    with monkeypatch.context() as patch:
        patch.setattr(model.decoder, "step", _run_out_of_memory)
        with pytest.raises(MemoryError):
            batch.step()
    list(batch)
    assert request.result == expected


@pytest.mark.parametrize("rows", [0, 1.5, "2", None])
def test_a_batch_has_a_whole_number_of_rows(model: Generator, rows: object) -> None:
    """Any other is refused."""
    with pytest.raises(InvalidArgument, match="most_rows"):
        Batch(model, rows)  # type: ignore[arg-type]  # what the test is about


def _run_out_of_memory(*_arguments: object) -> None:
    raise MemoryError


@contextmanager
def interrupted_at(line: int) -> Iterator[None]:
    """Raise KeyboardInterrupt at the n-th line that is run of the package under test, as the handler of a signal would."""
    left = line

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left
        if Path(frame.f_code.co_filename).parent != _PACKAGE:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
