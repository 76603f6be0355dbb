"""What all verbs share."""

from __future__ import annotations

import pytest

from sardonyx.cli.console import open_session, progress, readable_errors
from sardonyx.errors import InvalidGraph


def test_errors_of_the_engine_become_one_line_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback."""
    with pytest.raises(SystemExit) as ended, readable_errors():
        raise InvalidGraph("a cycle")
    assert ended.value.code == 1
    assert capsys.readouterr().err == "InvalidGraph: a cycle\n"


def test_other_errors_pass(capsys: pytest.CaptureFixture[str]) -> None:
    """A bug of ours keeps its traceback."""
    with pytest.raises(ZeroDivisionError), readable_errors():
        raise ZeroDivisionError


def test_progress_of_a_short_task_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The bar waits for a second."""
    with progress("short", 2) as advance:
        advance("one")
    assert capsys.readouterr() == ("", "")


def test_a_missing_model_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """With its path."""
    with pytest.raises(SystemExit), readable_errors():
        open_session("no-such.onnx", ())
    assert "no-such.onnx" in capsys.readouterr().err
