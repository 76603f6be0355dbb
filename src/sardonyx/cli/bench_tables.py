"""What `sardonyx bench` found, as a table and as what JSON holds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import click

from sardonyx.cli.bench_engines import Job, Measured
from sardonyx.cli.console import decimals, print_table, print_text
from sardonyx.cli.feeds import type_text

__all__ = ["describe_engines", "percentile", "print_engines"]

_MIB = 1 << 20


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the least of `ordered`, which rise, that a `share` of them does not exceed (the nearest rank)."""
    rank = -int(-share * len(ordered) // 1)
    return ordered[max(rank, 1) - 1]


def describe_engines(model: str, job: Job, found: Sequence[Measured]) -> dict[str, object]:
    """Return what was found, as JSON has it; Any because it is on its way there."""
    return {
        "model": model,
        "threads": job.threads,
        "streams": job.streams,
        "inputs": {name: type_text(value) for name, value in job.feed.items()},
        "engines": [_describe(item, found[0]) for item in found],
    }


def _describe(item: Measured, own: Measured) -> dict[str, object]:
    facts: dict[str, object] = {"engine": item.engine, "version": item.version}
    if item.error:
        return {**facts, "error": item.error}
    ordered = item.latencies_ms
    facts["runs"] = len(ordered)
    facts["latency_ms"] = {
        "min": ordered[0],
        "mean": statistics.fmean(ordered),
        **{f"p{share}": percentile(ordered, share / 100) for share in (50, 90, 99)},
        "max": ordered[-1],
    }
    facts["throughput_per_s"] = item.throughput_per_s
    facts["start_ms"] = {"median": statistics.median(item.starts_ms), "each": item.starts_ms, **item.parts_ms}
    if item.cold_start_ms is not None:
        facts["cold_start_ms"] = item.cold_start_ms
    facts["memory_mib"] = {"after_first_run": item.loaded_bytes / _MIB, "peak": item.peak_bytes / _MIB}
    if item is not own:
        ratios = item.ratios(own)
        facts["times_as_long"] = {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios), "each": ratios}
    return facts


def print_engines(model: str, job: Job, found: Sequence[Measured]) -> None:
    """Print a row for each engine, what is compared, and what the figures include."""
    threads = f"{job.threads} thread{'s' if job.threads > 1 else ''}"
    streams = f"{job.streams} runs at a time" if job.streams > 1 else "one run at a time"
    print_text(f"{model}: {threads}, {streams}")
    shapes = ", ".join(f"{name} {type_text(value)}" for name, value in job.feed.items())
    if shapes:
        print_text(f"inputs: {shapes}")
    able = [item for item in found if not item.error]
    columns = ("engine", "runs", "p50 ms", "p90 ms", "p99 ms", "runs/s", "start ms", "MiB")
    places = decimals(min((percentile(item.latencies_ms, 0.5) for item in able), default=1.0))
    print_table("", columns, [_row(item, places) for item in able], columns[1:])
    for item in able[1:]:
        ratios = sorted(item.ratios(found[0]))
        if ratios:
            click.echo(
                f"{item.engine} takes {statistics.median(ratios):.3f} times as long as {found[0].engine} "
                f"({ratios[0]:.3f} to {ratios[-1]:.3f} in {len(ratios)} turns)"
            )
    for item in found:
        if item.error:
            click.secho(f"{item.engine}: {item.error}", fg="red")
    cold = found[0].cold_start_ms
    if cold is not None:
        click.echo(f"with an empty cache of kernels {found[0].engine} starts in {cold:.0f} ms")
    click.echo("start: from the start of a process to its first result; MiB: its peak")


def _row(item: Measured, places: int) -> tuple[str, ...]:
    ordered = item.latencies_ms
    return (
        f"{item.engine} {item.version.rpartition(f'+{item.engine}.')[2].partition('-')[0]}",
        str(len(ordered)),
        *(f"{percentile(ordered, share):.{places}f}" for share in (0.5, 0.9, 0.99)),
        f"{item.throughput_per_s:.1f}",
        f"{statistics.median(item.starts_ms):.0f}",
        f"{item.peak_bytes / _MIB:.0f}",
    )
