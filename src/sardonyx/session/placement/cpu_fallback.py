"""Nodes that run on a provider which the user did not name: told as an event, or an error where that is forbidden.

With the config entry `session.disable_cpu_ep_fallback` set to "1", each node must run on one of the session's own providers. Naming
the CPU provider and forbidding it is a contradiction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sardonyx.custom_ops.runner_names import runner_on
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.partition.explain import Placement
from sardonyx.session.settings.keys import NO_FALLBACK
from sardonyx.trace import event

__all__ = ["check_named", "check_placed"]

_CPU = "CPUExecutionProvider"
_SHOWN = 5
"""How many nodes a message names."""


def check_named(named: Collection[str]) -> None:
    """Raise InvalidArgument where the CPU provider, to which nothing may fall back, is among those that the user named."""
    if _CPU in named:
        raise InvalidArgument(
            f"{_CPU} is among the session's providers, but {NO_FALLBACK.name} forbids to fall back to it; give up one of them"
        )


def check_placed(named: Collection[str], placements: Sequence[Placement], *, forbidden: bool) -> None:
    """Look for nodes that run on a provider which is not among `named`; raises Fail where that is forbidden, with the reasons.

    A custom operator that runs in the memory of a provider counts as the provider's.
    """
    if not named and not forbidden:
        return
    own = {*named, *map(runner_on, named)}
    others = [place for place in placements if place.provider not in own]
    if others:
        event("placement.fallback", nodes=[place.node for place in others], providers=sorted({place.provider for place in others}))
    if not others or not forbidden:
        return
    shown = "; ".join(f"{place.op_type} {place.node!r} ({_reasons(place)})" for place in others[:_SHOWN])
    more = f"; and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    raise Fail(
        f"{len(others)} nodes would fall back to {', '.join(sorted({place.provider for place in others}))}, which "
        f"{NO_FALLBACK.name} forbids: {shown}{more}"
    )


def _reasons(place: Placement) -> str:
    return ", ".join(f"{name}: {reason}" for name, reason in place.declined.items()) or "no provider was named"
