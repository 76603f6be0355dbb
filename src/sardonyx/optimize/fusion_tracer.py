"""Follow the rules that match around one node while a model is optimized, to explain why it was fused or not.

    tracer = FusionTracer("/conv1/Conv")
    optimize(model, Level.ALL, evaluate=evaluate, tracer=tracer)
    print(tracer.report("model.onnx"))

What replaces the node is followed in its place. Without a tracer rules are applied as they are, and nothing is noted.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Model, Node, Value
from sardonyx.ir.attribute import AttributeValue
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.edit import overridable_values
from sardonyx.optimize.fusion_report import Attempt, FusionReport, Outcome
from sardonyx.optimize.match import Match, find_matches
from sardonyx.optimize.match_text import expected_text, found_text, label_of, node_text, place_text
from sardonyx.optimize.pattern import Pattern, PatternBuilder, compile_pattern, record_pattern
from sardonyx.optimize.report import NodeLabel
from sardonyx.optimize.rule import Rule, checked
from sardonyx.optimize.terms import Choice, Found, MatchScope, Operation, Output, Rest, Term, Traced

__all__ = ["FusionTracer", "RuleTrace"]

_RULES = "apply_rules"
_NEAREST = 5
"""How many names an error offers."""
_ORDER = (Outcome.STOPPED, Outcome.DECLINED, Outcome.NOT_TRIED)
"""Outcomes, the furthest last."""


class FusionTracer:
    """What rules do at one node, and at what replaces it."""

    def __init__(self, name: str) -> None:
        """Follow the node of that name, or the one that makes the value of that name."""
        self._name = name
        self._label: NodeLabel | None = None
        self._followed: set[Node] = set()
        self._gone: set[Node] = set()
        self._output_names: dict[Node, frozenset[str]] = {}
        self._labels: dict[Node, NodeLabel] = {}
        self._changes: list[Attempt] = []
        self._best: dict[str, tuple[tuple[int, ...], Attempt]] = {}
        self._traces: dict[str, RuleTrace] = {}

    def begin(self, model: Model) -> None:
        """Look the node up in a model whose functions are inlined; what is being followed already goes on.

        Raises:
            InvalidArgument: no node and no value has the name; the message offers near ones.
        """
        if self._label is not None:
            return
        nodes = [node for graph in nested_graphs(model.graph) for node in graph]
        found = next((node for node in nodes if node.name == self._name), None)
        found = found or next((node for node in nodes if any(value.name == self._name for value in node.outputs)), None)
        if found is None or not self._name:
            raise InvalidArgument(_unknown(self._name, nodes))
        self._label = label_of(found)
        self._follow([found])

    def trace(self, rule: Rule) -> RuleTrace:
        """Return what follows the matching of a rule, with its pattern."""
        if rule.name not in self._traces:
            self._traces[rule.name] = RuleTrace(self, rule)
        return self._traces[rule.name]

    def declined(self, rule: Rule, match: Match, reason: str) -> None:
        """Note that a rule matched, but does not fire."""
        self.note(rule, Outcome.DECLINED, match.nodes, reason=reason)

    def fired(self, rule: Rule, matched: Mapping[Node, NodeLabel], built: Iterable[Node]) -> None:
        """Note that a rule replaced what it matched, labelled as it was before, and follow what it built."""
        if self._followed.isdisjoint(matched):
            return
        made = [node for node in built if node.graph is not None]
        names = tuple(matched.values())
        self._changes.append(Attempt(rule.name, Outcome.FIRED, names, len(names), made=tuple(map(label_of, made))))
        self._gone.update(node for node in matched if node.graph is None)
        self._best.pop(rule.name, None)
        self._follow(made)

    def after_pass(self, name: str, model: Model) -> None:
        """Note what a pass did to the nodes that are followed, and follow what makes their outputs now."""
        gone = [node for node in self._followed - self._gone if node.graph is None]
        self._gone.update(gone)
        for node in gone:
            makers = self._makers(model, self._output_names[node])
            made = tuple(map(label_of, makers))
            text = "" if makers else "the node is no longer needed"
            optimization = "rules around it" if name == _RULES else name
            self._changes.append(Attempt(optimization, Outcome.CHANGED, (self._labels[node],), 0, text, made=made))
            self._follow(makers)

    def finish(self, model: Model, absent: Sequence[tuple[Rule, str]]) -> None:
        """Try at the optimized model the rules that took no part, each with the reason why."""
        overridable = overridable_values(model)
        present = {node for node in self._followed if node.graph is not None}
        for rule, reason in absent:
            pattern = compile_pattern(rule.pattern)
            for root in _downstream(present, pattern.depth):
                for match in find_matches(pattern, root, overridable):
                    if not isinstance(checked(rule, match), str):
                        self.note(rule, Outcome.NOT_TRIED, match.nodes, reason=reason)

    def report(self, model: str) -> FusionReport:
        """Return what was noted, for a model that messages call so."""
        if self._label is None:
            raise InvalidArgument(f"the node {self._name!r} is not followed yet: optimize a model first")
        best = [attempt for _, attempt in sorted(self._best.values(), key=lambda item: item[0], reverse=True)]
        return FusionReport(model, self._label, (*self._changes, *best))

    def surpasses(self, rule: Rule, outcome: Outcome, nodes: Collection[Node], satisfied: int = 0) -> bool:
        """Return whether an attempt is about a node that is followed, and no earlier one of its rule came further."""
        known = self._best.get(rule.name)
        is_further = known is None or (_ORDER.index(outcome), len(nodes), satisfied) >= known[0]
        return is_further and not self._followed.isdisjoint(nodes)

    def note(
        self,
        rule: Rule,
        outcome: Outcome,
        nodes: Collection[Node],
        *,
        satisfied: int = 0,
        reason: str = "",
        place: str = "",
        expected: str = "",
        found: str = "",
    ) -> None:
        """Keep an attempt if it surpasses those of its rule so far; so many inputs matched, the texts are those of Attempt."""
        if not self.surpasses(rule, outcome, nodes, satisfied):
            return
        size = self.trace(rule).size
        attempt = Attempt(rule.name, outcome, tuple(map(label_of, nodes)), size, reason, place, expected, found)
        self._best[rule.name] = (_ORDER.index(outcome), len(nodes), satisfied), attempt

    def _follow(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self._followed.add(node)
            self._labels[node] = label_of(node)
            self._output_names[node] = frozenset(value.name for value in node.outputs if value.name)

    def _makers(self, model: Model, names: frozenset[str]) -> list[Node]:
        nodes = (node for graph in nested_graphs(model.graph) for node in graph)
        return [node for node in nodes if node not in self._followed and any(value.name in names for value in node.outputs)]


class RuleTrace:
    """Follows the matching of one rule."""

    def __init__(self, tracer: FusionTracer, rule: Rule) -> None:
        """Record the pattern of `rule` so that its inputs are followed."""
        self._tracer, self._rule = tracer, rule
        self._satisfied = 0
        self.pattern = record_pattern(rule.pattern, _TracingBuilder(self))
        """The pattern of the rule, the matching of whose inputs is followed."""
        self.size = _size(compile_pattern(rule.pattern))
        """How many nodes the smallest match of the pattern has."""

    def follow(self, traced: Traced, value: Value | None, found: Found, place: MatchScope) -> Iterator[Found]:
        """Yield the ways in which `value` matches; where there is none, note that the search stopped here."""
        is_matched = False
        for way in traced.term.match(value, found, place):
            is_matched = True
            self._satisfied += 1
            yield way
            self._satisfied -= 1
        nodes = tuple(dict.fromkeys(found.nodes.values()))
        if is_matched or traced.operation is None or not self._surpasses(nodes):
            return
        self._tracer.note(
            self._rule,
            Outcome.STOPPED,
            nodes,
            satisfied=self._satisfied,
            place=place_text(found.nodes[traced.operation], value, traced.operation.inputs.index(traced)),
            expected=expected_text(traced.term, value, found),
            found=found_text(value, traced.term, place.overridable),
        )

    def _surpasses(self, nodes: Collection[Node]) -> bool:
        return self._tracer.surpasses(self._rule, Outcome.STOPPED, nodes, self._satisfied)

    def start(self) -> RuleTrace:
        """Begin at another node, as a search that was given up leaves its count behind; returns the trace."""
        self._satisfied = 0
        return self

    def read_elsewhere(self, match: Match, value: Value) -> None:
        """Note that something outside of a match reads a value inside."""
        readers = [user for user, _ in value.uses if isinstance(user, Node) and user not in match.nodes]
        others = f"read by {', '.join(map(node_text, readers))} too" if readers else "an output of the graph"
        reason = f"{value.name or 'a value'} between the nodes is {others}, so that the node which makes it must stay"
        self._tracer.note(self._rule, Outcome.DECLINED, match.nodes, reason=reason)

    def made_between(self, match: Match) -> None:
        """Note that nodes outside of a match lie between its nodes."""
        reason = "nodes that do not match lie on a path from one of these nodes to another"
        self._tracer.note(self._rule, Outcome.DECLINED, match.nodes, reason=reason)


class _TracingBuilder(PatternBuilder):
    """Records calls whose inputs are followed."""

    def __init__(self, trace: RuleTrace) -> None:
        self._trace = trace

    def input(self, term: Term) -> Term:
        """Return a term that follows the matching of `term`; further inputs always match."""
        return term if isinstance(term, Rest) else Traced(term, self._trace)

    def node(self, op_type: str, *inputs: OnnxValue, **constraints: AttributeValue) -> Term:
        """Record a node, and set the operation of its inputs."""
        output = super().node(op_type, *inputs, **constraints)
        if isinstance(output, Output):
            for term in output.operation.inputs:
                if isinstance(term, Traced):
                    term.operation = output.operation
        return output


def _downstream(nodes: Iterable[Node], depth: int) -> list[Node]:
    """Return `nodes` and those that read their outputs, so many nodes deep."""
    front = dict.fromkeys(nodes)
    seen = dict(front)
    for _ in range(depth):
        users = (user for node in front for value in node.outputs for user, _ in value.uses if isinstance(user, Node))
        front = {user: None for user in users if user not in seen}
        seen.update(front)
    return list(seen)


def _size(pattern: Pattern) -> int:
    """Return how many nodes the smallest match of a pattern has."""
    known: dict[Term, frozenset[Operation]] = {}
    operations = frozenset[Operation]().union(*(_smallest(term, known) for term in pattern.results))
    return len(operations)


def _smallest(term: Term, known: dict[Term, frozenset[Operation]]) -> frozenset[Operation]:
    """Return the operations of the smallest match of a term; `known` keeps those of terms, which patterns may use many times."""
    if term not in known:
        parts: list[frozenset[Operation]] = []
        if isinstance(term, Output):
            parts = [frozenset([term.operation]), *(_smallest(inner, known) for inner in term.operation.inputs)]
        if isinstance(term, Choice):
            parts = [min((_smallest(inner, known) for inner in term.terms), key=len)]
        known[term] = frozenset[Operation]().union(*parts)
    return known[term]


def _unknown(name: str, nodes: Sequence[Node]) -> str:
    """Return the message for a name that neither a node nor a value has."""
    names = [*(node.name for node in nodes), *(value.name for node in nodes for value in node.outputs)]
    known = sorted({known for known in names if known})
    inlined = [known for known in known if name and known.startswith(f"{name}/")]
    near = (inlined or difflib.get_close_matches(name, known, n=_NEAREST, cutoff=0.4))[:_NEAREST]
    hint = f"; near it are {', '.join(near)}" if near else "; `sardonyx inspect --text MODEL` lists the names"
    return f"no node and no value that a node makes is named {name!r}{hint}"
