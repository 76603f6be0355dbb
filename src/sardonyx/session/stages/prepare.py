"""From a model that is checked to one that is optimized for the session's providers, and the saved model beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.errors import locating
from sardonyx.ir import Model, Tensor, Value
from sardonyx.optimize.edit import clone_model
from sardonyx.optimize.fusion_tracer import FusionTracer
from sardonyx.optimize.report import Report
from sardonyx.optimize.target import Target
from sardonyx.partition.assign_only import note_providers
from sardonyx.partition.placement import pin
from sardonyx.provider import Provider
from sardonyx.session.context.compatibility import check_compatibility
from sardonyx.session.function_bodies import keep_claimed_calls
from sardonyx.session.optimization import check_model_types, optimize_model, save_optimized, target_of
from sardonyx.session.placement.layer_assignment import layer_pins
from sardonyx.session.providers import check_provider
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.load import Loaded
from sardonyx.session.stages.owned_model import OwnedModel
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.replaced_operators import replace_operators
from sardonyx.session.widening import widen_model
from sardonyx.trace import span

__all__ = ["Prepared", "prepare"]


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """A model that is optimized."""

    model: OwnedModel
    """The model."""
    inputs: tuple[Value, ...]
    """The inputs that a feed may name, with those that have a default."""
    outputs: tuple[Value, ...]
    """The outputs, with the types that were inferred."""
    defaults: Mapping[str, Array]
    """Input -> what it is where the feed leaves it out."""
    report: Report
    """What the optimizer did."""


def prepare(
    loaded: Loaded,
    settings: Settings,
    providers: ProviderList,
    widened_for: str = "",
    *,
    tracer: FusionTracer | None = None,
    records: bool = False,
) -> Prepared:
    """Optimize a model, with calls of functions that a provider claims kept and types widened that none runs.

    Args:
        loaded: whose model is taken over.
        settings: of the session; where they say so, the optimized model is saved.
        providers: of the session.
        widened_for: the provider whose gaps decide what is widened, as `widen_model` takes it.
        tracer: follows the rules that match around a node.
        records: whether the report lists every change.

    Raises:
        SardonyxError: types do not fit, a provider or a rule failed, or a placement names what there is not.
    """
    model, able = loaded.model.take("prepare"), providers.able
    with locating(f"model {model.label}"):
        for provider in able:
            check_provider(provider)
        check_compatibility(model, able, is_strict=settings.context.fails_on_suboptimal)
        replace_operators(model)
        keep_claimed_calls(model, able, keep_all=settings.optimize.keeps_calls)
        pins = layer_pins(settings.placement, providers.names).joined(settings.placement.pins)
        pin(model, pins, providers.names)
        with span("session.optimize"):
            report = _optimize(model, loaded.defaults, settings, providers, widened_for, tracer, records=records)
    return Prepared(OwnedModel(model), tuple(model.graph.inputs), tuple(model.graph.outputs), loaded.defaults, report)


def _optimize(
    model: Model,
    defaults: Mapping[str, Array],
    settings: Settings,
    providers: ProviderList,
    widened_for: str,
    tracer: FusionTracer | None,
    *,
    records: bool,
) -> Report:
    able = providers.able
    to_save = clone_model(model) if settings.save.path else None
    target = target_of(able)
    report = optimize_model(model, settings.optimize, target, tracer=tracer, records=records)
    check_cancelled()
    check_model_types(model)
    check_cancelled()
    if to_save is not None:
        _save(to_save, defaults, settings, able or providers.all)
    if not settings.optimize.keeps_narrow_floats and widen_model(model, able, widened_for):
        optimize_model(model, settings.optimize, target, tracer=tracer)
    return report


def _save(model: Model, defaults: Mapping[str, Array], settings: Settings, providers: Sequence[Provider]) -> None:
    """Optimize `model`, a copy, for a file and save it, with its inputs' defaults; what the session itself runs goes further."""
    for value in model.graph.inputs:
        if value.name in defaults:
            value.constant = Tensor.from_array(defaults[value.name], value.name)
            model.graph.initializers[value.name] = value
    try:
        optimize_model(model, settings.optimize, Target.file())
        if settings.save.notes_providers:
            note_providers(model, providers)
        save_optimized(model, settings.save)
    finally:
        model.graph.dismantle()
