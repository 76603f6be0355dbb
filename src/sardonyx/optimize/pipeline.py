"""The order of passes and rules, level by level, and the run of them.

    report = optimize(model, Level.ALL, evaluate=evaluate)
    print(report)                                       which pass and which rule changed what, and how long it took

The passes of a level, its rules and the clean-up are repeated until none changes anything, `ROUNDS` times at most; what a higher
level changes goes through BASIC again.
"""

from __future__ import annotations

import dataclasses
import difflib
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from sardonyx.errors import Fail, InvalidArgument, SardonyxError, located
from sardonyx.ir import Model
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context, Evaluate, Level, Pass
from sardonyx.optimize.passes.apply_rules import ApplyRules
from sardonyx.optimize.passes.eliminate_common_subexpressions import ELIMINATE_COMMON_SUBEXPRESSIONS
from sardonyx.optimize.passes.eliminate_dead_nodes import ELIMINATE_DEAD_NODES
from sardonyx.optimize.passes.eliminate_identities import ELIMINATE_IDENTITIES
from sardonyx.optimize.passes.expand_gradients import EXPAND_GRADIENTS
from sardonyx.optimize.passes.fold_constants import FOLD_CONSTANTS
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS
from sardonyx.optimize.passes.simplify_reshapes import SIMPLIFY_RESHAPES
from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.fuse_attention import FUSE_ATTENTION
from sardonyx.optimize.rules.fuse_conv_add import FUSE_CONV_ADD
from sardonyx.optimize.rules.fuse_conv_batchnorm import FUSE_CONV_BATCHNORM
from sardonyx.optimize.rules.fuse_conv_multiply import FUSE_CONV_MULTIPLY
from sardonyx.optimize.rules.fuse_gelu import FUSE_GELU, FUSE_GELU_TANH
from sardonyx.optimize.rules.fuse_gemm_transpose import FUSE_GEMM_TRANSPOSE
from sardonyx.optimize.rules.fuse_layer_norm import FUSE_LAYER_NORM, FUSE_LAYER_NORM_BIAS
from sardonyx.optimize.rules.fuse_matmul_batchnorm import FUSE_MATMUL_BATCHNORM
from sardonyx.optimize.rules.fuse_pad import FUSE_PAD
from sardonyx.optimize.rules.fuse_relu_clip import FUSE_RELU_CLIP
from sardonyx.optimize.rules.fuse_rms_norm import FUSE_RMS_NORM
from sardonyx.optimize.rules.fuse_swish import FUSE_SWISH
from sardonyx.optimize.rules.merge_casts import MERGE_CASTS
from sardonyx.optimize.rules.merge_reshapes import MERGE_RESHAPES
from sardonyx.optimize.rules.merge_squeezes import MERGE_SQUEEZES
from sardonyx.optimize.rules.merge_transposes import MERGE_TRANSPOSES
from sardonyx.optimize.rules.merge_unsqueezes import MERGE_UNSQUEEZES
from sardonyx.optimize.rules.skip_before_shape import SKIP_BEFORE_SHAPE
from sardonyx.optimize.rules.swap_where_branches import SWAP_WHERE_BRANCHES
from sardonyx.trace import span

__all__ = ["ALWAYS", "CLEAN_UP", "PASSES", "ROUNDS", "RULES", "PassRecord", "Report", "known_names", "optimize"]

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
    ),
    Level.EXTENDED: (),
    Level.LAYOUT: (),
}
"""The passes that each level adds, in order; the level's rules are applied after them."""

CLEAN_UP: tuple[Pass, ...] = (ELIMINATE_DEAD_NODES,)
"""What runs after the rules of each level from BASIC on."""

RULES: dict[Level, tuple[Rule, ...]] = {
    Level.BASIC: (
        FUSE_CONV_BATCHNORM,
        FUSE_CONV_MULTIPLY,
        FUSE_CONV_ADD,
        FUSE_MATMUL_BATCHNORM,
        FUSE_PAD,
        FUSE_RELU_CLIP,
        FUSE_GEMM_TRANSPOSE,
        MERGE_TRANSPOSES,
        MERGE_RESHAPES,
        MERGE_SQUEEZES,
        MERGE_UNSQUEEZES,
        MERGE_CASTS,
        SWAP_WHERE_BRANCHES,
        SKIP_BEFORE_SHAPE,
    ),
    Level.EXTENDED: (
        FUSE_LAYER_NORM,
        FUSE_LAYER_NORM_BIAS,
        FUSE_RMS_NORM,
        FUSE_GELU,
        FUSE_GELU_TANH,
        FUSE_SWISH,
        FUSE_ATTENTION,
    ),
    Level.LAYOUT: (),
}
"""The rules that each level adds, in the order in which they are tried at one node."""


@dataclasses.dataclass(slots=True)
class PassRecord:
    """What one pass did."""

    name: str
    """The pass."""
    runs: int = 0
    """How often it ran."""
    changes: int = 0
    """How many of the runs changed something."""
    seconds: float = 0.0
    """How long the runs took together."""


@dataclasses.dataclass(slots=True)
class Report:
    """What an optimization did."""

    level: Level
    """How far it went."""
    nodes_before: int = 0
    """Nodes of the main graph at the start."""
    nodes_after: int = 0
    """Nodes of the main graph at the end."""
    passes: dict[str, PassRecord] = dataclasses.field(default_factory=dict)
    """What each pass did, by name, in the order of the first runs."""
    fired: Counter[str] = dataclasses.field(default_factory=Counter)
    """How often each rule fired."""
    seconds: float = 0.0
    """How long it took."""

    def __str__(self) -> str:
        lines = [f"{self.level.name}: {self.nodes_before} -> {self.nodes_after} nodes in {self.seconds * 1e3:.1f} ms"]
        lines += [
            f"  {record.name}: changed in {record.changes} of {record.runs} runs, {record.seconds * 1e3:.1f} ms"
            for record in self.passes.values()
        ]
        lines += [f"  {name}: fired {count} times" for name, count in self.fired.most_common()]
        return "\n".join(lines)


def known_names() -> list[str]:
    """The names of all passes and rules that may be disabled, sorted."""
    passes = [item.name for items in (*PASSES.values(), CLEAN_UP) for item in items]
    rules = [rule.name for level in RULES.values() for rule in level]
    return sorted([*passes, *rules])


def optimize(model: Model, level: Level | int, *, evaluate: Evaluate | None, disabled: Collection[str] = frozenset(),
             extra_rules: Sequence[Rule] = (), extra_passes: Sequence[Pass] = (), keep_opset: bool = False,
             check: bool = False) -> Report:  # fmt: skip
    """Optimize `model` in place.

    Args:
        model: what to optimize; its interface stays.
        level: how far to go; what is no level counts as the next lower one.
        evaluate: computes nodes for constant folding; None folds only what shape inference knows.
        disabled: names of passes and rules to leave out.
        extra_rules: rules to try after those of their level.
        extra_passes: passes to run after those of BASIC, at every level from BASIC on.
        keep_opset: use no operator that is newer than the opsets that the model imports, so that it can be saved.
        check: verify the model after each pass, to find the pass that breaks it.

    Returns:
        What was done.

    Raises:
        InvalidArgument: `disabled` has a name that no pass or rule has.
        InvalidGraph: the model is invalid: types that contradict one another, a recursion of functions.
        Fail: a pass or rule raised another error, or (with `check`) left an invalid model; the message names it.
    """
    _check_names(disabled, [*(rule.name for rule in extra_rules), *(item.name for item in extra_passes)])
    run = _Run(model, Context(evaluate), Report(_level(level), len(model.graph)), check)
    start = time.perf_counter()
    with span("optimize", model=model.label, level=run.report.level.name):
        run.once(ALWAYS)
        choice = _Choice(disabled, extra_rules, extra_passes, keep_opset, run.report.fired)
        basic = choice.stage(Level.BASIC)
        if run.report.level >= Level.BASIC:
            run.until_stable(basic)
        for stage in (Level.EXTENDED, Level.LAYOUT):
            if run.report.level >= stage and run.until_stable(choice.stage(stage)):
                run.until_stable(basic)
    run.report.seconds = time.perf_counter() - start
    run.report.nodes_after = len(model.graph)
    return run.report


def _level(level: int) -> Level:
    return max(item for item in Level if item <= max(level, 0))


def _check_names(disabled: Collection[str], extra: Iterable[str]) -> None:
    known = sorted({*known_names(), *extra})
    for name in disabled:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InvalidArgument(f"no pass or rule is named {name!r}{hint} Known are {', '.join(known)}")


@dataclasses.dataclass(frozen=True, slots=True)
class _Choice:
    """What takes part beside the lists of the levels, and what does not."""

    disabled: Collection[str]
    extra_rules: Sequence[Rule]
    extra_passes: Sequence[Pass]
    keep_opset: bool
    fired: Counter[str]

    def stage(self, level: Level) -> list[Pass]:
        """The passes of one level, its rules and the clean-up; empty where the level has none of its own."""
        own = [*RULES[level], *(rule for rule in self.extra_rules if rule.level is level)]
        rules = [rule for rule in own if rule.name not in self.disabled]
        passes = [*PASSES[level], *(self.extra_passes if level is Level.BASIC else ())]
        if not (rules or passes):
            return []
        applied = ApplyRules(rules, self.fired, keep_opset=self.keep_opset)
        return [item for item in (*passes, applied, *CLEAN_UP) if item.name not in self.disabled]


class _Run:
    """One optimization: the model, what the passes share, and the report."""

    def __init__(self, model: Model, context: Context, report: Report, check: bool) -> None:
        self._model, self._context, self.report, self._check = model, context, report, check

    def until_stable(self, passes: Sequence[Pass]) -> bool:
        """Repeat the passes, and shape inference after a round that changed something; whether any did."""
        for count in range(ROUNDS if passes else 0):
            if not self.once(passes):
                return count > 0
            self.once((INFER_SHAPES,))
        return bool(passes)

    def once(self, passes: Sequence[Pass]) -> bool:
        changed = False
        for item in passes:
            changed |= self._run(item)
        return changed

    def _run(self, item: Pass) -> bool:
        record = self.report.passes.setdefault(item.name, PassRecord(item.name))
        start = time.perf_counter()
        try:
            with span("optimize.pass", optimization=item.name):
                changed = item.run(self._model, self._context)
            if self._check:
                verify(self._model)
        except SardonyxError as error:
            raise located(error, f"optimization {item.name}") from error
        except Exception as error:
            raise Fail(f"optimization {item.name} failed: {type(error).__name__}: {error}; disable it by its name") from error
        record.runs += 1
        record.changes += changed
        record.seconds += time.perf_counter() - start
        return changed
