"""Which providers a session asks, in which order and with which options: its arguments, its options and the order of placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.forks import without_fork
from sardonyx.session.placement.cpu_fallback import check_named
from sardonyx.session.providers import (
    CPU,
    REFERENCE,
    ProviderRequest,
    Wanted,
    get_available_providers,
    make_able_providers,
    make_providers,
    requested,
    with_cpu,
    with_reference,
)
from sardonyx.session.settings.settings import ExecutionSettings, Settings
from sardonyx.session.stages.provider_list import ProviderList

__all__ = ["ProviderChoice", "ask_in_order", "choose_providers"]


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderChoice:
    """The providers of a session."""

    providers: ProviderList
    """Those that could be made, and what was wrong with the others."""
    named: frozenset[str]
    """The names of those that the user named himself."""
    options: Mapping[str, Mapping[str, str]]
    """Provider -> its options."""


def choose_providers(
    providers: Sequence[ProviderRequest] | None,
    provider_options: Sequence[Mapping[str, object]] | None,
    added: Sequence[tuple[str, Mapping[str, str]]],
    settings: Settings,
) -> ProviderChoice:
    """Make the providers of a session.

    Args:
        providers: the session's argument; None for those of the options, else those of the order of placement, else all built-in.
        provider_options: the session's argument, one for each of `providers`.
        added: the providers of the session's options.
        settings: of the session.

    Raises:
        InvalidArgument: a request is malformed, or names what is forbidden.
        EPFail: one cannot be made, and the settings do not allow to go on without it.
    """
    order = [_full_name(name) for name in settings.placement.order]
    has_own = providers is not None or bool(added)
    wanted = requested(providers if has_own or not order else order, provider_options, added)
    wanted = ask_in_order(wanted, order) if has_own else wanted
    named = frozenset(name for name, _, _ in wanted) if has_own or order else frozenset()
    if settings.placement.forbids_fallback:
        check_named(named)
    asked = with_reference(with_cpu(wanted))
    wanted = [(name, _with_settings(name, own, settings.execution), made) for name, own, made in asked]
    made, failed = make_able_providers(wanted) if settings.placement.continue_on_error else (make_providers(wanted), {})
    own = {name: options for name, options, _ in wanted}
    return ProviderChoice(ProviderList.of(made, failed), named, {provider.name: own.get(provider.name, {}) for provider in made})


def ask_in_order(wanted: Sequence[Wanted], order: Sequence[str]) -> list[Wanted]:
    """Return `wanted` with the providers of `order` first; raises InvalidArgument for one that is not among them."""
    if not order:
        return list(wanted)
    with without_fork():
        from sardonyx.partition.placement import find_provider  # which needs the operators' schemas

    names = [name for name, _, _ in wanted]
    known = names if REFERENCE in names else [*names, REFERENCE]
    first = [find_provider(name, known, "the order of placement") for name in order]
    rank = {name: place for place, name in enumerate(dict.fromkeys([*first, *names]))}
    return sorted(wanted, key=lambda item: rank[item[0]])


def _full_name(name: str) -> str:
    longer = f"{name}ExecutionProvider"
    available = get_available_providers()
    return longer if name not in available and longer in available else name


def _with_settings(name: str, options: Mapping[str, str], settings: ExecutionSettings) -> dict[str, str]:
    """Return the options of a provider, with what the session's settings say where it leaves that open."""
    own = dict(options)
    if settings.intra_op_threads and name == CPU:
        own.setdefault("intra_op_num_threads", str(settings.intra_op_threads))
    if settings.float32_precision and name == CPU:
        own.setdefault("float32_precision", settings.float32_precision)
    if settings.flushes_denormals and name in (CPU, REFERENCE):
        own.setdefault("set_denormal_as_zero", "1")
    return own
