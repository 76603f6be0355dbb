"""Graphs inside nodes that are run by machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.generation_models import language_model, loop_model
from support.session_models import session

import sardonyx
from sardonyx.dtypes import Array
from sardonyx.ir.types import TensorType
from sardonyx.runtime.executors.sequential import SequentialExecutor
from sardonyx.session.stages.native_body import NativeBody, native_body

BODY = """graph(x: float[1, 4], past: float[n, 4]) -> (y: float[1, 4], present: float[m, 4]) {
    present = Concat(past, x) {axis = 0}
    zero: int64[1] = [0]
    y = ReduceMean(present, zero)
}"""
INTEGERS = {"most": 16, "least": 16, "beams": 3, "returned": 2}


def _loop(op_type: str, prompt: Array) -> tuple[bytes, dict[str, Array]]:
    """Return a model that goes on from a prompt by a decoder with growing caches, and its feed."""
    names = list(INTEGERS) if op_type == "BeamSearch" else list(INTEGERS)[:2]
    inputs = [("ids", prompt), *((name, np.int32([INTEGERS[name]])) for name in names)]
    made = loop_model(op_type, inputs, 1, decoder=language_model(), eos_token_id=1, pad_token_id=0)
    return made.SerializeToString(), dict(inputs)


def _body() -> tuple[NativeBody, SequentialExecutor]:
    """Return a body, and an executor of the same plan that runs in Python."""
    made = session(BODY)
    executor, inputs = made._runner.built.executor, made._input_values
    assert isinstance(executor, SequentialExecutor)
    body = native_body(executor.maker()(), inputs, 2)
    assert isinstance(body, NativeBody)
    return body, executor


def _arrays(length: int) -> list[Array]:
    random = np.random.default_rng(length)
    return [random.standard_normal((rows, 4)).astype(np.float32) for rows in (1, length)]


@pytest.mark.parametrize("op_type", ["GreedySearch", "BeamSearch"])
def test_a_loop_chooses_the_tokens_that_it_chooses_in_python(op_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From prompts of several lengths, in turn in one session."""
    for length in (4, 9, 3, 4):
        model, feed = _loop(op_type, np.random.default_rng(length).integers(2, 24, (2, length)).astype(np.int32))
        monkeypatch.setenv("SARDONYX_NATIVE_RUN", "0")
        (expected,) = sardonyx.InferenceSession(model).run(None, feed)
        monkeypatch.delenv("SARDONYX_NATIVE_RUN")
        made = sardonyx.InferenceSession(model)
        for _ in range(2):
            np.testing.assert_array_equal(made.run(None, feed)[0], expected)


def test_a_body_is_run_natively_from_its_third_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with lengths that it has not met, once some have grown."""
    body, plain = _body()
    for length in range(5, 15):
        body.run(_arrays(length))
    expected = {length: plain.run(_arrays(length)) for length in (15, 16, 40)}
    monkeypatch.setattr(body._executor, "run", None)
    for length, results in expected.items():
        for found, wanted in zip(body.run(_arrays(length)), results, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_what_may_be_ended_from_outside_runs_in_python() -> None:
    """So that the run ends inside of the body too."""
    model, feed = _loop("GreedySearch", np.int32([[3, 4, 5]]))
    made = sardonyx.InferenceSession(model)
    made.run(None, feed)
    options: Any = sardonyx.RunOptions()
    options.terminate = True
    with pytest.raises(sardonyx.errors.RunTerminated):
        made.run(None, feed, options)


def test_trimming_forgets_what_was_learned() -> None:
    """The next runs learn it again."""
    body, plain = _body()
    for length in range(5, 15):
        body.run(_arrays(length))
    body.trim()
    for found, wanted in zip(body.run(_arrays(15)), plain.run(_arrays(15)), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert body.maker()() is not body
    assert body.memory().bindings > 0
    assert body.shares == plain.shares


def test_inputs_without_names_of_their_own_stay_in_python() -> None:
    """The executor is returned as it is."""
    body, plain = _body()
    value = next(iter(body._inputs))
    assert isinstance(value.type, TensorType)
    assert native_body(plain, [value, value], 2) is plain
