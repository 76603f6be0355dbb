"""`sardonyx profile MODEL`: which steps of a run take how long, and how far they are from what this machine could do."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from sardonyx import config
from sardonyx.cli.completions import ModelPath
from sardonyx.cli.console import (
    fail,
    force_option,
    json_option,
    open_session,
    print_json,
    print_text,
    progress,
    provider_option,
    readable_errors,
    refuse_existing,
    session_options,
)
from sardonyx.cli.feeds import describe_feed, input_options, make_feed
from sardonyx.cli.profile_placement import Feeding, measure_placement
from sardonyx.cli.profile_tables import describe, describe_differences, print_differences, print_report
from sardonyx.codegen.run.processors import available_processors
from sardonyx.codegen.target import host_target
from sardonyx.providers.cpu.roofline import Roofline, roofline_for
from sardonyx.session.options import SessionOptions
from sardonyx.session.profiling.report import compare_profiles, read_events, read_profile

__all__ = ["profile"]

_MARGIN_US = 1.0
_SHORT_MS = 1.0
"""Of runs below this, recording is a part that counts."""
_UNRECORDED_RUNS = 200
_LEAST_RUNS, _MOST_RUNS, _SHORT_RUNS_S = 20, 1000, 0.02
"""How many runs are recorded by default: what fits into that many seconds, within limits."""


@click.command(short_help="Measure each step of MODEL.")
@click.argument("model", type=ModelPath(), required=False)
@click.option("--runs", type=click.IntRange(min=1), help="Runs to record; 20 by default, more where they are short.")
@click.option("--warmup", default=3, show_default=True, type=click.IntRange(min=0), help="Runs before these.")
@click.option(
    "--top", default=15, show_default=True, type=click.IntRange(min=0), help="Steps to list, the longest first; 0 is all."
)
@click.option(
    "--compare", nargs=2, type=click.Path(path_type=Path), metavar="A B", help="Show how two profiles differ, instead of measuring."
)
@click.option("--placement", is_flag=True, help="Measure operators on providers, and copies between memories, for sessions.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the profile here, for Perfetto or chrome://tracing.")
@force_option
@input_options
@provider_option
@session_options
@json_option
def profile(
    model: str | None,
    runs: int | None,
    warmup: int,
    top: int,
    compare: tuple[Path, Path] | None,
    placement: bool,
    output: Path | None,
    force: bool,
    inputs: Sequence[str],
    seed: int,
    dims: Sequence[str],
    ranges: Sequence[str],
    provider_names: Sequence[str],
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Measure each step of MODEL; inputs not given are drawn.

    A step is a kernel of one or several fused nodes. With --compare show how two profiles differ. With --placement measure each
    operator on each provider, for sessions with placement = "measured".
    """
    if compare:
        _compare(*compare, top, as_json=as_json)
        return
    if model is None:
        fail("give a MODEL to measure, or --compare A B")
    if output is not None and not output.absolute().parent.is_dir():
        fail(f"there is no folder {str(output.parent)!r} to write {output.name} into")
    if output is not None:
        refuse_existing([output], force=force)
    if placement:
        if output is None:
            fail("--placement writes what it finds: give -o FILE.json")
        measure_placement(model, output, (inputs, dims, ranges, seed), provider_names, options, as_json=as_json)
        return
    with readable_errors():
        events, types, sizes = _measured(model, options, provider_names, (inputs, dims, ranges, seed), runs, warmup)
        roofline = roofline_for(host_target(config.isa()), _threads(options))
        report = read_profile(events, model)
        fast = report.run_ms < _SHORT_MS
        unrecorded_ms = _unrecorded_ms(model, options, provider_names, (inputs, dims, ranges, seed)) if fast else None
    if output is not None:
        with readable_errors():
            output.write_text(
                "[\n" + ",\n".join(json.dumps(_placed(event, roofline)) for event in events) + "\n]\n", encoding="utf-8"
            )
    if as_json:
        cost_ms = None if unrecorded_ms is None else max(0.0, report.run_ms - unrecorded_ms)
        measured = {"unrecorded_run_ms": unrecorded_ms, "recording_ms": cost_ms}
        print_json({**describe(model, report, roofline), **measured, "inputs": types, "dims": sizes})
        return
    left_open = ", ".join(f"{name}={size}" for name, size in sizes.items())
    print_text(f"inputs: {', '.join(map(' '.join, types.items()))}{f'; --dim sets {left_open}' if left_open else ''}")
    print_report(model, report, roofline, top, unrecorded_ms)
    if output is not None:
        click.echo(f"written to {output}: open it in https://ui.perfetto.dev")


def _measured(
    model: str,
    options: SessionOptions,
    provider_names: Sequence[str],
    feeding: Feeding,
    runs: int | None,
    warmup: int,
) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, int]]:
    """Return the events of a session and of its runs, without those of the warm-up, and what was fed; Any, as from JSON."""
    with tempfile.TemporaryDirectory(prefix="sardonyx-profile-") as folder:
        options.enable_profiling, options.profile_file_prefix = True, str(Path(folder) / "profile")
        session = open_session(model, provider_names, options)
        feed = make_feed(session, *feeding)
        took_s = 1.0
        with progress(f"running {model}", warmup) as advance:
            for _ in range(warmup):
                start_s = time.perf_counter()
                session.run(None, feed)
                took_s = min(took_s, time.perf_counter() - start_s)
                advance("warming up")
        count = runs or round(min(_MOST_RUNS, max(_LEAST_RUNS, _SHORT_RUNS_S / took_s)))
        with progress(f"running {model}", count) as advance:
            for _ in range(count):
                session.run(None, feed)
                advance("measuring")
        events = read_events(Path(session.end_profiling()))
    starts = sorted(event["ts"] for event in events if event["name"] == "model_run")
    begin = starts[warmup] if len(starts) > warmup else 0
    ready = starts[0] if starts else 0
    kept = [event for event in events if event["ts"] + _MARGIN_US >= begin or event["ts"] + _MARGIN_US < ready]
    return kept, *describe_feed(session, feed)


def _unrecorded_ms(model: str, options: SessionOptions, provider_names: Sequence[str], feeding: Feeding) -> float:
    """Return the median time of runs of a session that records nothing."""
    options.enable_profiling = False
    session = open_session(model, provider_names, options)
    feed = make_feed(session, *feeding)
    times_ns = []
    for _ in range(_UNRECORDED_RUNS):
        start_ns = time.perf_counter_ns()
        session.run(None, feed)
        times_ns.append(time.perf_counter_ns() - start_ns)
    return statistics.median(times_ns) / 1e6


def _threads(options: SessionOptions) -> int:
    return options.intra_op_num_threads or config.num_threads() or available_processors()


def _placed(event: Mapping[str, Any], roofline: Roofline) -> Mapping[str, Any]:
    """Return an event with the time that its step takes at least on this machine; Any, as it came from JSON."""
    said = event["args"]
    if event["cat"] != "Node" or "bytes" not in said:
        return event
    least_us = 1e6 * roofline.seconds(said.get("flops", 0), said["bytes"])
    return {**event, "args": {**said, "roofline_us": round(least_us, 6)}}


def _compare(before: Path, after: Path, top: int, *, as_json: bool) -> None:
    with readable_errors():
        reports = [read_profile(read_events(path), str(path)) for path in (before, after)]
    differences = compare_profiles(*reports)
    if as_json:
        print_json(describe_differences(reports, differences))
    else:
        print_differences([str(before), str(after)], reports, differences, top)
