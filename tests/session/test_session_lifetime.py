"""How long sessions live, and what they leave behind."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.circles import assert_no_circles
from support.models import model
from support.session_models import BRANCH, MLP, VISION, rows, session

import sardonyx as ort
from sardonyx.formats.onnx import save, to_bytes


def test_sessions_made_and_dropped_leave_nothing() -> None:
    """A thousand of them; nothing that the garbage collector sees is left over."""
    content = to_bytes(model(MLP))
    feed = rows(2)
    ort.InferenceSession(content).run(None, feed)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1000):
        ort.InferenceSession(content).run(None, feed)
    gc.collect()
    assert len(gc.get_objects()) - before < 1000


def _fails(action: Callable[[], object]) -> None:
    with pytest.raises(ort.errors.SardonyxError):
        action()


MIXED = "graph(x: float[n], i: int64[m]) -> (y: float[m]) {\na = Exp(x)\ny = Gather(a, i) @pick\n}"
CONTENTS = {name: to_bytes(model(text)) for name, text in (("mlp", MLP), ("branch", BRANCH), ("mixed", MIXED))}
CONTENTS["vision"] = to_bytes(VISION)
UNKNOWN = CONTENTS["mlp"].replace(b"Softmax", b"Softmix")
BRANCH_FEED = {"c": np.array(True), "x": np.ones(4, np.float32)}


def _made(name: str, **options: Any) -> ort.InferenceSession:
    return ort.InferenceSession(CONTENTS[name], **options)


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(lambda: _made("mlp"), id="made"),
        pytest.param(lambda: _made("mlp").run(None, rows(3)), id="run"),
        pytest.param(lambda: _made("vision"), id="other layout"),
        pytest.param(lambda: _made("branch").run(None, BRANCH_FEED), id="control flow"),
        pytest.param(lambda: _made("branch", providers=["ReferenceExecutionProvider"]).run(None, BRANCH_FEED), id="reference"),
        pytest.param(lambda: _fails(lambda: _made("mlp").run(None, {"x": np.zeros((2, 4))})), id="wrong feed"),
        pytest.param(
            lambda: _fails(lambda: _made("mixed").run(None, {"x": np.ones(3, np.float32), "i": np.int64([7])})), id="failed run"
        ),
        pytest.param(lambda: _fails(lambda: ort.InferenceSession(UNKNOWN)), id="failed creation"),
        pytest.param(lambda: _fails(lambda: ort.InferenceSession(UNKNOWN[:-9])), id="no model"),
    ],
)
def test_a_session_goes_with_its_last_reference(action: Callable[[], object]) -> None:
    """Without the garbage collector nothing of session and model stays, also where creation or a run failed."""

    def act() -> None:
        action()

    assert_no_circles(act)


def test_sessions_of_compiled_models_go_too(tmp_path: Path) -> None:
    """Neither the session that writes a compiled model nor one that loads it leaves a graph behind."""
    save(model(MLP), tmp_path / "m.onnx")
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "compiled.onnx"))

    def act() -> None:
        (tmp_path / "compiled.onnx").unlink(missing_ok=True)
        ort.InferenceSession(tmp_path / "m.onnx", options, providers=["CPUExecutionProvider"])
        ort.InferenceSession(tmp_path / "compiled.onnx", providers=["CPUExecutionProvider"]).run(None, rows(2))

    assert_no_circles(act)


def test_a_dropped_session_is_gone_at_once() -> None:
    """A weak reference to it is dead right after `del`, without the garbage collector."""
    held = session(BRANCH)
    held.run(None, BRANCH_FEED)
    alive = weakref.ref(held)
    gc.disable()
    try:
        del held
        assert alive() is None
    finally:
        gc.enable()


def test_sessions_leave_the_collector_of_the_program_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making and running one calls nothing that changes how and when garbage is found."""
    for name in ("disable", "enable", "freeze", "unfreeze", "set_threshold", "collect"):
        monkeypatch.delattr(gc, name)
    session(BRANCH).run(None, BRANCH_FEED)
