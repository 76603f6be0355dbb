"""Options of runs, with the names and defaults of onnxruntime's."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sardonyx.cancellation import Cancellation, Flag
from sardonyx.errors import Fail, RunTerminated, RunTimedOut
from sardonyx.forks import without_fork
from sardonyx.session.settings.config_entries import ConfigEntries

if TYPE_CHECKING:
    from sardonyx.session.adapters import LoraAdapter

__all__ = ["RunOptions", "asks_for_logs", "severity_of"]

_FATAL = 4
_SEVERITY_OF_PROCESS = -1


class RunOptions(ConfigEntries):
    """How one run behaves."""

    __slots__ = (
        "_adapters",
        "_endless",
        "_flag",
        "log_severity_level",
        "log_verbosity_level",
        "logid",
        "only_execute_path_to_fetches",
        "timeout_ms",
    )

    def __init__(self) -> None:
        """Make options with onnxruntime's defaults."""
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.timeout_ms: float = 0
        """How many milliseconds a run may take, 0 for any time; one that takes longer raises RunTimedOut, a TimeoutError."""
        self._flag = Flag()
        self._endless = Cancellation(self._flag, _terminated)
        self._adapters: tuple[LoraAdapter, ...] = ()

    @property
    def terminate(self) -> bool:
        """Set it, from any thread, to end the runs that were given these options; they raise RunTerminated, a Fail."""
        return bool(self._flag)

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._flag.set(value)

    def cancellation(self) -> Cancellation:
        """Return what may end a run that begins now."""
        timeout_ms = self.timeout_ms
        if not timeout_ms:
            return self._endless
        return Cancellation(self._flag, _terminated, timeout_ms, functools.partial(_run_timed_out, timeout_ms))

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Feed the tensors of an adapter to the runs that get these options; raises TypeError for what is no adapter."""
        if not hasattr(type(adapter), "parameters"):
            raise TypeError(f"add_active_adapter takes a LoraAdapter, got {type(adapter).__name__}")
        self._adapters = (*self._adapters, adapter)

    @property
    def adapters(self) -> tuple[LoraAdapter, ...]:
        """The adapters added, in order."""
        return self._adapters

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set a named text option; raises InvalidArgument for a key of no or over 1024 characters."""
        with without_fork():
            from sardonyx.session.settings.check import check_run_entry  # with the table of keys, which few need

        self._add(key, value, check_run_entry)

    @property
    def run_config_entries(self) -> Mapping[str, str]:
        """What was set by `add_run_config_entry`."""
        return dict(self._entries)

    def get_run_config_entry(self, key: str) -> str:
        """Return the text set under `key`; raises InvalidArgument where none was."""
        return self._get(key)


def _terminated() -> RunTerminated:
    return RunTerminated("the run was terminated: RunOptions.terminate is set")


def _run_timed_out(timeout_ms: float) -> RunTimedOut:
    return RunTimedOut(f"the run was ended after {timeout_ms:g} ms, which is what RunOptions.timeout_ms allows")


def asks_for_logs(options: object) -> bool:
    """Return whether the options of a run, which may be anything yet, say how it writes messages."""
    return isinstance(options, RunOptions) and (options.log_severity_level != _SEVERITY_OF_PROCESS or bool(options.logid))


def severity_of(options: RunOptions, default: int) -> int:
    """Return from which severity on a run writes messages.

    Args:
        options: the run's.
        default: the severity of its session, where the options have -1.

    Raises:
        Fail: the options have another number than -1 and 0 to 4; onnxruntime too says so when the run begins.
    """
    level = options.log_severity_level
    if not _SEVERITY_OF_PROCESS <= level <= _FATAL:
        raise Fail(f"RunOptions.log_severity_level is 0 (verbose) to {_FATAL} (fatal), or -1 for the session's, got {level}")
    return default if level == _SEVERITY_OF_PROCESS else level
