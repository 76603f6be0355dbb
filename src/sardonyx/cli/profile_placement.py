"""`sardonyx profile MODEL --placement -o FILE`: measure where the nodes of a model run fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from sardonyx.cli.console import chosen_providers, open_session, print_json, print_table, print_text, progress, readable_errors
from sardonyx.cli.feeds import make_feed
from sardonyx.partition.measured import MEASURED, is_worth_it
from sardonyx.partition.profile import Profile, save_profile
from sardonyx.session.options import SessionOptions
from sardonyx.session.placement.profile import profile_placement
from sardonyx.session.providers import make_providers, requested

__all__ = ["Feeding", "measure_placement"]

Feeding: TypeAlias = tuple[Sequence[str], Sequence[str], Sequence[str], int]
"""What `make_feed` takes after the session: files, dimensions, ranges and a seed."""


def measure_placement(
    model: str,
    output: Path,
    feeding: Feeding,
    provider_names: Sequence[str],
    options: SessionOptions,
    *,
    as_json: bool,
) -> None:
    """Measure each operator of a model on each provider, write that to `output` and print how long runs take."""
    with readable_errors():
        providers = chosen_providers(provider_names) or None
        session = open_session(model, provider_names, options)
        feed = make_feed(session, *feeding)
        with progress("measuring", 1) as advance:
            found = profile_placement(
                model, options, make_providers(requested(providers, None, ())), feed, lambda label: advance(label, 0)
            )
        save_profile(found, output)
    facts = _describe(found)
    if as_json:
        print_json(facts)
        return
    rows = [(_label(name, facts["runs_ms"]), f"{time_ms:.3f}") for name, time_ms in sorted(facts["runs_ms"].items(), key=_time)]
    print_table("", ("a run", "ms"), rows)
    print_text(f"{facts['samples']} operators measured on {facts['providers']} providers; use it by --placement-profile {output}")


def _describe(found: Profile) -> dict[str, Any]:
    """Return the report as JSON has it."""
    (times,) = found.models.values()
    return {
        "runs_ms": {name: time_us / 1e3 for name, time_us in times.items()},
        "samples": len(found.samples),
        "providers": len({sample.provider for sample in found.samples}),
        "steps_us": dict(found.steps_us),
        "sizes": dict(found.sizes),
        "widened_for": found.widened_for,
    }


def _time(item: tuple[str, float]) -> float:
    return item[1]


def _label(name: str, times: Mapping[str, float]) -> str:
    if name != MEASURED:
        return f"{name} first"
    return "a mixture" if is_worth_it(times) else "a mixture, not worth it"
