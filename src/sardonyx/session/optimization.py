"""The optimizer as a session runs it: with the rules of packages and of the user, for its providers or for a file."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from pathlib import Path

from sardonyx.errors import OptimizationError, locating
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Model, Node
from sardonyx.ir.verify import verify
from sardonyx.ir.walk import all_nodes
from sardonyx.ops.schemas import check_types, find_schema
from sardonyx.ops.session_operators import session_operators
from sardonyx.optimize.contract import Context
from sardonyx.optimize.fusion_tracer import FusionTracer
from sardonyx.optimize.helpers.quantized import INTEGER_OPERATORS, QUANTIZATION
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS
from sardonyx.optimize.passes.raise_opset import RaiseOpset
from sardonyx.optimize.pipeline import check_names, optimize
from sardonyx.optimize.report import Problem, Report
from sardonyx.optimize.target import Target
from sardonyx.provider import PrefersOperators, Provider
from sardonyx.providers.reference.provider import evaluate
from sardonyx.providers.reference.registry import find_kernel
from sardonyx.providers.reference.whole import run_model
from sardonyx.session.custom_operators import lookup_of
from sardonyx.session.extensions import installed_passes, installed_rules, usable_passes, usable_rules
from sardonyx.session.saving import save_model
from sardonyx.session.settings.settings import OptimizeSettings, SaveSettings, Settings
from sardonyx.session.stages.load import FIRST_WITH_DEFAULTS, fix_dimensions
from sardonyx.session.stages.source import Source
from sardonyx.trace import event, span

__all__ = ["check_disabled", "check_model_types", "optimize_file", "optimize_model", "save_optimized", "target_of"]


def optimize_model(
    model: Model, settings: OptimizeSettings, target: Target, *, records: bool = False, tracer: FusionTracer | None = None
) -> Report:
    """Optimize a model for the providers of a session or for a file, and warn of each rule or pass that had to be left out.

    Args:
        model: what to optimize, in place.
        settings: how.
        target: where the model goes.
        records: whether the report lists every change.
        tracer: follows the rules that match around a node.

    Raises:
        InvalidGraph: a rule or a pass failed, and the types of some node do not fit, which explains it.
        OptimizationError: a rule or a pass failed on a model whose types fit.
    """
    on_error = _warn if settings.continue_on_error else _fail
    extra_rules = usable_rules((*installed_rules(on_error), *settings.rules), on_error)
    extra_passes = usable_passes((*installed_passes(on_error), *settings.passes), on_error)
    try:
        report = optimize(
            model,
            settings.level,
            evaluate=evaluate,
            target=target,
            entries=settings.entries,
            disabled=settings.disabled,
            extra_rules=extra_rules,
            extra_passes=extra_passes,
            verify=run_model if settings.verify else None,
            continue_on_error=settings.continue_on_error,
            loops=settings.loops,
            records=records,
            fold_seconds=settings.fold_seconds,
            fold_bytes=settings.fold_bytes,
            tracer=tracer,
        )
    except OptimizationError:
        check_model_types(model)
        raise
    for problem in report.problems:
        shown = _save_problem(problem, settings.verify_folder)
        warnings.warn(f"optimization {problem}; the session goes on without it{shown}", UserWarning, stacklevel=2)
    return report


def check_model_types(model: Model) -> None:
    """Raise InvalidGraph where types do not fit; they are known once inference has run, and what is wrong with them stays."""
    for node in all_nodes(model):
        schema = find_schema(node.domain, node.op_type, node.version)
        if schema is not None:
            check_types(node, schema)


def check_disabled(names: Collection[str], settings: OptimizeSettings) -> None:
    """Raise InvalidArgument where one of `names` is none of a rule or pass that a session with these settings has."""
    own = (*installed_rules(_ignore), *installed_passes(_ignore), *settings.rules, *settings.passes)
    check_names(names, [name for item in own if isinstance(name := getattr(item, "name", None), str)])


def _ignore(message: str) -> None:
    """Leave it to the session to report."""


def target_of(providers: Sequence[Provider]) -> Target:
    """Return the target of a session: the quantized and fused operators that its providers would rather run than their parts.

    Of what is about quantization, those of the first provider that names any: one that reads DequantizeLinear and QuantizeLinear
    does not take the operators that another has them made to.
    """
    names: set[str] = set()
    for provider in providers:
        own = provider.preferred_operators if isinstance(provider, PrefersOperators) else frozenset()
        names |= own - _QUANTIZED if names & _QUANTIZED else own
    return Target(frozenset(names))


_QUANTIZED = frozenset(text for key in INTEGER_OPERATORS | QUANTIZATION for text in (key.op_type, str(key)))


def _warn(message: str) -> None:
    warnings.warn(f"{message}; the session goes on without it", UserWarning, stacklevel=2)


def _fail(message: str) -> None:
    raise OptimizationError(message)


def optimize_file(source: object, settings: Settings, *, records: bool = False, opset: int = 0) -> tuple[Model, Report]:
    """Load a model, check it and optimize it for a file; the model and what was done.

    Args:
        source: what `formats.onnx.load` takes.
        settings: as of a session.
        records: whether the report lists every change.
        opset: the version of ai.onnx to raise the model to first; 0 leaves it.

    Raises:
        InvalidArgument: the model cannot be raised to that version.
        SardonyxError: the model is invalid, or a rule or pass failed.
    """
    with span("session.load"):
        model = Source.of(source).read(settings.load)
    with locating(f"model {model.label}"):
        if model.ir_version < FIRST_WITH_DEFAULTS:
            model.graph.inputs = [value for value in model.graph.inputs if value.constant is None]
        fix_dimensions(model, settings.load, settings.optimize.disabled)
        verify(model)
        with session_operators(lookup_of(settings)):
            if opset:
                INLINE_FUNCTIONS.run(model, Context())
                RaiseOpset(opset, _means_the_same).run(model, Context())
            target = Target.file(keeps_opset=bool(settings.save.path))
            return model, optimize_model(model, settings.optimize, target, records=records)


def _means_the_same(node: Node, version: int) -> bool:
    """Return whether one reference kernel, which begins with a meaning, runs a node under both versions."""
    return find_kernel(node.domain, node.op_type, node.version) is find_kernel(node.domain, node.op_type, version)


def save_optimized(model: Model, settings: SaveSettings) -> None:
    """Save the optimized model where the settings say so, with its data beside it where they say that, or where it is large."""
    if settings.path:
        least_bytes = settings.data_least_bytes if settings.data_name else 4096
        path = Path(settings.path)
        for loss in save_model(model, path, settings.format, data_name=settings.data_name, least_bytes=least_bytes):
            event("save.lost", path=settings.path, where=loss.where, what=loss.what)


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
