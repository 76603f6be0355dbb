"""Reading a profile: what the steps of a run took, and how two profiles differ.

A profile of many runs is read as one run: the mean of the middle half of the runs by duration, so that runs that something
interrupted do not count, and that the steps and what lies outside of them add up to the run. A step that calls other steps, as
those of a loop's body, is counted without them.
"""

from __future__ import annotations

import bisect
import collections
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.session.profiling.spans import PARTS, outside_us, own_us

__all__ = ["Difference", "Part", "Report", "Step", "compare_profiles", "read_events", "read_profile", "read_trace"]

_KEYS = ("cat", "ts", "dur", "name", "args")
_Timed: TypeAlias = tuple[Mapping[str, Any], float]
"""An event and how long it takes without those inside it, in microseconds."""


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One step of a run."""

    name: str
    """The node that it is called by."""
    operators: str
    """What it computes, such as "Conv+Relu"."""
    provider: str
    """Who runs it."""
    kernel: str
    """The kernel; "" where the provider does not say."""
    nodes: tuple[str, ...]
    """The nodes of the optimized model that it computes."""
    original_nodes: tuple[str, ...]
    """The nodes of the given model that these stand for."""
    outputs: str
    """Types and shapes of what it writes."""
    ms: float
    """How long it takes in a run, all its repetitions in a loop together."""
    flops: int | None
    """Its floating-point operations in a run; None where they are not known."""
    size_bytes: int | None
    """The bytes that it reads and writes in a run; None where they are not known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """What a run does outside of its steps."""

    name: str
    """What and when."""
    ms: float
    """How long it takes in a run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """One run, as a profile of several shows it."""

    runs: int
    """How many runs the profile has."""
    run_ms: float
    """How long a run takes."""
    steps: tuple[Step, ...]
    """Its steps, in the order in which they first ran."""
    outside: tuple[Part, ...] = ()
    """What it does besides; with the steps it adds up to the run, unless programs ran at the same time."""

    @property
    def steps_ms(self) -> float:
        """How long the steps take together."""
        return sum(step.ms for step in self.steps)


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """Steps of two profiles that compute the same nodes."""

    name: str
    """What they compute: the name of the first step that has them."""
    operators: str
    """The operators there, before and after where they differ."""
    before_ms: float
    """What they take in the first profile; 0 where there are none."""
    after_ms: float
    """What they take in the second."""


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a profile that have all that a report needs; Any, as they come from JSON.

    Raises:
        NoSuchFile: there is no such file.
        InvalidArgument: it is no profile.
    """
    return [event for event in read_trace(path) if all(key in event for key in _KEYS)]


def read_trace(path: Path) -> list[dict[str, Any]]:
    """Return all events of a trace, those of other programs too; raises as `read_events`."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NoSuchFile(f"{path} is not there; `sardonyx profile MODEL -o {path.name}` writes a profile") from error
    except ValueError as error:
        raise InvalidArgument(f"{path} is no profile, which is JSON: {error}") from error
    events = found.get("traceEvents") if isinstance(found, dict) else found
    if not isinstance(events, list):
        raise InvalidArgument(f"{path} is no profile: it should be a list of events, or have one as traceEvents")
    return [event for event in events if isinstance(event, dict)]


def read_profile(events: Sequence[Mapping[str, Any]], label: str) -> Report:
    """Return one run of a profile; raises InvalidArgument, naming it by `label`, where it has no run."""
    spans = sorted((event["ts"], event["ts"] + event["dur"]) for event in events if event["name"] == "model_run")
    if not spans:
        raise InvalidArgument(f"{label} has no run of a model: run the session before end_profiling")
    kept = sorted(spans, key=lambda span: span[1] - span[0])[len(spans) // 4 : len(spans) - len(spans) // 4]
    groups: dict[tuple[str, ...], list[_Timed]] = collections.defaultdict(list)
    outside = [0.0] * len(PARTS)
    ordered = sorted((event for event in events if event["cat"] in ("Node", "Partition")), key=_begin)
    for span in kept:
        timed = _timed(ordered, span)
        for event, own in timed:
            if event["cat"] == "Node":
                said = event["args"]
                groups[event["name"], str(said.get("kernel", "")), str(said.get("provider", "")), _shapes(said)].append(
                    (event, own)
                )
        programs = [(event["ts"], event["ts"] + event["dur"]) for event, _ in timed]
        around_us = sum(own for event, own in timed if event["cat"] == "Partition")
        outside = [us + more for us, more in zip(outside, outside_us(span, programs, around_us), strict=True)]
    parts = tuple(Part(name, max(0.0, us) / len(kept) / 1e3) for name, us in zip(PARTS, outside, strict=True))
    steps = tuple(_step(members, len(kept)) for members in groups.values())
    return Report(len(spans), sum(end - start for start, end in kept) / len(kept) / 1e3, steps, parts)


def _timed(events: Sequence[Mapping[str, Any]], span: tuple[float, float]) -> list[_Timed]:
    """Return the steps and programs of a run, by when they began, with what each takes without those inside it."""
    inside = events[bisect.bisect_left(events, span[0], key=_begin) : bisect.bisect_right(events, span[1], key=_begin)]
    return list(zip(inside, own_us(inside), strict=True))


def _begin(event: Mapping[str, Any]) -> float:
    return float(event["ts"])


def _step(timed: Sequence[_Timed], runs: int) -> Step:
    events = [event for event, _ in timed]
    said = events[0]["args"]
    name = str(events[0]["name"]).removesuffix("_kernel_time")
    return Step(
        name=name,
        operators=str(said.get("fused") or said.get("op_name") or ""),
        provider=str(said.get("provider", "")),
        kernel=str(said.get("kernel", "")),
        nodes=tuple(said.get("nodes") or (name,)),
        original_nodes=tuple(said.get("original_nodes") or ()),
        outputs=_shapes(said),
        ms=sum(own for _, own in timed) / runs / 1e3,
        flops=_total(events, "flops", runs),
        size_bytes=_total(events, "bytes", runs),
    )


def _total(events: Sequence[Mapping[str, Any]], key: str, runs: int) -> int | None:
    found = [event["args"][key] for event in events if key in event["args"]]
    return round(sum(found) / runs) if found else None


def _shapes(said: Mapping[str, Any]) -> str:
    tensors = said.get("output_type_shape") or ()
    return ", ".join(f"{kind}[{','.join(map(str, shape))}]" for tensor in tensors for kind, shape in tensor.items())


def compare_profiles(before: Report, after: Report) -> list[Difference]:
    """Return what computes the same nodes in both, the largest difference first.

    Steps belong together where they stand for a common node of the given model, or for nodes of one name.
    """
    roots: dict[str, str] = {}
    for step in (*before.steps, *after.steps):
        names = _names(step)
        for name in names:
            _join(roots, names[0], name)
    found: dict[str, list[list[Step]]] = {}
    for side, report in enumerate((before, after)):
        for step in report.steps:
            found.setdefault(_root(roots, _names(step)[0]), [[], []])[side].append(step)
    return sorted((_difference(*sides) for sides in found.values()), key=lambda item: -abs(item.after_ms - item.before_ms))


def _names(step: Step) -> tuple[str, ...]:
    return step.original_nodes or step.nodes or (step.name,)


def _root(roots: dict[str, str], name: str) -> str:
    while roots.setdefault(name, name) != name:
        roots[name] = roots[roots[name]]
        name = roots[name]
    return name


def _join(roots: dict[str, str], left: str, right: str) -> None:
    roots[_root(roots, right)] = _root(roots, left)


def _difference(before: Sequence[Step], after: Sequence[Step]) -> Difference:
    texts = [" ".join(dict.fromkeys(step.operators for step in steps)) or "-" for steps in (before, after)]
    return Difference(
        (before or after)[0].name,
        texts[0] if texts[0] == texts[1] else " -> ".join(texts),
        sum(step.ms for step in before),
        sum(step.ms for step in after),
    )
