"""Profiles as tables, and as what JSON holds."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import click

from sardonyx.cli.console import counted, decimals, print_table, print_text
from sardonyx.providers.cpu.roofline import Roofline
from sardonyx.session.profiling.report import Difference, Report, Step

__all__ = ["describe", "describe_differences", "print_differences", "print_report"]

_NUMBERS = ("ms", "%", "steps", "GFLOP/s", "GB/s", "roof")
_MOST_NAMES = 6


def describe(model: str, report: Report, roofline: Roofline) -> dict[str, Any]:
    """Return a profile as JSON has it; Any because it is on its way there."""
    return {
        "model": model,
        "runs": report.runs,
        "run_ms": report.run_ms,
        "steps_ms": report.steps_ms,
        "outside_steps_ms": max(0.0, report.run_ms - report.steps_ms),
        "outside": [dataclasses.asdict(part) for part in report.outside],
        "roofline": dataclasses.asdict(roofline),
        "steps": [
            {**dataclasses.asdict(step), "roofline_ms": _least_ms([step], roofline), "of_roofline": _share([step], roofline)}
            for step in report.steps
        ],
    }


def print_report(model: str, report: Report, roofline: Roofline, top: int, unrecorded_ms: float | None = None) -> None:
    """Print a profile: the run, then operators, then the `top` longest steps, or all for 0.

    Args:
        model: what it is of.
        report: what was measured.
        roofline: of this machine.
        top: how many operators and steps to list.
        unrecorded_ms: how long a run takes that is not recorded, where that is known to differ.
    """
    flops = sum(step.flops or 0 for step in report.steps)
    places = _places(report)
    runs, steps = counted(report.runs, "run"), counted(len(report.steps), "step")
    print_text(f"{model}: {report.run_ms:.{places}f} ms a run (middle half of {runs}), {steps}")
    outside = max(0.0, report.run_ms - report.steps_ms)
    print_text(f"steps {report.steps_ms:.{places}f} ms, outside of them {outside:.{places}f} ms ({outside / report.run_ms:.1%})")
    if unrecorded_ms is not None:
        print_text(f"a run that is not recorded takes {unrecorded_ms:.{places}f} ms{_cost(report, unrecorded_ms, places)}")
    if flops and sum(step.ms for step in report.steps if step.flops is not None) > report.run_ms / 2:
        click.echo(f"{flops / 1e9:.3g} GFLOP at {flops / report.run_ms / 1e6:.3g} GFLOP/s")
    print_text(_machine(roofline))
    groups: dict[tuple[str, str], list[Step]] = collections.defaultdict(list)
    for step in report.steps:
        groups[step.operators, step.provider].append(step)
    ordered = sorted(groups.items(), key=lambda item: -sum(step.ms for step in item[1]))
    rows = [
        (*_measures(steps, report, roofline), len(steps), _operators(name, provider))
        for (name, provider), steps in _first(ordered, top)
    ]
    print_table("by operator", ("ms", "%", "GFLOP/s", "GB/s", "roof", "steps", "operators"), rows, _NUMBERS)
    rows = [(f"{part.ms:.{places}f}", _percent(part.ms, report), part.name) for part in report.outside if _counts(part.ms, report)]
    if rows:
        print_table("outside of steps", ("ms", "%", "what"), rows, _NUMBERS)
    longest = _first(sorted(report.steps, key=lambda step: -step.ms), top)
    rows = [(*_measures([step], report, roofline, moves=False), _called(step)) for step in longest]
    print_table("longest steps", ("ms", "%", "GFLOP/s", "roof", "step"), rows, _NUMBERS)
    hidden = len(report.steps) - len(longest)
    if hidden:
        rest_ms = report.steps_ms - sum(step.ms for step in longest)
        click.echo(f"{hidden} more steps take {rest_ms:.{places}f} ms; --top 0 lists all")


def _places(report: Report) -> int:
    """Return the decimals of milliseconds: steps of a hundredth of a run have a digit."""
    return decimals(report.run_ms)


def _cost(report: Report, unrecorded_ms: float, places: int) -> str:
    """Return what recording adds to a run, in words; "" where nothing was measured."""
    cost_ms = report.run_ms - unrecorded_ms
    return f": recording adds {cost_ms:.{places}f} ms ({cost_ms / report.run_ms:.1%})" if cost_ms > 0 else ""


def _percent(ms: float, report: Report) -> str:
    return f"{ms / report.run_ms:.1%}".rstrip("%")


def _counts(ms: float, report: Report) -> bool:
    """Return whether a part outside of steps is more than a thousandth of the run."""
    return ms > report.run_ms / 1000


def _first(items: Sequence[Any], top: int) -> Sequence[Any]:
    return items[:top] if top else items


def _machine(roofline: Roofline) -> str:
    speeds = ", ".join(f"{speed / 1e9:.0f}" for _, speed in roofline.bytes_per_s)
    threads = f"{roofline.threads} thread{'s' if roofline.threads > 1 else ''}"
    return f"peak of this machine on {threads}: {roofline.flops_per_s / 1e9:.0f} GFLOP/s; cache to memory {speeds} GB/s"


def _operators(name: str, provider: str) -> str:
    short = provider.removesuffix("ExecutionProvider")
    return name if short in ("CPU", "") else f"{name} ({short})"


def _measures(steps: Sequence[Step], report: Report, roofline: Roofline, *, moves: bool = True) -> tuple[str, ...]:
    spent = sum(step.ms for step in steps)
    flops, moved = sum(step.flops or 0 for step in steps), sum(step.size_bytes or 0 for step in steps)
    share = _share(steps, roofline)
    return (
        f"{spent:.{_places(report)}f}",
        _percent(spent, report),
        f"{flops / spent / 1e6:.1f}" if flops and spent else "",
        *([f"{moved / spent / 1e6:.1f}" if moved and spent else ""] if moves else []),
        "" if share is None else f"{share:.0%}",
    )


def _least_ms(steps: Iterable[Step], roofline: Roofline) -> float | None:
    """Return how long steps take at least on this machine; None where their bytes are not known."""
    found = [1e3 * roofline.seconds(step.flops or 0, step.size_bytes) for step in steps if step.size_bytes is not None]
    return sum(found) if found else None


def _share(steps: Sequence[Step], roofline: Roofline) -> float | None:
    """Return what part of their time steps need at least; None where that is not known."""
    least, spent = _least_ms(steps, roofline), sum(step.ms for step in steps)
    return None if least is None or not spent else least / spent


def _called(step: Step) -> str:
    """Return a step's name, operators and result, and the nodes of the given model where they are others."""
    if not step.provider:  # what a run does around its programs
        return step.name
    text = f"{step.name}\n  {_operators(step.operators, step.provider)}"
    text += f" -> {step.outputs.partition(', ')[0]}" if step.outputs else ""
    others = [name for name in step.original_nodes if name != step.name]
    if others:
        more = f" and {len(others) - _MOST_NAMES} more" if len(others) > _MOST_NAMES else ""
        text += f"\n  with {', '.join(_beside(name, step.name) for name in others[:_MOST_NAMES])}{more}"
    return text


def _beside(name: str, other: str) -> str:
    """Return a name as a path from where another is, unless that would be longer."""
    parts, others = name.split("/"), other.split("/")[:-1]
    shared = 0
    while shared < min(len(parts) - 1, len(others)) and parts[shared] == others[shared]:
        shared += 1
    found = "/".join([".."] * (len(others) - shared) + parts[shared:])
    return found if len(found) <= len(name) else name


def describe_differences(reports: Sequence[Report], differences: Sequence[Difference]) -> dict[str, Any]:
    """Return how two profiles differ, as JSON has it; Any because it is on its way there."""
    before, after = reports
    return {
        "before_run_ms": before.run_ms,
        "after_run_ms": after.run_ms,
        "differences": [{**dataclasses.asdict(item), "difference_ms": item.after_ms - item.before_ms} for item in differences],
    }


def print_differences(labels: Sequence[str], reports: Sequence[Report], differences: Sequence[Difference], top: int) -> None:
    """Print how two profiles differ, the `top` largest differences or all for 0."""
    for label, report in zip(labels, reports, strict=True):
        print_text(f"{label}: {report.run_ms:.3f} ms a run, {counted(len(report.steps), 'step')}")
    before, after = (report.run_ms for report in reports)
    click.echo(f"a run takes {after - before:+.3f} ms ({after / before:.3f} times as long)")
    rows = [
        (
            f"{item.after_ms - item.before_ms:+.3f}",
            f"{item.before_ms:.3f}",
            f"{item.after_ms:.3f}",
            f"{item.after_ms / item.before_ms:.2f}" if item.before_ms and item.after_ms else "",
            f"{item.name}\n  {item.operators}",
        )
        for item in _first(differences, top)
    ]
    print_table("", ("ms", "before", "after", "times", "nodes"), rows, ("ms", "before", "after", "times"))
    hidden = len(differences) - len(rows)
    if hidden:
        click.echo(f"{hidden} smaller differences: --top 0")
