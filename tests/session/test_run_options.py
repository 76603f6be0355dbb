"""Options of runs with onnxruntime's names."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from support.models import model

import sardonyx
from sardonyx.errors import Fail, InvalidArgument, RunTerminated
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.run_options import RunOptions, asks_for_logs, severity_of

NEGATED = to_bytes(model("graph(x: float[2]) -> (y: float[2]) {\ny = Neg(x)\n}"))


def test_an_unknown_config_entry_lists_the_known() -> None:
    """The message says what was added."""
    options = RunOptions()
    options.add_run_config_entry("a", "1")
    with pytest.raises(InvalidArgument, match="does not have configuration with key: b; added so far: a"):
        options.get_run_config_entry("b")


def test_copies_of_run_options_are_terminated_by_themselves() -> None:
    """As other attributes are, `terminate` is each copy's own."""
    options = RunOptions()
    other = copy.deepcopy(options)
    options.terminate = True
    assert not other.terminate
    other.cancellation().check()
    with pytest.raises(RunTerminated):
        options.cancellation().check()


@pytest.mark.parametrize("level", [-2, 5, 99, -(2**31), 2**31 - 1])
def test_a_severity_that_does_not_exist_ends_the_run(level: int) -> None:
    """As in onnxruntime it may be set, and is refused when a run gets it; the session goes on."""
    session, options, feed = sardonyx.InferenceSession(NEGATED), RunOptions(), {"x": np.float32([1, 2])}
    options.log_severity_level = level
    with pytest.raises(Fail, match=rf"log_severity_level is 0 \(verbose\) to 4 \(fatal\), or -1 for the session's, got {level}"):
        session.run(None, feed, options)
    options.log_severity_level = 3
    assert session.run(None, feed, options)[0].tolist() == [-1, -2]


def test_a_run_has_the_severity_of_its_session_unless_it_says_another() -> None:
    """-1 is the session's."""
    options = RunOptions()
    assert (severity_of(options, 2), asks_for_logs(options)) == (2, False)
    options.log_severity_level = 0
    assert (severity_of(options, 2), asks_for_logs(options)) == (0, True)


def test_what_is_no_options_asks_for_nothing() -> None:
    """A run refuses it later, with its own message."""
    assert not asks_for_logs({"logid": "a"})
