"""Messages for people, through Python's `logging` under the name "sardonyx", with onnxruntime's severities.

    set_default_logger_severity(1)                       from INFO on
    logging.getLogger("sardonyx").addHandler(handler)    anywhere, as for any package

Messages are events of `trace`, a line each: what went wrong or was left out is a warning, other events are information, and spans,
with their time, are verbose. Nothing is printed unless a program sets up `logging`. Events below warnings are asked for by the
severity of the process, of a session or of a run, or by the level of the logger when a session is made.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import operator
import os
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from sardonyx import trace
from sardonyx.errors import InvalidArgument
from sardonyx.forks import new_lock, without_fork

if TYPE_CHECKING:
    import logging

__all__ = [
    "LogCallback",
    "is_verbose",
    "log",
    "logging_as",
    "report_callback",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "user_stacklevel",
]

LogCallback: TypeAlias = Callable[[int, str, str, str, str], None]
"""f(severity, category, logid, code_location, message)."""

_LEVELS = (10, 20, 30, 40, 50)
"""Python's level for each severity: verbose, info, warning, error, fatal."""
_WARNING = 2
_INFO, _VERBOSE = 1, 0
_WARNINGS = frozenset(
    "cache.corrupt compile_process.lost compile_process.silent context.suboptimal custom_op.left_out disk_cache.off "
    "infer.contradiction load.ignored optimize.left_out placement.fallback placement.ignored profile.failed provider.failed "
    "provider.left_out".split()
)
"""Events that say that something was wrong, or left out."""
_PACKAGE = os.path.dirname(__file__) + os.sep
_SCOPE: contextvars.ContextVar[tuple[int, str]] = contextvars.ContextVar("sardonyx_logs", default=(-1, ""))
"""The severity from which on the session or run of this thread writes, -1 for the process's, and its logid."""
_LOCK = new_lock()
_STATE = {"process": 0, "scopes": 0}
"""How many ask for events below warnings: the process, and the sessions and runs that are under way."""


def log(severity: int, message: str, logid: str = "", least: int = -1) -> None:
    """Write a message.

    Args:
        severity: 0 (verbose) to 4 (fatal).
        message: one line.
        logid: the `logid` of the session or run.
        least: the severity from which on the session or run writes; -1 for the process's.
    """
    logger = _known_logger()
    if logger is not None and severity >= least and (least >= 0 or logger.isEnabledFor(_LEVELS[severity])):
        name = "sardonyx" if not logid else f"sardonyx.{logid}"
        logger.handle(logger.makeRecord(name, _LEVELS[severity], "sardonyx", 0, message, (), None))


@contextlib.contextmanager
def logging_as(severity: int, logid: str) -> Iterator[None]:
    """Write what happens in the block, in this thread, as a session or run asks for it.

    Args:
        severity: from which on it writes; -1 for the process's.
        logid: what its messages are named by.
    """
    token = _SCOPE.set((severity, logid))
    wants = is_verbose(severity)
    if wants:
        _ask("scopes", 1)
    try:
        yield
    finally:
        if wants:
            _ask("scopes", -1)
        _SCOPE.reset(token)


def is_verbose(severity: int) -> bool:
    """Return whether a session or run of a severity, -1 for the process's, writes more than warnings."""
    if severity >= 0:
        return severity <= _INFO
    logger = _known_logger()
    return logger is not None and logger.isEnabledFor(_LEVELS[_INFO])


def _known_logger() -> logging.Logger | None:
    """Return the logger; None where the program has not imported `logging`, so that nobody can have a handler for it."""
    return None if "logging" not in sys.modules else _logger()


@functools.cache
def _logger() -> logging.Logger:
    with without_fork():
        import logging  # which takes longer than all else here, and few programs set up

    logger = logging.getLogger("sardonyx")
    logger.addHandler(logging.NullHandler())
    return logger


def _ask(who: str, change: int) -> None:
    """Have events told, or no longer, when the first asks for them and the last does not."""
    with _LOCK:
        before = sum(_STATE.values())
        _STATE[who] += change
        if before == 0 and sum(_STATE.values()) > 0:
            trace.add_observer(_on_event)
        elif before > 0 and sum(_STATE.values()) == 0:
            trace.remove_observer(_on_event)


def _ask_for_process(severity: int) -> None:
    _ask("process", int(severity <= _INFO) - _STATE["process"])


def _on_event(what: trace.Event) -> None:
    if what.name not in _WARNINGS:
        _write(what, _VERBOSE if what.duration_ns else _INFO)


def _on_warning(what: trace.Event) -> None:
    _write(what, _WARNING)


def _write(what: trace.Event, severity: int) -> None:
    least, logid = _SCOPE.get()
    took = [f"{what.duration_ns / 1e6:.3f} ms"] if what.duration_ns else []
    details = [f"{key}={' '.join(str(value).split()):.500}" for key, value in what.details.items()]
    log(severity, " ".join([what.name, *took, *details]), logid, least)


trace.watch(_WARNINGS, _on_warning)


def set_default_logger_severity(severity: SupportsIndex) -> None:
    """Set from which severity on messages are written: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal.

    Raises:
        InvalidArgument: another number.
    """
    level = _checked(severity)
    _logger().setLevel(_LEVELS[level])
    _ask_for_process(level)


def set_default_logger_verbosity(verbosity: SupportsIndex) -> None:
    """Accept the verbosity of onnxruntime's debug builds: verbose messages here have one level."""
    _as_number("verbosity", verbosity)


def set_default_logger_callback(callback: LogCallback | None, severity: SupportsIndex = _WARNING) -> None:
    """Hand messages to a callable, or to nobody again where it is None.

    Args:
        callback: is called with the severity, "sardonyx", the logid, the place in the code and the message. What it raises goes to
            `sys.unraisablehook`.
        severity: from which severity on; not used where `callback` is None.

    Raises:
        InvalidArgument: the severity is not 0 to 4, or `callback` cannot be called.
    """
    level = _checked(severity)
    if callback is not None and not callable(callback):
        raise InvalidArgument(f"the callback of set_default_logger_callback is a function or None, got {type(callback).__name__}")
    with without_fork():
        from sardonyx.log_handler import CallbackHandler  # with `logging`

    logger = _logger()
    for handler in [item for item in logger.handlers if isinstance(item, CallbackHandler)]:
        logger.removeHandler(handler)
    if callback is not None:
        logger.setLevel(_LEVELS[level])
        _ask_for_process(level)
        logger.addHandler(CallbackHandler(callback, _LEVELS, report_callback))


def report_callback(source: object, what: str) -> None:
    """Hand the error that is being handled to `sys.unraisablehook`, where nobody could catch it.

    Args:
        source: the function that raised it.
        what: what happened, such as "a log callback raised".
    """
    kind, error, trace = sys.exc_info()
    told: Any = SimpleNamespace(exc_type=kind, exc_value=error, exc_traceback=trace, err_msg=what, object=source)
    sys.unraisablehook(told)


def _as_number(name: str, value: SupportsIndex) -> int:
    number = operator.index(value)
    if not -(2**31) <= number < 2**31:
        raise TypeError(f"{name} is an integer of 32 bits, got {number}")
    return number


def _checked(severity: SupportsIndex) -> int:
    level = _as_number("severity", severity)
    if not 0 <= level < len(_LEVELS):
        raise InvalidArgument(f"Invalid logging severity {level}. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal")
    return level


def user_stacklevel() -> int:
    """Return the `stacklevel` by which a warning of the calling function names the nearest line outside of this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
