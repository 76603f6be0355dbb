"""A profile, in the form of Chrome's trace events, as data of a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx.errors import InvalidArgument
from sardonyx.inspection.graph_facts import Facts
from sardonyx.session.profiling.report import read_trace

__all__ = ["profile_facts"]

_MOST_EVENTS = 20_000
_NEEDED = ("name", "ts", "dur")


def profile_facts(path: Path) -> Facts:
    """Return the events of a profile that `InferenceSession.end_profiling`, or onnxruntime's, wrote.

    Returns:
        `events` of the run of median duration, each with name, category, begin and duration in microseconds, thread, and as
        far as the profile says so operator, provider, kernel, nodes, floating-point operations and bytes; `runs`, how many runs the
        file has; and `run_us`, how long that one took. A file without runs gives all its events.

    Raises:
        NoSuchFile: there is no such file.
        InvalidArgument: it is no profile.
    """
    usable = [event for event in read_trace(path) if _is_span(event)]
    if not usable:
        raise InvalidArgument(f"{path} has no event with {', '.join(_NEEDED)}; is it a profile of a session that has run?")
    runs = sorted((event for event in usable if event["name"] == "model_run"), key=lambda event: float(event["dur"]))
    begin, end = _span(runs[len(runs) // 2]) if runs else (float("-inf"), float("inf"))
    kept = [event for event in usable if event["name"] != "model_run" and _lies_in(event, begin, end)]
    kept.sort(key=lambda event: float(event["ts"]))
    start = min((float(event["ts"]) for event in kept), default=0.0) if not runs else begin
    shown = [_event(event, start) for event in kept[:_MOST_EVENTS]]
    return {
        "file": path.name,
        "events": shown,
        "runs": len(runs),
        "run_us": end - begin if runs else None,
        "left_out": max(0, len(kept) - _MOST_EVENTS),
    }


def _is_span(event: Mapping[str, Any]) -> bool:
    numbers = all(isinstance(event.get(key), (int, float)) and event[key] >= 0 for key in ("ts", "dur"))
    return numbers and isinstance(event.get("name"), str)


def _span(event: Mapping[str, Any]) -> tuple[float, float]:
    return float(event["ts"]), float(event["ts"]) + float(event["dur"])


def _lies_in(event: Mapping[str, Any], begin: float, end: float) -> bool:
    first, last = _span(event)
    return first >= begin - 1 and last <= end + 1


def _event(event: Mapping[str, Any], start: float) -> Facts:
    said = event.get("args")
    said = said if isinstance(said, dict) else {}
    facts: Facts = {
        "name": str(event["name"]).removesuffix("_kernel_time"),
        "cat": str(event.get("cat", "")),
        "ts": round(float(event["ts"]) - start, 3),
        "dur": float(event["dur"]),
        "tid": str(event.get("tid", "")),
    }
    for key, own in (("op_name", "op"), ("provider", "provider"), ("kernel", "kernel"), ("fused", "fused")):
        if said.get(key):
            facts[own] = str(said[key])
    for key in ("flops", "bytes"):
        number = _number(said.get(key))
        if number is not None:
            facts[key] = number
    for key in ("nodes", "original_nodes"):
        if isinstance(said.get(key), Sequence) and not isinstance(said[key], str):
            facts[key] = [str(name) for name in said[key]]
    if said.get("output_type_shape"):
        facts["shape"] = json.dumps(said["output_type_shape"])[:200]
    return facts


def _number(given: Any) -> float | None:
    """Return a count that profiles give as a number or as text."""
    try:
        return float(given) if given is not None and float(given) >= 0 else None
    except (TypeError, ValueError):
        return None
