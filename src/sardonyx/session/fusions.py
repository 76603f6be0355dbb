"""Explain why a node of a model was fused or not, for the providers and settings of a session."""

from __future__ import annotations

from sardonyx.arguments import as_text
from sardonyx.optimize.fusion_report import FusionReport
from sardonyx.optimize.fusion_tracer import FusionTracer
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.load import load
from sardonyx.session.stages.prepare import prepare
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source

__all__ = ["explain_fusions"]


def explain_fusions(source: Source, settings: Settings, providers: ProviderList, node: str) -> FusionReport:
    """Load and optimize a model as a session does, without compiling it, and follow the rules that match around one node.

    Args:
        source: where the model comes from.
        settings: of the session; files that they ask for are not written.
        providers: of the session.
        node: the name of a node of the model before it is optimized, or of a value that one makes.

    Returns:
        For each rule how far it matched, and why it stopped.

    Raises:
        InvalidArgument: nothing is named so; the message offers near names.
        Fail: the model was read before, and one of its files has changed since.
        SardonyxError: the model cannot be loaded, or is invalid.
    """
    source.check()
    loaded, tracer = load(source, settings.load, disabled=settings.optimize.disabled), FusionTracer(as_text("node", node))
    try:
        prepare(loaded, settings.without_files(), providers, tracer=tracer)
    finally:
        loaded.model.dismantle()
    return tracer.report(loaded.model.label)
