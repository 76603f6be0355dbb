"""Messages for people."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

import sardonyx as ort
from sardonyx.logs import log


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Leave the logger as it was."""
    level = logging.getLogger("sardonyx").level
    yield
    ort.set_default_logger_callback(None)
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
