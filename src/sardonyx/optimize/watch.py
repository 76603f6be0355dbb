"""Looks on while rules are applied: compares what they put in place with what they replace, records, and leaves out what is wrong.

A replacement is compared before it takes effect, so that one that is refused leaves the graph as it was.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import OptimizationError, SardonyxError
from sardonyx.ir import Model, Node, Value
from sardonyx.ir.walk import all_graphs
from sardonyx.optimize.agreement import MOVING, difference
from sardonyx.optimize.contract import RunModel
from sardonyx.optimize.edit import RANDOM
from sardonyx.optimize.match import Match
from sardonyx.optimize.region import Region, cut_out
from sardonyx.optimize.report import Change, NodeLabel, Problem, Report
from sardonyx.optimize.rule import Rule
from sardonyx.optimize.sample import samples, unsuitable
from sardonyx.optimize.target import Target
from sardonyx.trace import event

if TYPE_CHECKING:
    from sardonyx.optimize.fusion_tracer import FusionTracer

__all__ = ["State", "Watch", "found_by_running", "run_both"]

State: TypeAlias = dict[Node, tuple[object, ...]]
"""Nodes, and for each what it consists of."""


class Watch:
    """What one optimization knows beside its model: who is left out, and the report."""

    def __init__(
        self,
        report: Report,
        disabled: Iterable[str] = (),
        run: RunModel | None = None,
        *,
        records: bool = False,
        verifies_passes: bool = True,
    ) -> None:
        """Begin.

        Args:
            report: where findings and changes are written.
            disabled: names of rules and passes that are left out from the start.
            run: computes a model; with it each replacement is compared with what it replaces.
            records: whether every change is listed in the report.
            verifies_passes: whether passes are compared too, on the whole model.
        """
        self.report, self.records, self.run, self.verifies_passes = report, records, run, verifies_passes
        self.disabled = set(disabled)
        self.blamed = ""
        """The rule that was at work when an error was raised."""
        self.after_firing: Callable[[], None] | None = None
        """Called after each firing, to find the rule that breaks the model: raises where it is broken."""
        self.tracer: FusionTracer | None = None
        """Follows the rules that match around one node, where a user asks why it is not fused."""
        self.target = Target()
        """Where the model goes: matches about operators that are legal there decline."""
        self.suspects: frozenset[str] = frozenset()
        """Rules that are watched, where results are compared, for changes of what they were to leave alone."""

    def state(self, rule: Rule, model: Model) -> State | None:
        """Return a fingerprint that shows whether `rule` changes nodes instead of making new ones; None where it is not watched."""
        if self.run is None or rule.name not in self.suspects:
            return None
        return {node: _state_of(node) for graph in all_graphs(model) for node in graph}

    def check_unchanged(self, rule: Rule, state: State | None) -> None:
        """Raise OptimizationError where `rule` has changed one of the nodes of `state`, or a constant that it reads."""
        for node, before in (state or {}).items():
            if _state_of(node) != before:
                raise OptimizationError(f"rule {rule.name} changes {node!r} in place; it may only build new nodes")

    def refusal(self, rule: Rule, match: Match, values: Sequence[Value], built: Sequence[Node], model: Model) -> str | None:
        """Return why a replacement whose nodes are built must not take effect; None where it may. The rule is left out then."""
        if self.run is None:
            return None
        event("optimize.compare", optimization=rule.name)
        region = cut_out(match, values, built, model)
        reason = unsuitable(region.inputs)
        if reason is not None:
            self.report.unverified[rule.name] = reason
            return None
        tolerance = 0.0 if region.operators <= MOVING else rule.tolerance
        found, reason = _compare(self.run, region, rule.name, tolerance, rule.integer_steps, match.place.overridable)
        if reason is not None:
            self.report.unverified[rule.name] = reason
            return None
        if found is None:
            self.report.verified[rule.name] += 1
            return None
        self.leave_out(Problem(rule.name, f"changes results: it {found}", region.before, region.after))
        return f"it changes results: it {found}"

    def fired(self, rule: Rule, removed: Iterable[NodeLabel], added: Iterable[NodeLabel]) -> None:
        """List a firing in the report."""
        self.report.changes.append(Change(rule.name, tuple(removed), tuple(added)))

    def take_blamed(self) -> str:
        """Return the rule that was at work when an error was raised, "" for none; it is forgotten then."""
        name, self.blamed = self.blamed, ""
        return name

    def leave_out(self, problem: Problem) -> None:
        """Report a problem, and switch off the rule or pass from here on."""
        self.disabled.add(problem.optimization)
        self.report.problems.append(problem)
        event("optimize.left_out", optimization=problem.optimization, reason=problem.message)


def _state_of(node: Node) -> tuple[object, ...]:
    constants = (None if value is None else value.constant for value in node.inputs)
    attributes = (*node.attributes, *map(id, node.attributes.values()))
    return node.graph, node.domain, node.op_type, node.version, node.inputs, node.outputs, *attributes, *map(id, constants)


def _compare(
    run: RunModel, region: Region, name: str, tolerance: float, integer_steps: int, overridable: frozenset[Value]
) -> tuple[str | None, str | None]:
    """Return how `after` of a region differs from `before`, and why that could not be found out; None and None where they agree."""
    reason = "no random inputs were small enough"
    for feed in samples(region.inputs, zlib.crc32(name.encode()), overridable):
        named = {inner.name: feed[outer] for inner, outer in zip(region.before.graph.inputs, region.inputs, strict=True)}
        old, reason = _try(run, region.before, named)
        if old is not None:
            return found_by_running(run, region.before, region.after, named, old, tolerance, integer_steps)
    return None, reason


def found_by_running(
    run: RunModel,
    before: Model,
    after: Model,
    feed: Mapping[str, Array],
    old: Sequence[OnnxValue],
    tolerance: float,
    integer_steps: int = 0,
) -> tuple[str | None, str | None]:
    """Return how the results of `after` differ from `old`, those of `before`, and why that says nothing.

    Any, by their ONNX type.
    """
    found = run_both(run, after, feed, old, tolerance, integer_steps)
    if found is None:
        return None, None
    if any(map(_draws, before.graph)) or run_both(run, before, feed, old, tolerance, integer_steps) is not None:
        return None, "the results differ from run to run"
    return found, None


def _draws(node: Node) -> bool:
    """Return whether a node draws other numbers at each run, which may be the same by chance; Dropout does so in training only."""
    return not node.domain and node.op_type in RANDOM - {"Dropout"} and node.number("seed") is None


def run_both(
    run: RunModel, after: Model, feed: Mapping[str, Array], old: Sequence[OnnxValue], tolerance: float, integer_steps: int = 0
) -> str | None:
    """Return how the results of `after` differ from `old`; Any, by their ONNX type."""
    new, reason = _try(run, after, feed)
    return f"fails: {reason}" if new is None else difference(old, new, tolerance, integer_steps=integer_steps)


def _try(run: RunModel, model: Model, feed: Mapping[str, Array]) -> tuple[list[OnnxValue] | None, str]:
    try:
        return run(model, feed), ""
    except SardonyxError as error:
        check_cancelled()
        raise_interrupt(error)
        return None, str(error)
