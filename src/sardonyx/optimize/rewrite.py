"""Apply rewrite rules to a model until none fires.

Rules are indexed by the operator of their root, so a node costs what the rules for its operator cost. A worklist holds the nodes
to visit: at first all, later those near a change - new nodes, the users of what was replaced, and those whose inputs lost
another user - as deep as the deepest pattern reaches. Rules of one root are tried in the order given. A rule fires a bounded
number of times; one that feeds itself is reported by name.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import DataType
from sardonyx.errors import OptimizationError, SardonyxError, describe, located
from sardonyx.ir import Dim, Expr, Graph, Model, Node, Shape, TensorType, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.infer import infer_node
from sardonyx.ops.schema import place_of
from sardonyx.optimize.edit import Names, are_placed_apart, inherit_metadata, overridable_values, remove_dead, take_over
from sardonyx.optimize.fusion_tracer import FusionTracer
from sardonyx.optimize.match import Match, find_matches
from sardonyx.optimize.passes.write_older import WRITE_OLDER, has_older_name
from sardonyx.optimize.pattern import Pattern, compile_pattern
from sardonyx.optimize.report import labels
from sardonyx.optimize.rule import Builder, Rule, checked
from sardonyx.optimize.terms import Operation
from sardonyx.optimize.watch import State, Watch
from sardonyx.trace import event

__all__ = ["RuleSet", "rewrite"]

_FIRINGS_PER_NODE = 8
_FIRINGS_AT_LEAST = 1000
_NODES_PER_FIRING = 8
"""How many nodes firings may make on the average, when they are as many as they may be."""


class RuleSet:
    """Rules compiled and indexed by the operators of their roots; immutable."""

    __slots__ = ("by_root", "depth", "rules")

    def __init__(self, rules: Iterable[Rule], tracer: FusionTracer | None = None) -> None:
        """Compile the patterns of `rules`, whose order is that in which they are tried; so that `tracer` follows their matching."""
        self.rules = tuple(rules)
        self.by_root: dict[tuple[str, str], list[tuple[Rule, Pattern, tuple[Operation, ...]]]] = {}
        self.depth = 1
        for rule in self.rules:
            pattern = _compiled(rule, tracer)
            self.depth = max(self.depth, pattern.depth)
            roots: dict[tuple[str, str], tuple[Operation, ...]] = {}
            for operation in (output.operation for output in pattern.roots):
                key = operation.domain, operation.op_type
                roots[key] = (*roots.get(key, ()), operation)
            for key, operations in roots.items():
                self.by_root.setdefault(key, []).append((rule, pattern, operations))


def _compiled(rule: Rule, tracer: FusionTracer | None) -> Pattern:
    try:
        return compile_pattern(rule.pattern) if tracer is None else tracer.trace(rule).pattern
    except Exception as error:
        failure = OptimizationError(f"the pattern of rule {rule.name} cannot be read: {describe(error)}; disable it by its name")
        failure.optimization = rule.name
        raise failure from error


def rewrite(model: Model, rules: RuleSet, *, keep_opset: bool = False, watch: Watch | None = None) -> Counter[str]:
    """Apply `rules` to the main graph and its subgraphs until none fires; O(nodes x rules of one operator + firings).

    Args:
        model: what to rewrite, in place.
        rules: what to apply.
        keep_opset: fire no rule whose new nodes need a newer opset than the model's, unless they have an older name; so that the
            model can be saved.
        watch: who looks on: compares replacements, records them, and leaves out rules.

    Returns:
        How often each rule fired.

    Raises:
        OptimizationError: a rule raised, made an invalid replacement, or fired without end; the message names it.
    """
    run = _Rewriting(model, rules, keep_opset, watch)
    run.run()
    return run.fired


class _Rewriting:
    """One application of rules: the worklist and the counts."""

    def __init__(self, model: Model, rules: RuleSet, keep_opset: bool, watch: Watch | None) -> None:
        self._model, self._rules, self._keep_opset, self._watch = model, rules, keep_opset, watch
        self._tracer = None if watch is None else watch.tracer
        self._overridable = overridable_values(model)
        self._free = {dim for value in model.graph.inputs for dim in value.shape or () if isinstance(dim, Expr)}
        self._names: Names | None = None
        nodes = [node for graph in nested_graphs(model.graph) for node in graph]
        self._queue = deque(node for node in nodes if (node.domain, node.op_type) in rules.by_root)
        self._queued = set(self._queue)
        self._limit = max(_FIRINGS_AT_LEAST, _FIRINGS_PER_NODE * len(nodes))
        self._built = 0
        self._unsorted: dict[Graph, Rule] = {}
        self.fired: Counter[str] = Counter()

    def run(self) -> None:
        while self._queue:
            check_cancelled()
            node = self._queue.popleft()
            self._queued.discard(node)
            if node.graph is not None:
                self._visit(node)
        for graph, rule in self._unsorted.items():
            if graph.sort():
                raise self._blaming(rule, OptimizationError(f"rule {rule.name} made a cycle in graph {graph.name!r}"))

    def _visit(self, node: Node) -> None:
        for rule, pattern, roots in self._rules.by_root.get((node.domain, node.op_type), ()):
            for root in roots:
                if root.may_match(node):
                    break
            else:
                continue
            if self._watch is not None and rule.name in self._watch.disabled:
                continue
            if self._try(rule, pattern, node):
                return

    def _try(self, rule: Rule, pattern: Pattern, node: Node) -> bool:
        try:
            trace = None if self._tracer is None else self._tracer.trace(rule).start()
            for match in find_matches(pattern, node, self._overridable, trace):
                state = None if self._watch is None else self._watch.state(rule, self._model)
                learned = self._kept_reason(rule, match) or checked(rule, match)
                if state is not None and self._watch is not None:
                    self._watch.check_unchanged(rule, state)
                reason = learned if isinstance(learned, str) else self._fire(rule, match, learned, state)
                if reason is None:
                    return True
                event("rewrite.decline", rule=rule.name, node=node.name, reason=reason)
                if self._tracer is not None:
                    self._tracer.declined(rule, match, reason)
                if self._watch is not None and rule.name in self._watch.disabled:
                    break
        except SardonyxError as error:
            raise self._blaming(rule, located(error, f"rule {rule.name} at {place_of(node)}")) from error
        except Exception as error:
            text = f"rule {rule.name} at {place_of(node)}: {describe(error)}"
            raise self._blaming(rule, OptimizationError(text)) from error
        return False

    def _kept_reason(self, rule: Rule, match: Match) -> str | None:
        """Return why the operator that a match is about stays whole; None where it need not."""
        operator = None if rule.about is None or self._watch is None else rule.about(match)
        if operator is None or self._watch is None or not self._watch.target.allows(operator):
            return None
        return f"a provider prefers {operator.op_type}"

    def _blaming(self, rule: Rule, error: SardonyxError) -> SardonyxError:
        """Return `error`, with the rule noted as the one at fault."""
        if isinstance(error, OptimizationError):
            error.optimization = error.optimization or rule.name
        if self._watch is not None:
            self._watch.blamed = rule.name
        return error

    def _fire(self, rule: Rule, match: Match, learned: object, state: State | None) -> str | None:
        """Put the replacement in place; or the reason why not, with nothing changed."""
        if are_placed_apart(match.nodes):
            return "its nodes are placed on different providers"
        builder = Builder(match.root, self._model.opset_imports, self._fresh)
        made = rule.replace(builder, match, learned)
        if state is not None and self._watch is not None:
            self._watch.check_unchanged(rule, state)
        values = made if isinstance(made, tuple) else (made,)
        newer = [node for node in builder.nodes if self._keep_opset and self._is_too_new(node)]
        if newer:
            remove_dead(reversed(builder.nodes))
            return f"{newer[0].op_type} needs opset {newer[0].version}, which the model does not import"
        _check_replacement(match, values, builder.nodes)
        conflict = _conflict(match, values)
        if conflict is not None and not _is_own(rule):
            raise OptimizationError(conflict)
        refusal = conflict or _open_shape(match, values, self._free)
        if refusal is None and self._watch is not None:
            refusal = self._watch.refusal(rule, match, values, builder.nodes, self._model)
        if refusal is not None:
            remove_dead(reversed(builder.nodes))
            return refusal
        self._count(rule, len(builder.nodes))
        self._put_in_place(rule, match, values, builder)
        if self._watch is not None and self._watch.after_firing is not None:
            self._watch.after_firing()
        return None

    def _is_too_new(self, node: Node) -> bool:
        imported = self._model.opset_imports.get(node.domain, 1)
        is_written = self._watch is None or WRITE_OLDER.name not in self._watch.disabled
        return node.version > imported and not (is_written and has_older_name(node, imported))

    def _put_in_place(self, rule: Rule, match: Match, values: Sequence[Value], builder: Builder) -> None:
        """Make the users of what is replaced read `values`, and remove what nobody reads then."""
        inherit_metadata(match.nodes, builder.nodes)
        is_listed = self._tracer is not None or (self._watch is not None and self._watch.records)
        known = dict(zip(match.nodes, labels(match.nodes), strict=True)) if is_listed else {}
        names = [node.name for node in match.nodes]
        event("rewrite.fire", rule=rule.name, nodes=names, operators=[node.op_type for node in match.nodes])
        if len(values) > 1:
            self._unsorted.setdefault(builder.graph, rule)
        for old, new in zip(match.outputs, values, strict=True):
            if old.type is not None and new.producer in builder.nodes:
                new.type = old.type
            if new is not old:
                take_over(old, new, builder.version())
        removed_inputs = [value for node in match.nodes for value in node.inputs if value is not None]
        removed = remove_dead([*match.nodes, *reversed(builder.nodes)])
        self._touch(builder.nodes, [*values, *removed_inputs])
        if self._tracer is not None:
            self._tracer.fired(rule, known, builder.nodes)
        if self._watch is not None and self._watch.records:
            gone = [known.get(node) or labels([node])[0] for node in removed if node not in builder.nodes]
            self._watch.fired(rule, gone, labels(node for node in builder.nodes if node.graph is not None))

    def _count(self, rule: Rule, built: int) -> None:
        self.fired[rule.name] += 1
        self._built += built
        if self.fired.total() > self._limit or self._built > self._limit * _NODES_PER_FIRING:
            counts = ", ".join(f"{name} {count} times" for name, count in self.fired.most_common(3))
            raise OptimizationError(
                f"rule {self.fired.most_common(1)[0][0]} does not come to an end: {counts}; "
                f"each rule must bring the graph nearer to a form where it no longer fires"
            )

    def _fresh(self, base: str) -> str:
        if self._names is None:
            self._names = Names.of(self._model)
        return self._names.fresh(base)

    def _touch(self, nodes: Sequence[Node], values: Iterable[Value]) -> None:
        """Queue new nodes, and the users of `values` as deep as patterns reach."""
        self._enqueue(nodes)
        front = [value for value in values if value.producer is not None]
        seen: set[Node] = set()
        for _ in range(self._rules.depth):
            users = [user for value in front for user, _ in value.uses if isinstance(user, Node) and user not in seen]
            seen.update(users)
            front = [value for user in users for value in user.outputs]
        self._enqueue(seen)

    def _enqueue(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node not in self._queued and (node.domain, node.op_type) in self._rules.by_root:
                self._queued.add(node)
                self._queue.append(node)


def _check_replacement(match: Match, values: Sequence[Value], built: Sequence[Node]) -> None:
    if len(values) != len(match.outputs):
        raise OptimizationError(f"replace returned {len(values)} values for {len(match.outputs)}")
    for node in built:
        if any(value in match.outputs for value in node.inputs):
            raise OptimizationError(f"the new node {node!r} reads the value that it replaces")
    for new in values:
        if not isinstance(new, Value):
            raise OptimizationError(f"replace returned {new!r:.80}, expected a value such as op.Add(x, y) makes")


def _conflict(match: Match, values: Sequence[Value]) -> str | None:
    """Return that a replacement has another type or shape than what it replaces; None where not."""
    for old, new in zip(match.outputs, values, strict=True):
        if _conflicts(old.dtype, new.dtype):
            return f"the replacement of {old!r} has type {new.dtype}, expected {old.dtype}"
        if _differ(old, new, ()):
            return f"the replacement of {old!r} has shape {_shown(new.shape)}, expected {_shown(old.shape)}"
    return None


def _is_own(rule: Rule) -> bool:
    """Return whether a rule is sardonyx's own: what its replacement contradicts is a node whose inputs do not fit each other.

    Such a node is left to the provider, which says so; a rule of a user or a package is told that it is wrong.
    """
    return str(getattr(rule.pattern, "__module__", "")).startswith("sardonyx.optimize.")


def _open_shape(match: Match, values: Sequence[Value], free: Collection[Dim]) -> str | None:
    """Return that a replacement has the shape of what it replaces for some sizes of the inputs only, None where for all.

    Such a model is valid, as where an operator wants two inputs of one shape, which its replacement broadcasts.
    """
    for old, new in zip(match.outputs, values, strict=True):
        if _differ(old, new, free):
            return f"the replacement of {old!r} would have shape {_shown(new.shape)}, which may be other than {_shown(old.shape)}"
    return None


def _conflicts(left: DataType | None, right: DataType | None) -> bool:
    return left is not None and right is not None and left is not right


def _differ(old: Value, new: Value, free: Collection[Dim]) -> bool:
    """Return whether two values have other shapes for some sizes of the `free` symbols, whatever a model says of its outputs."""
    return _differs(old.shape, new.shape, free) and _differs(_inferred_shape(old), new.shape, free)


def _differs(left: Shape | None, right: Shape | None, free: Collection[Dim]) -> bool:
    """Return whether two shapes cannot be the same for all sizes of the `free` symbols."""
    if left is None or right is None:
        return False
    pairs = [(one, two) for one, two in zip(left, right, strict=False) if one != two]
    return len(left) != len(right) or any(_is_fixed(one, free) and _is_fixed(two, free) for one, two in pairs)


def _is_fixed(dim: Dim, free: Collection[Dim]) -> bool:
    return isinstance(dim, int) or dim in free


def _inferred_shape(value: Value) -> Shape | None:
    """Return the shape that inference finds, as what a model says of its outputs need not hold."""
    node = value.producer
    if node is None:
        return value.shape
    found = infer_node(node)[node.outputs.index(value)].type
    return found.shape if isinstance(found, TensorType) else None


def _shown(shape: Shape | None) -> str:
    return f"({', '.join(map(str, shape or ()))})"
