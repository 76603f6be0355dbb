"""Explain why a node of a model was fused or not, for the providers and options of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx.errors import SardonyxError, located
from sardonyx.formats.files import FileStamp
from sardonyx.optimize.fusion_report import FusionReport
from sardonyx.optimize.fusion_tracer import FusionTracer
from sardonyx.provider import Provider
from sardonyx.session.build import prepare
from sardonyx.session.model_files import check_unchanged
from sardonyx.session.optimization import load_model
from sardonyx.session.options import SessionOptions
from sardonyx.session.providers import check_provider
from sardonyx.session.variant import without_files

__all__ = ["explain_fusions"]


def explain_fusions(
    source: Any,
    options: SessionOptions,
    providers: Sequence[Provider],
    disabled: frozenset[str],
    node: str,
    stamps: Mapping[Path, FileStamp] | None = None,
) -> FusionReport:
    """Load and optimize a model as a session does, without compiling it, and follow the rules that match around one node.

    Args:
        source: what `formats.onnx.load` takes, hence Any.
        options: as of the session; files that they ask for are not written.
        providers: those of the session, in order.
        disabled: rules and passes that are not to run.
        node: the name of a node of the model before it is optimized, or of a value that one makes.
        stamps: what the model's files were when a session was made of them.

    Returns:
        For each rule how far it matched, and why it stopped.

    Raises:
        InvalidArgument: nothing is named so; the message offers near names.
        Fail: a file is not what `stamps` say.
        SardonyxError: the model cannot be loaded, or is invalid.
    """
    for provider in providers:
        check_provider(provider)
    check_unchanged(stamps or {})
    model = load_model(source, options)
    functions = tuple(model.functions.values())  # which optimization takes out of the model
    tracer = FusionTracer(node)
    try:
        prepare(model, without_files(options), providers, disabled, providers, tracer=tracer)
    except SardonyxError as error:
        raise located(error, f"model {model.label}") from error
    finally:
        for function in functions:
            function.graph.dismantle()
        model.dismantle()
    return tracer.report(model.label)
