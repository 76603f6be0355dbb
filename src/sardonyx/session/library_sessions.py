"""Sessions that compiled libraries of custom operators make of models of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sardonyx.custom_ops.abi.entries.sessions import OwnOptions, use_runtime
from sardonyx.forks import without_fork
from sardonyx.session.enums import ExecutionMode, GraphOptimizationLevel
from sardonyx.session.options import SessionOptions
from sardonyx.session.run_options import RunOptions
from sardonyx.values.named import NamedEnum

if TYPE_CHECKING:
    from sardonyx.session.inference_session import InferenceSession

__all__ = ["SessionsOfLibraries"]

_ENUMS: Mapping[str, type[NamedEnum]] = {
    "execution_mode": ExecutionMode,
    "graph_optimization_level": GraphOptimizationLevel,
}
"""Property -> the enumeration whose numbers a library gives."""


class SessionsOfLibraries:
    """Makes sessions on the CPU provider, with what a library said of options."""

    def open(self, model: str | bytes, options: OwnOptions) -> InferenceSession:
        """Return a session of the model in a file, or of these bytes.

        Raises:
            SardonyxError: as for `InferenceSession`.
            ValueError: a number of an enumeration is none of its numbers.
        """
        with without_fork():
            from sardonyx.session.inference_session import InferenceSession  # which imports options, as this does

        made = SessionOptions()
        for name, value in options.properties.items():
            setattr(made, name, _ENUMS[name](int(value)) if name in _ENUMS else value)
        for key, text in options.config.items():
            made.add_session_config_entry(key, text)
        return InferenceSession(model, made)

    def run_options(self) -> RunOptions:
        """Return options of a run."""
        return RunOptions()


use_runtime(SessionsOfLibraries())
