"""The optimizer's rules as tools apply them: for a file, at a level, without the rules that options leave out."""

from __future__ import annotations

from collections.abc import Collection

from sardonyx.formats.protos import Message
from sardonyx.session.optimization import optimize_file
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import read_settings
from sardonyx.tools.fusion_options import FusionOptions
from sardonyx.tools.models import Given, to_proto

__all__ = ["LEVELS", "fuse", "optimized"]

LEVELS = {0: "ORT_DISABLE_ALL", 1: "ORT_ENABLE_BASIC", 2: "ORT_ENABLE_EXTENDED", 99: "ORT_ENABLE_ALL"}
"""onnxruntime's number of a level -> its name."""


def optimized(given: Given, level: int, disabled: Collection[str], *, approximates: bool = False) -> Message:
    """Return the onnx.ModelProto that a session of a level makes of a model, with operators that onnxruntime has.

    Args:
        given: a path, or an onnx.ModelProto, which stays as it is.
        level: 0, 1, 2 or 99.
        disabled: rules and passes to leave out, by our names or onnxruntime's.
        approximates: whether FastGelu takes the place of Gelu.

    Raises:
        SardonyxError: the model cannot be read, or is invalid.
    """
    options = SessionOptions()
    options.optimized_model_filepath = "optimized.onnx"  # for a file: operator sets and operators that onnxruntime has
    options.add_session_config_entry("session.graph_optimization_level", LEVELS[level])
    if approximates:
        options.add_session_config_entry("optimization.enable_gelu_approximation", "1")
    model, _ = optimize_file(given, read_settings(options, disabled))
    return to_proto(model)


def fuse(given: Given, options: FusionOptions, level: int = 99) -> Message:
    """Return a model with the fusions that options leave on; arguments and errors are those of `optimized`."""
    disabled: Collection[str] = getattr(options, "disabled_rules", ())
    return optimized(given, level, disabled, approximates=bool(getattr(options, "enable_gelu_approximation", False)))
