"""The handler that calls a user's function."""

from __future__ import annotations

import logging
import subprocess
import sys

from sardonyx.log_handler import CallbackHandler

_LEVELS = (10, 20, 30, 40, 50)


def _record(level: int, name: str, text: str) -> logging.LogRecord:
    return logging.LogRecord(name, level, "place", 7, text, (), None)


def test_a_record_becomes_five_values() -> None:
    """Severity, category, logid, place and message."""
    seen: list[tuple[int, str, str, str, str]] = []
    handler = CallbackHandler(lambda *what: seen.append(what), _LEVELS, lambda *_what: None)
    handler.emit(_record(30, "sardonyx.mine", "text"))
    assert seen == [(2, "sardonyx", "mine", "place:7", "text")]


def test_what_a_function_raises_is_reported() -> None:
    """With the function, and a message that comes from within it is not handed to it again."""
    reported: list[object] = []

    def callback(*_what: object) -> None:
        handler.emit(_record(30, "sardonyx", "from within"))
        raise ValueError("mine")

    handler = CallbackHandler(callback, _LEVELS, lambda source, what: reported.append((source, what, str(sys.exc_info()[1]))))
    handler.emit(_record(30, "sardonyx", "text"))
    assert reported == [(callback, "a log callback raised", "mine")]


def test_a_program_without_logging_is_spared_it() -> None:
    """Importing the package imports neither `logging` nor a pool of threads; messages are then for nobody."""
    code = """
import sys, sardonyx
from sardonyx.logs import is_verbose, log
log(3, "text")
assert not is_verbose(-1)
assert not {"logging", "concurrent.futures", "secrets", "json"} & sys.modules.keys(), sys.modules.keys()
import logging
log(3, "for a handler that nobody has")
sardonyx.set_default_logger_callback(lambda *what: print(what[4]))
log(3, "for a function")
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr) == ("for a function\n", "")
