"""The order of passes and rules, level by level, and the run of them.

    report = optimize(model, Level.ALL, evaluate=evaluate)
    print(report)                                       which pass and which rule changed what, and how long it took

The passes of a level, its rules and the clean-up are repeated until none changes anything, `ROUNDS` times at most; what a higher
level changes goes through BASIC again. At the end come the rules of `LATE_FUSIONS` and the passes of `LAST`, once.
"""

from __future__ import annotations

import difflib
import functools
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Model
from sardonyx.optimize.contract import Context, Evaluate, Level, Pass, RunModel
from sardonyx.optimize.fusion_tracer import FusionTracer
from sardonyx.optimize.guard import Guard
from sardonyx.optimize.passes.apply_rules import ApplyRules
from sardonyx.optimize.passes.copy_dequantization import COPY_DEQUANTIZATION
from sardonyx.optimize.passes.eliminate_common_subexpressions import ELIMINATE_COMMON_SUBEXPRESSIONS
from sardonyx.optimize.passes.eliminate_dead_nodes import ELIMINATE_DEAD_NODES
from sardonyx.optimize.passes.eliminate_identities import ELIMINATE_IDENTITIES
from sardonyx.optimize.passes.expand_gradients import EXPAND_GRADIENTS
from sardonyx.optimize.passes.fold_constants import FOLD_CONSTANTS
from sardonyx.optimize.passes.fold_dequantization import FOLD_DEQUANTIZATION, FOLD_REMAINING_DEQUANTIZATION
from sardonyx.optimize.passes.fuse_nbits_mlp import FUSE_NBITS_MLP
from sardonyx.optimize.passes.fuse_nbits_qkv import FUSE_NBITS_QKV
from sardonyx.optimize.passes.fuse_query_norm import FUSE_QUERY_NORM
from sardonyx.optimize.passes.fuse_query_rotation import FUSE_QUERY_ROTATION
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS
from sardonyx.optimize.passes.move_transposes import MOVE_TRANSPOSES
from sardonyx.optimize.passes.override_dimensions import OverrideDimensions
from sardonyx.optimize.passes.pack_query_projections import PACK_QUERY_PROJECTIONS
from sardonyx.optimize.passes.pick_past_rows import PICK_PAST_ROWS
from sardonyx.optimize.passes.rank_next_tokens import RANK_NEXT_TOKENS
from sardonyx.optimize.passes.score_last_place import SCORE_LAST_PLACE
from sardonyx.optimize.passes.simplify_reshapes import SIMPLIFY_RESHAPES
from sardonyx.optimize.passes.split_parts import SPLIT_PARTS
from sardonyx.optimize.passes.store_weights_as_uint8 import STORE_WEIGHTS_AS_UINT8
from sardonyx.optimize.passes.write_older import WRITE_OLDER
from sardonyx.optimize.report import Report
from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules import activation, attention, conv, elementwise, hybrid, matmul, ml, movement, normalize, quantize
from sardonyx.optimize.target import Target, exclusion_reason
from sardonyx.optimize.watch import Watch
from sardonyx.trace import event, span

__all__ = [
    "ABOVE_BASIC",
    "ALWAYS",
    "CLEAN_UP",
    "DECOMPOSITIONS",
    "LAST",
    "LATE_FUSIONS",
    "PASSES",
    "ROUNDS",
    "RULES",
    "check_names",
    "known_items",
    "known_names",
    "optimize",
]

ROUNDS = 10
"""How often the passes of one level are repeated at most."""

ALWAYS: tuple[Pass, ...] = (INLINE_FUNCTIONS, EXPAND_GRADIENTS, INFER_SHAPES)
"""What runs at every level, DISABLE included, since the stages that follow count on it."""

PASSES: dict[Level, tuple[Pass, ...]] = {
    Level.BASIC: (
        FOLD_CONSTANTS,
        ELIMINATE_IDENTITIES,
        SIMPLIFY_RESHAPES,
        ELIMINATE_COMMON_SUBEXPRESSIONS,
        SPLIT_PARTS,
        SCORE_LAST_PLACE,
        RANK_NEXT_TOKENS,
        PICK_PAST_ROWS,
    ),
    Level.EXTENDED: (FOLD_DEQUANTIZATION, STORE_WEIGHTS_AS_UINT8),
    Level.LAYOUT: (MOVE_TRANSPOSES,),
}
"""The passes that each level adds, in order; the level's rules are applied after them."""

CLEAN_UP: tuple[Pass, ...] = (ELIMINATE_DEAD_NODES,)
"""What runs after the rules of each level from BASIC on."""

DECOMPOSITIONS: tuple[Rule, ...] = (
    *attention.DECOMPOSITIONS,
    *normalize.DECOMPOSITIONS,
    *matmul.DECOMPOSITIONS,
    *activation.DECOMPOSITIONS,
    *elementwise.DECOMPOSITIONS,
    *movement.DECOMPOSITIONS,
    *quantize.DECOMPOSITIONS,
    *ml.DECOMPOSITIONS,
    *hybrid.DECOMPOSITIONS,
)
"""Rules that take operators apart, before all others of level BASIC."""

RULES: dict[Level, tuple[Rule, ...]] = {
    Level.BASIC: (
        *DECOMPOSITIONS,
        *conv.BASIC,
        *matmul.BASIC,
        *activation.BASIC,
        *elementwise.BASIC,
        *movement.BASIC,
        *quantize.BASIC,
    ),
    Level.EXTENDED: (
        *normalize.EXTENDED,
        *activation.EXTENDED,
        *conv.EXTENDED,
        *attention.EXTENDED,
        *quantize.EXTENDED,
    ),
    Level.LAYOUT: (),
}
"""The rules that each level adds, in the order in which they are tried at one node."""

LATE_FUSIONS: dict[Level, tuple[Rule, ...]] = {
    Level.EXTENDED: (
        *conv.LATE_FUSIONS,
        *matmul.LATE_FUSIONS,
        *attention.LATE_FUSIONS,
        *activation.LATE_FUSIONS,
        *normalize.LATE_FUSIONS,
        *quantize.LATE_FUSIONS,
    ),
    Level.LAYOUT: conv.LATE_LAYOUT_FUSIONS,
}
"""Rules that make one operator of what the other rules keep apart, and would take apart again: applied once all else is done."""

LAST: dict[Level, tuple[Pass, ...]] = {
    Level.BASIC: (COPY_DEQUANTIZATION,),
    Level.EXTENDED: (
        FOLD_REMAINING_DEQUANTIZATION,
        FUSE_QUERY_ROTATION,
        FUSE_QUERY_NORM,
        FUSE_NBITS_MLP,
        FUSE_NBITS_QKV,
        PACK_QUERY_PROJECTIONS,
    ),
}
"""Passes that others would undo, by the level from which on they run: after the rules of `LATE_FUSIONS`."""


ABOVE_BASIC = frozenset(
    "merge_reshapes drop_ones_before_reshape drop_ones_after_reshape merge_squeezes merge_unsqueezes move_unsqueeze "
    "skip_before_shape skip_transpose_before_shape skip_reshapes_around_transpose skip_reshapes_around_matmul drop_expand".split()
)
"""Rules of BASIC that a model which goes no further is spared: tools look for the patterns that exporters write, such as two
Unsqueeze in a row before an attention mask, in what onnxruntime saves at that level."""


_ANY_SESSION = Target()
_NO_ENTRIES: Mapping[str, str] = MappingProxyType({})


def known_items() -> list[Pass | Rule]:
    """Return all passes and rules that may be disabled, but for `override_dimensions`, which depends on the session."""
    passes = [item for items in (*PASSES.values(), CLEAN_UP, *LAST.values(), [WRITE_OLDER]) for item in items]
    rules = [rule for levels in (RULES, LATE_FUSIONS) for level in levels.values() for rule in level]
    return [*passes, *rules]


def known_names() -> list[str]:
    """Return the names of all passes and rules that may be disabled, sorted."""
    return sorted([OverrideDimensions.name, *(item.name for item in known_items())])


def optimize(
    model: Model,
    level: Level | int,
    *,
    evaluate: Evaluate | None,
    target: Target = _ANY_SESSION,
    entries: Mapping[str, str] = _NO_ENTRIES,
    disabled: Collection[str] = frozenset(),
    extra_rules: Sequence[Rule] = (),
    extra_passes: Sequence[Pass] = (),
    check: bool = False,
    verify: RunModel | None = None,
    verifies_passes: bool = True,
    continue_on_error: bool = False,
    records: bool = False,
    loops: int = 1,
    fold_seconds: float | None = None,
    fold_bytes: int | None = None,
    tracer: FusionTracer | None = None,
) -> Report:
    """Optimize `model` in place.

    Args:
        model: what to optimize; its interface stays.
        level: how far to go; what is no level counts as the next lower one.
        evaluate: computes nodes for constant folding; None folds only what shape inference knows.
        target: where the model goes, by which rules and passes take part or not.
        entries: session config entries, some of which ask for rules and passes, or leave them out.
        disabled: names of passes and rules to leave out.
        extra_rules: rules to try after those of their level.
        extra_passes: passes to run after those of their `level`, BASIC where they have none.
        check: verify the model after each pass, to find the pass that breaks it; done anyway where there are extra ones.
        verify: computes a model; with it each rewrite is compared on random inputs with what it replaces, and each pass on the
            whole model. What changes results is undone, left out and reported, with a model that shows it.
        verifies_passes: whether passes are compared too; for large models that takes as long as running them.
        continue_on_error: whether to go on without a rule or pass that raises or leaves an invalid model; it is reported.
        records: whether the report lists every change.
        loops: 0 never goes through BASIC again after a higher level, 1 does where that changed something, 2 repeats the higher
            levels too.
        fold_seconds: for how much processor time folding may evaluate; `LIMITS.fold_seconds` by default.
        fold_bytes: the largest constant that folding may make; by default `LIMITS.fold_bytes`, and `LIMITS.fold_in_place_bytes`
            for arithmetic that makes no more than it reads.
        tracer: follows the rules that match around one node.

    Returns:
        What was done.

    Raises:
        InvalidArgument: `disabled` has a name that no pass or rule has.
        InvalidGraph: the model is invalid: types that contradict one another, a recursion of functions.
        OptimizationError: a pass or rule raised another error, or left an invalid model; the message names it.
    """
    check_names(disabled, [*(rule.name for rule in extra_rules), *(item.name for item in extra_passes)])
    context = Context(evaluate)
    context.fold_seconds = context.fold_seconds if fold_seconds is None else fold_seconds
    if fold_bytes is not None:
        context.fold_bytes = context.fold_in_place_bytes = fold_bytes
    report = Report(_level(level), len(model.graph))
    context.keeps_patterns = report.level is Level.BASIC
    spared = dict.fromkeys(_spared(target), "level BASIC alone keeps its pattern") if context.keeps_patterns else {}
    extra = _reasons([*extra_rules, *extra_passes], target, entries)
    absent = {**spared, **_absent(target, frozenset(entries.items())), **extra}
    watch = Watch(report, {*disabled, *absent}, verify, records=records, verifies_passes=verifies_passes)
    watch.tracer, watch.target = tracer, target
    watch.suspects = frozenset(rule.name for rule in extra_rules)
    has_extra = bool(extra_rules or extra_passes)
    start = time.perf_counter()
    with span("optimize", model=model.label, level=report.level.name):
        first = Guard(model, context, watch, is_guarded=False, continue_on_error=False, checks=check)
        for item in ALWAYS:
            first.run(item)
        if tracer is not None:
            tracer.begin(model)
        guard = Guard(
            model, context, watch, is_guarded=has_extra or verify is not None, continue_on_error=continue_on_error, checks=check
        )
        choice = _Choice(watch, extra_rules, extra_passes, target.keeps_opset)
        if report.level >= Level.BASIC:
            _until_stable(guard, choice.stage(Level.BASIC))
        for _ in range(ROUNDS if loops > 1 else 1):
            if not _higher_levels(guard, choice, report.level, loops):
                break
        _until_stable(guard, choice.last_stage(report.level))
        if tracer is not None:
            rules = [item for item in known_items() if isinstance(item, Rule)]
            tracer.finish(model, [(rule, reason) for rule in rules if (reason := _absence(rule, report.level, disabled, absent))])
    report.seconds = time.perf_counter() - start
    report.nodes_after = len(model.graph)
    return report


@functools.lru_cache(maxsize=8)
def _absent(target: Target, entries: frozenset[tuple[str, str]]) -> Mapping[str, str]:
    """Return why known passes and rules take no part, by their names; sessions of one kind ask the same."""
    return MappingProxyType(_reasons(known_items(), target, dict(entries)))


def _reasons(items: Iterable[Pass | Rule], target: Target, entries: Mapping[str, str]) -> dict[str, str]:
    return {item.name: reason for item in items if (reason := exclusion_reason(item, target, entries)) is not None}


def _spared(target: Target) -> frozenset[str]:
    """Return the rules that a model of level BASIC alone is spared: in a file also those that take operators apart."""
    return ABOVE_BASIC | {rule.name for rule in DECOMPOSITIONS} if target.keeps_opset else ABOVE_BASIC


def _absence(rule: Rule, level: Level, disabled: Collection[str], absent: Mapping[str, str]) -> str | None:
    """Return why a rule was not tried; None where it was."""
    if rule.name in disabled:
        return "it is disabled by its name"
    if rule.level > level:
        return f"it is of level {rule.level.name}, and the model is optimized to {level.name}"
    return absent.get(rule.name)


def _higher_levels(guard: Guard, choice: _Choice, level: Level, loops: int) -> bool:
    """Run the levels above BASIC, and BASIC again after each that changed something; whether any did."""
    any_changed = False
    for stage in (Level.EXTENDED, Level.LAYOUT):
        if level >= stage and _until_stable(guard, choice.stage(stage)):
            any_changed = True
            if loops > 0:
                _until_stable(guard, choice.stage(Level.BASIC))
    return any_changed


def _until_stable(guard: Guard, passes: Sequence[Pass]) -> bool:
    """Repeat the passes, and shape inference after a round that changed something; whether any did."""
    for count in range(ROUNDS if passes else 0):
        event("optimize.round", round=count + 1, passes=len(passes))
        changed = [guard.run(item) for item in passes]
        if True not in changed:
            return count > 0
        guard.run(INFER_SHAPES)
    return bool(passes)


def _level(level: int) -> Level:
    return max(item for item in Level if item <= max(level, 0))


def check_names(disabled: Collection[str], extra: Iterable[str]) -> None:
    """Raise InvalidArgument where a name is none of a pass or rule, of ours or of `extra` ones."""
    known = sorted({*known_names(), *extra})
    for name in disabled:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}? docs/optimizer.md lists them all" if close else f"known are {', '.join(known)}"
            raise InvalidArgument(f"no pass or rule is named {name!r}; {hint}")


@dataclasses.dataclass(frozen=True, slots=True)
class _Choice:
    """What takes part beside the lists of the levels, and what does not."""

    watch: Watch
    extra_rules: Sequence[Rule]
    extra_passes: Sequence[Pass]
    keep_opset: bool

    def stage(self, level: Level) -> list[Pass]:
        """Return the passes of one level, its rules and the clean-up; empty where the level has none of its own."""
        own = [*RULES[level], *(rule for rule in self.extra_rules if rule.level is level)]
        rules = [rule for rule in own if rule.name not in self.watch.disabled]
        passes = [*PASSES[level], *(item for item in self.extra_passes if getattr(item, "level", Level.BASIC) == level)]
        if not (rules or passes):
            return []
        return self._items(passes, rules)

    def last_stage(self, level: Level) -> list[Pass]:
        """Return the rules that join what others keep apart, the clean-up, the last passes, and for a file older names."""
        rules = [rule for least, joins in LATE_FUSIONS.items() if level >= least for rule in joins]
        chosen = [rule for rule in rules if rule.name not in self.watch.disabled]
        last = [item for least, passes in LAST.items() if level >= least for item in passes]
        last += [WRITE_OLDER] if self.keep_opset else []
        return [*(self._items([], chosen) if chosen else []), *(item for item in last if item.name not in self.watch.disabled)]

    def _items(self, passes: Sequence[Pass], rules: Sequence[Rule]) -> list[Pass]:
        applied = ApplyRules(rules, self.watch.report.fired, keep_opset=self.keep_opset, watch=self.watch)
        return [item for item in (*passes, applied, *CLEAN_UP) if item.name not in self.watch.disabled]
