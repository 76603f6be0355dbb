"""Models without their programs, as plain data."""

from __future__ import annotations

import marshal

import numpy as np
import pytest
from support.models import model

from sardonyx import InferenceSession
from sardonyx.formats.onnx import to_bytes
from sardonyx.formats.plain_graph import NoPlainForm
from sardonyx.runtime.plan import ProgramStep
from sardonyx.session.built import Built
from sardonyx.session.decisions import outline
from sardonyx.session.decisions.outline import built_of, outline_of
from sardonyx.session.settings.settings import ExecutionSettings

_MODEL = """graph(x: float[n, 4], t: string[m]) -> (y: float[n, 4], u: string[m], c: int64[2]) {
    k: int64[2] = [5, 6]
    a = Relu(x)
    u = Identity(t)
    y = Exp(a)
    c = Identity(k)
}"""


def _built(text: str = _MODEL) -> Built:
    return InferenceSession(to_bytes(model(text)))._runner.built


def _again(built: Built) -> Built:
    programs = [step.program for step in built.plans[0].steps if isinstance(step, ProgramStep)]
    plain = marshal.loads(marshal.dumps(outline_of(built)))
    return built_of(plain, programs, built.providers, built.stamps, (), ExecutionSettings())


def test_a_model_says_the_same_of_itself() -> None:
    """Its inputs, outputs, metadata, placements and report."""
    first = _built()
    second = _again(first)
    assert [value.name for value in second.inputs] == [value.name for value in first.inputs]
    assert second.declared == first.declared
    assert second.metadata == first.metadata
    assert list(second.placements) == list(first.placements)
    assert second.label == first.label
    assert second.report().fired == first.report().fired
    assert second.plans[0].last_use == first.plans[0].last_use
    assert second.plans[0].segments == first.plans[0].segments


def test_a_model_runs() -> None:
    """With constants among its outputs, and texts."""
    first = _built()
    feed = [np.ones((2, 4), np.float32), np.array(["a", "b"], object)]
    for expected, found in zip(first.executor.run(feed), _again(first).executor.run(feed), strict=True):
        assert np.asarray(found).tolist() == np.asarray(expected).tolist()


def test_control_flow_has_no_outline() -> None:
    """Its bodies have plans of their own."""
    built = _built(
        "graph(c: bool[], x: string[2]) -> (y: string[2]) { y = If(c) {then_branch = graph() -> (a) { a = Identity(x) }, "
        "else_branch = graph() -> (b) { b = Identity(x) }} }"
    )
    with pytest.raises(NoPlainForm):
        outline_of(built)


def test_large_constants_have_no_outline(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be in memory twice."""
    monkeypatch.setattr(outline, "_MOST_BYTES", 8)
    with pytest.raises(NoPlainForm):
        outline_of(_built("graph(x: float[4]) -> (y: float[4], k: int64[2]) { k: int64[2] = [5, 6]\n y = Relu(x) }"))


def test_an_outline_of_another_form_is_an_error() -> None:
    """A part that is missing, and programs that are too few."""
    built = _built()
    plain = outline_of(built)
    with pytest.raises(ValueError, match="unpack"):
        built_of(plain[:-1], [], built.providers, {}, (), ExecutionSettings())
    with pytest.raises(ValueError, match="zip"):
        built_of(plain, [], built.providers, {}, (), ExecutionSettings())
