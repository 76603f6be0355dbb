"""What a session's options say about optimization, and doing it: levels, what is left out, proof, and the file to save to.

Config entries, with the names of onnxruntime where it has them:

    session.graph_optimization_level                     0, 1, 2, 3 or 99, or a name such as ORT_ENABLE_BASIC
    session.graph_optimizations_loop_level               0, 1 or 2: whether levels repeat never, after changes, all
    session.optimized_model_filepath                     where the optimized model is saved
    session.optimized_model_external_initializers_file_name, ..._min_size_in_bytes          its data in a file of its own
    optimization.disable_specified_optimizers            names, of ours or onnxruntime's, separated by ";"
    optimization.constant_folding_max_output_size_in_bytes                                  the largest constant folding makes
    optimization.constant_folding_max_seconds            how long it may compute
    optimization.verify                                  1: compare each rewrite with what it replaces
    optimization.verify_folder                           where the models are saved that show what is wrong
    optimization.failure                                 error, or skip: go on without a rule or pass that fails
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx.errors import InvalidArgument, OptimizationError, SardonyxError, located
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Model, Node
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.fusion_tracer import FusionTracer
from sardonyx.optimize.names import own_names
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS
from sardonyx.optimize.passes.override_dimensions import OverrideDimensions
from sardonyx.optimize.passes.raise_opset import RaiseOpset
from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.report import Problem, Report
from sardonyx.optimize.target import Target
from sardonyx.provider import PrefersOperators, Provider
from sardonyx.providers.reference.provider import evaluate
from sardonyx.providers.reference.registry import find_kernel
from sardonyx.providers.reference.whole import run_model
from sardonyx.session.extensions import installed_passes, installed_rules, usable_passes, usable_rules
from sardonyx.session.options import GraphOptimizationLevel, SessionOptions
from sardonyx.trace import span

__all__ = [
    "Settings",
    "fix_dimensions",
    "load_model",
    "optimize_file",
    "optimize_model",
    "read_settings",
    "save_optimized",
    "target_of",
]

_FIRST_WITH_DEFAULTS = 4
"""The IR version from which on an input that is an initializer too may be fed; before, every initializer was an input."""
_NO = ("", "0", "false", "False")


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What options and config entries say; where both do, the property that differs from its default wins."""

    level: int
    """How far to optimize."""
    disabled: frozenset[str]
    """Rules and passes to leave out."""
    filepath: str
    """Where the optimized model is saved; "" for nowhere."""
    data_name: str
    """The file beside it for its data; "" to decide by size."""
    data_least_bytes: int
    """How large a tensor in that file is at least."""
    verify: bool
    """Whether each rewrite is compared with what it replaces."""
    verify_folder: str
    """Where models that show a problem are saved; "" for nowhere."""
    goes_on: bool
    """Whether to go on without a rule or pass that fails."""
    loops: int
    """How often levels repeat: 0, 1 or 2, as `optimize` takes it."""
    fold_bytes: int | None
    """The largest constant that folding makes; None for the default."""
    fold_seconds: float | None
    """How long folding may compute; None for the default."""


def read_settings(options: SessionOptions, disabled: frozenset[str] = frozenset()) -> Settings:
    """Read options and config entries; `disabled` are the names that the session was given beside.

    Raises:
        InvalidArgument: an entry is not what its key takes.
    """
    entries = options.session_config_entries
    named = frozenset(name for name in entries.get("optimization.disable_specified_optimizers", "").split(";") if name)
    prefix = "session.optimized_model_external_initializers"
    return Settings(
        level=_level(options, entries),
        disabled=own_names(disabled | named),
        filepath=str(options.optimized_model_filepath or entries.get("session.optimized_model_filepath", "")),
        data_name=entries.get(f"{prefix}_file_name", ""),
        data_least_bytes=_integer(entries, f"{prefix}_min_size_in_bytes") or 0,
        verify=options.verify or entries.get("optimization.verify", "") not in _NO,
        verify_folder=entries.get("optimization.verify_folder", ""),
        goes_on=_goes_on(options, entries),
        loops=_loops(entries),
        fold_bytes=_integer(entries, "optimization.constant_folding_max_output_size_in_bytes"),
        fold_seconds=_number(entries, "optimization.constant_folding_max_seconds"),
    )


def optimize_model(
    model: Model,
    options: SessionOptions,
    settings: Settings,
    target: Target,
    *,
    records: bool = False,
    tracer: FusionTracer | None = None,
) -> Report:
    """Optimize a model for the providers of a session or for a file, and warn of each rule or pass that had to be left out."""
    on_error = _warn if settings.goes_on else _fail
    report = optimize(
        model,
        settings.level,
        evaluate=evaluate,
        target=target,
        entries=options.session_config_entries,
        disabled=settings.disabled,
        extra_rules=usable_rules((*installed_rules(on_error), *options.rules), on_error),
        extra_passes=usable_passes((*installed_passes(on_error), *options.passes), on_error),
        verify=run_model if settings.verify else None,
        goes_on=settings.goes_on,
        loops=settings.loops,
        records=records,
        fold_seconds=settings.fold_seconds,
        fold_bytes=settings.fold_bytes,
        tracer=tracer,
    )
    for problem in report.problems:
        shown = _save_problem(problem, settings.verify_folder)
        warnings.warn(f"optimization {problem}; the session goes on without it{shown}", UserWarning, stacklevel=2)
    return report


def target_of(providers: Sequence[Provider]) -> Target:
    """Return the target of a session: the quantized and fused operators that its providers would rather run than their parts."""
    return Target(frozenset(name for item in providers if isinstance(item, PrefersOperators) for name in item.preferred_operators))


def _warn(message: str) -> None:
    warnings.warn(f"{message}; the session goes on without it", UserWarning, stacklevel=2)


def _fail(message: str) -> None:
    raise OptimizationError(message)


def optimize_file(
    source: Any, options: SessionOptions, settings: Settings, *, records: bool = False, opset: int = 0
) -> tuple[Model, Report]:
    """Load a model, check it and optimize it for a file; the model and what was done.

    Args:
        source: what `formats.onnx.load` takes, hence Any.
        options: as of a session.
        settings: what they say.
        records: whether the report lists every change.
        opset: the version of ai.onnx to raise the model to first; 0 leaves it.

    Raises:
        InvalidArgument: the model cannot be raised to that version.
        SardonyxError: the model is invalid, or a rule or pass failed.
    """
    with span("session.load"):
        model = load_model(source, options)
    try:
        if model.ir_version < _FIRST_WITH_DEFAULTS:
            model.graph.inputs = [value for value in model.graph.inputs if value.constant is None]
        fix_dimensions(model, options, settings)
        verify(model)
        if opset:
            INLINE_FUNCTIONS.run(model, Context())
            RaiseOpset(opset, _means_the_same).run(model, Context())
        target = Target.file(keeps_opset=bool(settings.filepath))
        return model, optimize_model(model, options, settings, target, records=records)
    except SardonyxError as error:
        raise located(error, f"model {model.label}") from error


def _means_the_same(node: Node, version: int) -> bool:
    """Whether one reference kernel, which begins with a meaning, runs a node under both versions."""
    return find_kernel(node.domain, node.op_type, node.version) is find_kernel(node.domain, node.op_type, version)


def load_model(source: Any, options: SessionOptions) -> Model:
    """Load a model (Any: what `formats.onnx.load` takes); external data lies where the options say, else beside it."""
    folder = options.session_config_entries.get("session.model_external_initializers_file_folder_path") or None
    return onnx_format.load(source, external_dir=folder)


def fix_dimensions(model: Model, options: SessionOptions, settings: Settings) -> None:
    """Give the dimensions that the options fix their sizes."""
    if OverrideDimensions.name not in settings.disabled:
        OverrideDimensions(options.dimension_overrides, options.denotation_overrides).run(model, Context())


def save_optimized(model: Model, settings: Settings) -> None:
    """Save the optimized model where the settings say so, with its data beside it where they say that, or where it is large."""
    if settings.filepath:
        least_bytes = settings.data_least_bytes if settings.data_name else 4096
        onnx_format.save(model, settings.filepath, data_name=settings.data_name, least_bytes=least_bytes)


def _save_problem(problem: Problem, folder: str) -> str:
    """Save the models of a problem; what to add to its message."""
    if not folder or problem.before is None:
        return ""
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / f"{problem.optimization}.onnx"
    onnx_format.save(problem.before, path)
    if problem.after is not None:
        onnx_format.save(problem.after, path.with_name(f"{problem.optimization}.after.onnx"))
    return f"; {path} shows it"


def _level(options: SessionOptions, entries: Mapping[str, str]) -> int:
    text = entries.get("session.graph_optimization_level", "")
    if not text or options.graph_optimization_level != GraphOptimizationLevel.ORT_ENABLE_ALL:
        return int(options.graph_optimization_level)
    names = {level.name: level for level in GraphOptimizationLevel}
    if text not in names and not text.isdigit():
        raise InvalidArgument(f"session.graph_optimization_level is a number or one of {', '.join(names)}, got {text!r}")
    return int(names.get(text) or text)


def _goes_on(options: SessionOptions, entries: Mapping[str, str]) -> bool:
    choice = options.optimizer_failure or entries.get("optimization.failure") or "error"
    if choice not in ("error", "skip"):
        raise InvalidArgument(f'optimizer_failure is "error" or "skip", got {choice!r}')
    return choice == "skip"


def _loops(entries: Mapping[str, str]) -> int:
    text = entries.get("session.graph_optimizations_loop_level", "1")
    if text not in ("0", "1", "2"):
        raise InvalidArgument(f"session.graph_optimizations_loop_level is 0, 1 or 2, got {text!r}")
    return int(text)


def _integer(entries: Mapping[str, str], key: str) -> int | None:
    text = entries.get(key, "")
    if text and not text.isdigit():
        raise InvalidArgument(f"{key} is a number of bytes, got {text!r}")
    return int(text) if text else None


def _number(entries: Mapping[str, str], key: str) -> float | None:
    text = entries.get(key, "")
    try:
        return float(text) if text else None
    except ValueError as error:
        raise InvalidArgument(f"{key} is a number, got {text!r}") from error
