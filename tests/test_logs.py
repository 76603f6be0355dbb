"""Messages for people."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx import trace
from sardonyx.formats.onnx import to_bytes
from sardonyx.logs import log, user_stacklevel


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Begin with the process's own severity, and leave the logger as it was."""
    level = logging.getLogger("sardonyx").level
    ort.set_default_logger_callback(None)
    ort.set_default_logger_severity(2)
    yield
    ort.set_default_logger_callback(None)
    ort.set_default_logger_severity(2)
    logging.getLogger("sardonyx").setLevel(level)


def test_severities_are_pythons_levels(caplog: pytest.LogCaptureFixture) -> None:
    """What lies below the severity is not written."""
    ort.set_default_logger_severity(3)
    log(2, "a warning")
    log(3, "an error", logid="mine")
    assert [(record.levelname, record.name, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "sardonyx.mine", "an error")
    ]


def test_a_session_may_write_more_than_the_process() -> None:
    """Its own severity decides."""
    told: list[str] = []
    ort.set_default_logger_callback(lambda *what: told.append(what[4]), 4)
    log(1, "for the session", least=0)
    log(1, "for nobody")
    assert told == ["for the session"]


def test_a_callback_is_called_with_five_values() -> None:
    """Severity, category, logid, place and message."""
    told: list[tuple[int, str, str, str, str]] = []
    ort.set_default_logger_callback(lambda *what: told.append(what), 1)
    log(2, "text", logid="mine")
    assert [(what[0], what[1], what[2], what[4]) for what in told] == [(2, "sardonyx", "mine", "text")]


def test_a_callback_that_raises_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error goes to sys.unraisablehook; a message from within it does not come back to it."""
    seen: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda what: seen.append(str(what.exc_value)))

    def callback(*_what: object) -> None:
        log(3, "from within")
        raise ValueError("mine")

    ort.set_default_logger_callback(callback, 1)
    log(3, "text")
    assert seen == ["mine"]


@pytest.mark.parametrize("severity", [-1, 5])
def test_a_severity_outside_is_refused(severity: int) -> None:
    """By both functions; a text is a TypeError."""
    with pytest.raises(ort.InvalidArgument, match="Invalid logging severity"):
        ort.set_default_logger_severity(severity)
    with pytest.raises(ort.InvalidArgument, match="Invalid logging severity"):
        ort.set_default_logger_callback(None, severity)


MODEL = to_bytes(model("graph(x: float[2]) -> (y) { y = Neg(x) }"))


def _told(severity: int = 4) -> list[tuple[int, str, str, str, str]]:
    told: list[tuple[int, str, str, str, str]] = []
    ort.set_default_logger_callback(lambda *what: told.append(what), severity)
    return told


def test_a_session_says_what_it_does_where_it_is_asked_to() -> None:
    """Its spans are verbose, with their time; its logid names the messages, each of one line."""
    told = _told()
    options = ort.SessionOptions()
    options.log_severity_level, options.logid = 0, "mine"
    session = ort.InferenceSession(MODEL, options)
    built = [what for what in told if what[4].startswith("session.build ")]
    assert [(what[0], what[2]) for what in built] == [(0, "mine")]
    assert built[0][4].split()[2] == "ms"
    told.clear()
    session.run(None, {"x": np.zeros(2, np.float32)})
    assert any(what[4].startswith("session.run ") for what in told)
    assert not any("\n" in what[4] for what in told)


def test_a_run_may_ask_for_itself() -> None:
    """Its severity and logid come before the session's."""
    told = _told()
    session = ort.InferenceSession(MODEL)
    options = ort.RunOptions()
    options.log_severity_level, options.logid = 0, "this"
    session.run(None, {"x": np.zeros(2, np.float32)}, options)
    assert {what[2] for what in told} == {"this"}
    told.clear()
    session.run(None, {"x": np.zeros(2, np.float32)})
    assert not told


def test_severities_of_the_process_count_for_all() -> None:
    """Information has no spans; nothing is said where nobody asks."""
    told = _told(0)
    ort.InferenceSession(MODEL)
    assert any(what[0] == 0 for what in told)
    ort.set_default_logger_severity(3)
    told.clear()
    ort.InferenceSession(MODEL)
    assert not told


def test_the_level_of_pythons_logger_counts(caplog: pytest.LogCaptureFixture) -> None:
    """Where it is set before the session is made."""
    with caplog.at_level(logging.DEBUG, "sardonyx"):
        ort.InferenceSession(MODEL)
    assert any(record.getMessage().startswith("session.build ") for record in caplog.records)


def test_what_goes_wrong_is_a_warning_that_nobody_needs_to_ask_for(caplog: pytest.LogCaptureFixture) -> None:
    """By name; another event is not told of."""
    trace.event("provider.left_out", provider="Mine", reason="two\nlines")
    trace.event("rewrite.fire", rule="any")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "provider.left_out provider=Mine reason=two lines")
    ]


def test_a_severity_of_options_is_at_most_fatal() -> None:
    """Another number is an error when the session is made."""
    options = ort.SessionOptions()
    options.log_severity_level = 5
    with pytest.raises(ort.InvalidArgument, match="log_severity_level is 0"):
        ort.InferenceSession(MODEL, options)


def test_a_warning_names_the_line_of_the_user() -> None:
    """However deep in the package it is given, also where a subclass of the user stands between."""

    class Mine(ort.InferenceSession):
        def _create_inference_session(self, *given: Any) -> None:
            super()._create_inference_session(*given)

    session = ort.InferenceSession(MODEL)
    for make in (ort.InferenceSession, Mine, lambda model, providers: session.set_providers(providers)):
        with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not available") as caught:
            make(MODEL, providers=["CUDAExecutionProvider"])
        assert caught[0].filename == __file__
    assert user_stacklevel() == 1
