"""The order of passes and rules, level by level, and the run of them.

    report = optimize(model, Level.ALL, evaluate=evaluate)
    print(report)                                       which pass and which rule changed what, and how long it took

The passes of a level, its rules and the clean-up are repeated until none changes anything, `ROUNDS` times at most; what a higher
level changes goes through BASIC again. At the end come the rules of `JOINS` and the passes of `LAST`, once.
"""

from __future__ import annotations

import dataclasses
import difflib
import time
from collections.abc import Collection, Iterable, Sequence

from sardonyx.errors import InvalidArgument
from sardonyx.ir import Model
from sardonyx.optimize.contract import Context, Evaluate, Level, Pass, RunModel
from sardonyx.optimize.guard import Guard
from sardonyx.optimize.participation import OPTIONAL
from sardonyx.optimize.passes.apply_rules import ApplyRules
from sardonyx.optimize.passes.copy_dequantization import COPY_DEQUANTIZATION
from sardonyx.optimize.passes.eliminate_common_subexpressions import ELIMINATE_COMMON_SUBEXPRESSIONS
from sardonyx.optimize.passes.eliminate_dead_nodes import ELIMINATE_DEAD_NODES
from sardonyx.optimize.passes.eliminate_identities import ELIMINATE_IDENTITIES
from sardonyx.optimize.passes.expand_gradients import EXPAND_GRADIENTS
from sardonyx.optimize.passes.fold_constants import FOLD_CONSTANTS
from sardonyx.optimize.passes.fold_dequantization import FOLD_DEQUANTIZATION
from sardonyx.optimize.passes.fuse_nbits_mlp import FUSE_NBITS_MLP
from sardonyx.optimize.passes.fuse_nbits_qkv import FUSE_NBITS_QKV
from sardonyx.optimize.passes.fuse_query_norm import FUSE_QUERY_NORM
from sardonyx.optimize.passes.fuse_query_rotation import FUSE_QUERY_ROTATION
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS
from sardonyx.optimize.passes.move_transposes import MOVE_TRANSPOSES
from sardonyx.optimize.passes.override_dimensions import OverrideDimensions
from sardonyx.optimize.passes.pack_query_projections import PACK_QUERY_PROJECTIONS
from sardonyx.optimize.passes.simplify_reshapes import SIMPLIFY_RESHAPES
from sardonyx.optimize.passes.split_parts import SPLIT_PARTS
from sardonyx.optimize.passes.store_weights_as_uint8 import STORE_WEIGHTS_AS_UINT8
from sardonyx.optimize.passes.write_older import WRITE_OLDER
from sardonyx.optimize.report import Report
from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.approximate_gelu import APPROXIMATE_GELU
from sardonyx.optimize.rules.decompose_stft import DECOMPOSE_STFT
from sardonyx.optimize.rules.defer_scales import DEFER_SCALES
from sardonyx.optimize.rules.drop_clip_before_quantization import DROP_CLIP_BEFORE_QUANTIZATION, DROP_RELU_BEFORE_QUANTIZATION
from sardonyx.optimize.rules.drop_dequantization_before_argmax import DROP_DEQUANTIZATION_BEFORE_ARGMAX
from sardonyx.optimize.rules.drop_expand import DROP_EXPAND
from sardonyx.optimize.rules.drop_ones import DROP_ONES_AFTER_RESHAPE, DROP_ONES_BEFORE_RESHAPE
from sardonyx.optimize.rules.drop_quantization_pairs import DROP_QUANTIZATION_PAIRS
from sardonyx.optimize.rules.drop_slice_of_concat import DROP_SLICE_OF_CONCAT
from sardonyx.optimize.rules.expand_attention import EXPAND_ATTENTION
from sardonyx.optimize.rules.expand_bias_softmax import EXPAND_BIAS_SOFTMAX
from sardonyx.optimize.rules.expand_dynamic_quantization import EXPAND_DYNAMIC_QUANTIZATION
from sardonyx.optimize.rules.expand_einsum import EXPAND_EINSUM
from sardonyx.optimize.rules.expand_embedding import EXPAND_EMBEDDING, EXPAND_EMBEDDING_MASK
from sardonyx.optimize.rules.expand_fused_products import EXPAND_FUSED_PRODUCTS
from sardonyx.optimize.rules.expand_gelus import EXPAND_GELUS
from sardonyx.optimize.rules.expand_multi_head_attention import EXPAND_MULTI_HEAD_ATTENTION, EXPAND_MULTI_HEAD_ATTENTION_CACHE
from sardonyx.optimize.rules.expand_nbits_projections import (
    EXPAND_NBITS_MLP,
    EXPAND_NBITS_MLP_SUM,
    EXPAND_NBITS_QKV,
    EXPAND_NBITS_QKV_SUM,
)
from sardonyx.optimize.rules.expand_quantized import EXPAND_QUANTIZED
from sardonyx.optimize.rules.expand_rotary_embedding import EXPAND_ROTARY_EMBEDDING
from sardonyx.optimize.rules.expand_skip_normalization import (
    EXPAND_SKIP_LAYER_NORM_SUM,
    EXPAND_SKIP_NORMALIZATION,
    EXPAND_SKIP_RMS_NORM_SUM,
)
from sardonyx.optimize.rules.fuse_attention import FUSE_ATTENTION
from sardonyx.optimize.rules.fuse_attention_cache import FUSE_ATTENTION_CACHE
from sardonyx.optimize.rules.fuse_attention_groups import FUSE_ATTENTION_GROUPS
from sardonyx.optimize.rules.fuse_attention_projections import FUSE_ATTENTION_PROJECTIONS
from sardonyx.optimize.rules.fuse_attention_scale import FUSE_ATTENTION_SCALE, FUSE_ATTENTION_SCALE_CACHE
from sardonyx.optimize.rules.fuse_bias_gelu import FUSE_BIAS_GELU
from sardonyx.optimize.rules.fuse_bias_softmax import FUSE_BIAS_SOFTMAX
from sardonyx.optimize.rules.fuse_conv_activation import FUSE_CONV_ACTIVATION
from sardonyx.optimize.rules.fuse_conv_add import FUSE_CONV_ADD
from sardonyx.optimize.rules.fuse_conv_batchnorm import FUSE_CONV_BATCHNORM
from sardonyx.optimize.rules.fuse_conv_multiply import FUSE_CONV_MULTIPLY
from sardonyx.optimize.rules.fuse_conv_sum import FUSE_CONV_SUM
from sardonyx.optimize.rules.fuse_divide_multiply import FUSE_DIVIDE_MULTIPLY
from sardonyx.optimize.rules.fuse_dynamic_quantize_matmul import FUSE_DYNAMIC_QUANTIZE_MATMUL
from sardonyx.optimize.rules.fuse_embedding import FUSE_EMBEDDING
from sardonyx.optimize.rules.fuse_gather_range import FUSE_GATHER_RANGE
from sardonyx.optimize.rules.fuse_gelu import FUSE_GELU, FUSE_GELU_TANH
from sardonyx.optimize.rules.fuse_gemm_activation import FUSE_GEMM_ACTIVATION
from sardonyx.optimize.rules.fuse_gemm_transpose import FUSE_GEMM_TRANSPOSE
from sardonyx.optimize.rules.fuse_group_norm import FUSE_GROUP_NORM, FUSE_GROUP_NORM_BIAS, FUSE_GROUP_NORM_SCALE
from sardonyx.optimize.rules.fuse_hard_swish import FUSE_HARD_SWISH
from sardonyx.optimize.rules.fuse_label_encoders import FUSE_LABEL_ENCODERS
from sardonyx.optimize.rules.fuse_layer_norm import (
    FUSE_LAYER_NORM,
    FUSE_LAYER_NORM_AFFINE,
    FUSE_LAYER_NORM_BIAS,
    FUSE_LAYER_NORM_SCALE,
    FUSE_LAYER_NORM_UNSCALED,
)
from sardonyx.optimize.rules.fuse_layer_norm_statistics import FUSE_LAYER_NORM_STATISTICS
from sardonyx.optimize.rules.fuse_matmul_activation import FUSE_MATMUL_ACTIVATION
from sardonyx.optimize.rules.fuse_matmul_add import FUSE_MATMUL_ADD
from sardonyx.optimize.rules.fuse_matmul_batchnorm import FUSE_MATMUL_BATCHNORM
from sardonyx.optimize.rules.fuse_matmul_integer import FUSE_MATMUL_INTEGER, FUSE_MATMUL_INTEGER_BIAS
from sardonyx.optimize.rules.fuse_matmul_multiply import FOLD_GEMM_SCALES, FUSE_MATMUL_MULTIPLY
from sardonyx.optimize.rules.fuse_matmul_transpose import FUSE_MATMUL_SCALE, FUSE_MATMUL_TRANSPOSE
from sardonyx.optimize.rules.fuse_mish import FUSE_MISH
from sardonyx.optimize.rules.fuse_nbits_bias import FUSE_NBITS_BIAS
from sardonyx.optimize.rules.fuse_nbits_matmul import FUSE_NBITS_MATMUL
from sardonyx.optimize.rules.fuse_pad import FUSE_PAD
from sardonyx.optimize.rules.fuse_parallel_convs import FUSE_PARALLEL_CONVS, FUSE_PARALLEL_NORMALIZATION
from sardonyx.optimize.rules.fuse_partial_rotary_embedding import FUSE_PARTIAL_ROTARY_EMBEDDING
from sardonyx.optimize.rules.fuse_pool_flatten import FUSE_POOL_FLATTEN
from sardonyx.optimize.rules.fuse_quantized_concat import FUSE_QUANTIZED_CONCAT
from sardonyx.optimize.rules.fuse_quantized_conv import FUSE_QUANTIZED_CONV
from sardonyx.optimize.rules.fuse_quantized_elementwise import FUSE_QUANTIZED_BINARY, FUSE_QUANTIZED_UNARY
from sardonyx.optimize.rules.fuse_quantized_gemm import FUSE_QUANTIZED_GEMM, FUSE_QUANTIZED_GEMM_TO_FLOAT
from sardonyx.optimize.rules.fuse_quantized_matmul import FUSE_QUANTIZED_MATMUL, FUSE_QUANTIZED_MATMUL_TO_FLOAT
from sardonyx.optimize.rules.fuse_quantized_where import FUSE_QUANTIZED_WHERE, QUANTIZE_WHERE_SCALAR
from sardonyx.optimize.rules.fuse_relu_clip import FUSE_RELU_CLIP
from sardonyx.optimize.rules.fuse_rms_norm import FUSE_RMS_NORM, FUSE_RMS_NORM_UNSCALED
from sardonyx.optimize.rules.fuse_rotary_embedding import FUSE_ROTARY_EMBEDDING, FUSE_ROTARY_PAIRS
from sardonyx.optimize.rules.fuse_select import FUSE_SELECT
from sardonyx.optimize.rules.fuse_skip_normalization import (
    FUSE_SKIP_NORMALIZATION,
    FUSE_SKIP_NORMALIZATION_BIASED_SUM,
    FUSE_SKIP_NORMALIZATION_SUM,
)
from sardonyx.optimize.rules.fuse_space_to_depth import FUSE_CONV_GATHER, FUSE_SPACE_TO_DEPTH
from sardonyx.optimize.rules.fuse_swish import FUSE_SWISH
from sardonyx.optimize.rules.gather_before_dequantization import GATHER_BEFORE_DEQUANTIZATION
from sardonyx.optimize.rules.merge_casts import MERGE_CASTS
from sardonyx.optimize.rules.merge_quantizations import MERGE_QUANTIZATIONS
from sardonyx.optimize.rules.merge_reshapes import MERGE_RESHAPES
from sardonyx.optimize.rules.merge_slices import MERGE_SLICES
from sardonyx.optimize.rules.merge_squeezes import MERGE_SQUEEZES
from sardonyx.optimize.rules.merge_transposes import MERGE_TRANSPOSES
from sardonyx.optimize.rules.merge_unsqueezes import MERGE_UNSQUEEZES
from sardonyx.optimize.rules.move_unsqueeze import MOVE_UNSQUEEZE
from sardonyx.optimize.rules.pack_attention_heads import PACK_ATTENTION_HEADS
from sardonyx.optimize.rules.pack_transposed_heads import PACK_TRANSPOSED_HEADS, PACK_TRANSPOSED_HEADS_CACHE
from sardonyx.optimize.rules.pool_before_quantization import DEQUANTIZE_BEFORE_POOL, POOL_BEFORE_QUANTIZATION
from sardonyx.optimize.rules.propagate_quantization import PROPAGATE_DEQUANTIZATION, PROPAGATE_QUANTIZATION
from sardonyx.optimize.rules.quantize_as_uint8 import QUANTIZE_AS_UINT8
from sardonyx.optimize.rules.quantize_weights import QUANTIZE_BIAS, QUANTIZE_WEIGHTS
from sardonyx.optimize.rules.shorten_cast_chains import SHORTEN_CAST_CHAINS
from sardonyx.optimize.rules.skip_before_shape import SKIP_BEFORE_SHAPE, SKIP_TRANSPOSE_BEFORE_SHAPE
from sardonyx.optimize.rules.skip_requantization import SKIP_REQUANTIZATION, SKIP_REQUANTIZATION_OF_MOVES
from sardonyx.optimize.rules.skip_reshapes_around_matmul import SKIP_RESHAPES_AROUND_MATMUL
from sardonyx.optimize.rules.skip_reshapes_around_transpose import SKIP_RESHAPES_AROUND_TRANSPOSE
from sardonyx.optimize.rules.swap_where_branches import SWAP_WHERE_BRANCHES
from sardonyx.optimize.rules.turn_vector_product import TURN_VECTOR_PRODUCT
from sardonyx.optimize.watch import Watch
from sardonyx.trace import span

__all__ = ["ALWAYS", "CLEAN_UP", "JOINS", "LAST", "PASSES", "ROUNDS", "RULES", "known_names", "optimize"]

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
    ),
    Level.EXTENDED: (FOLD_DEQUANTIZATION, STORE_WEIGHTS_AS_UINT8),
    Level.LAYOUT: (MOVE_TRANSPOSES,),
}
"""The passes that each level adds, in order; the level's rules are applied after them."""

CLEAN_UP: tuple[Pass, ...] = (ELIMINATE_DEAD_NODES,)
"""What runs after the rules of each level from BASIC on."""

RULES: dict[Level, tuple[Rule, ...]] = {
    Level.BASIC: (
        EXPAND_ATTENTION,
        EXPAND_BIAS_SOFTMAX,
        EXPAND_EMBEDDING,
        EXPAND_EMBEDDING_MASK,
        EXPAND_FUSED_PRODUCTS,
        EXPAND_EINSUM,
        EXPAND_GELUS,
        EXPAND_MULTI_HEAD_ATTENTION,
        EXPAND_MULTI_HEAD_ATTENTION_CACHE,
        EXPAND_ROTARY_EMBEDDING,
        EXPAND_NBITS_MLP,
        EXPAND_NBITS_MLP_SUM,
        EXPAND_NBITS_QKV,
        EXPAND_NBITS_QKV_SUM,
        EXPAND_SKIP_NORMALIZATION,
        EXPAND_SKIP_LAYER_NORM_SUM,
        EXPAND_SKIP_RMS_NORM_SUM,
        FUSE_CONV_BATCHNORM,
        FUSE_CONV_MULTIPLY,
        FUSE_CONV_ADD,
        FUSE_PARALLEL_CONVS,
        FUSE_PARALLEL_NORMALIZATION,
        FUSE_MATMUL_BATCHNORM,
        FUSE_MATMUL_MULTIPLY,
        FUSE_MATMUL_ADD,
        SKIP_RESHAPES_AROUND_MATMUL,
        FOLD_GEMM_SCALES,
        FUSE_DIVIDE_MULTIPLY,
        FUSE_PAD,
        FUSE_RELU_CLIP,
        FUSE_GEMM_TRANSPOSE,
        MERGE_TRANSPOSES,
        SKIP_RESHAPES_AROUND_TRANSPOSE,
        MERGE_RESHAPES,
        DROP_ONES_BEFORE_RESHAPE,
        DROP_ONES_AFTER_RESHAPE,
        MERGE_SLICES,
        DROP_EXPAND,
        DROP_SLICE_OF_CONCAT,
        FUSE_GATHER_RANGE,
        FUSE_SPACE_TO_DEPTH,
        FUSE_CONV_GATHER,
        MERGE_SQUEEZES,
        MERGE_UNSQUEEZES,
        MOVE_UNSQUEEZE,
        MERGE_CASTS,
        FUSE_SELECT,
        SWAP_WHERE_BRANCHES,
        SKIP_BEFORE_SHAPE,
        SKIP_TRANSPOSE_BEFORE_SHAPE,
        SHORTEN_CAST_CHAINS,
        FUSE_LABEL_ENCODERS,
        MERGE_QUANTIZATIONS,
        QUANTIZE_AS_UINT8,
        FUSE_MATMUL_INTEGER,
        FUSE_MATMUL_INTEGER_BIAS,
        EXPAND_QUANTIZED,
        EXPAND_DYNAMIC_QUANTIZATION,
        DEFER_SCALES,
        GATHER_BEFORE_DEQUANTIZATION,
        POOL_BEFORE_QUANTIZATION,
        DEQUANTIZE_BEFORE_POOL,
        FUSE_NBITS_MATMUL,
    ),
    Level.EXTENDED: (
        FUSE_LAYER_NORM,
        FUSE_LAYER_NORM_AFFINE,
        FUSE_LAYER_NORM_STATISTICS,
        FUSE_LAYER_NORM_SCALE,
        FUSE_LAYER_NORM_BIAS,
        FUSE_LAYER_NORM_UNSCALED,
        FUSE_RMS_NORM,
        FUSE_RMS_NORM_UNSCALED,
        FUSE_GROUP_NORM,
        FUSE_GROUP_NORM_SCALE,
        FUSE_GROUP_NORM_BIAS,
        FUSE_GELU,
        FUSE_GELU_TANH,
        APPROXIMATE_GELU,
        DECOMPOSE_STFT,
        FUSE_SWISH,
        FUSE_HARD_SWISH,
        FUSE_MISH,
        FUSE_ATTENTION,
        PACK_ATTENTION_HEADS,
        FUSE_ATTENTION_GROUPS,
        FUSE_ATTENTION_CACHE,
        FUSE_ROTARY_EMBEDDING,
        FUSE_ROTARY_PAIRS,
        FUSE_PARTIAL_ROTARY_EMBEDDING,
        PACK_TRANSPOSED_HEADS,
        PACK_TRANSPOSED_HEADS_CACHE,
        FUSE_ATTENTION_SCALE,
        FUSE_ATTENTION_SCALE_CACHE,
        DROP_CLIP_BEFORE_QUANTIZATION,
        DROP_RELU_BEFORE_QUANTIZATION,
        DROP_DEQUANTIZATION_BEFORE_ARGMAX,
        DROP_QUANTIZATION_PAIRS,
        SKIP_REQUANTIZATION,
        SKIP_REQUANTIZATION_OF_MOVES,
        FUSE_QUANTIZED_CONV,
        FUSE_QUANTIZED_MATMUL,
        FUSE_QUANTIZED_MATMUL_TO_FLOAT,
        FUSE_QUANTIZED_GEMM,
        FUSE_QUANTIZED_GEMM_TO_FLOAT,
        FUSE_QUANTIZED_BINARY,
        FUSE_QUANTIZED_UNARY,
        FUSE_QUANTIZED_CONCAT,
        FUSE_QUANTIZED_WHERE,
        FUSE_DYNAMIC_QUANTIZE_MATMUL,
        FUSE_NBITS_BIAS,
        QUANTIZE_WEIGHTS,
        QUANTIZE_BIAS,
        QUANTIZE_WHERE_SCALAR,
        PROPAGATE_DEQUANTIZATION,
        PROPAGATE_QUANTIZATION,
    ),
    Level.LAYOUT: (),
}
"""The rules that each level adds, in the order in which they are tried at one node."""

JOINS: dict[Level, tuple[Rule, ...]] = {
    Level.EXTENDED: (
        FUSE_CONV_ACTIVATION,
        FUSE_GEMM_ACTIVATION,
        TURN_VECTOR_PRODUCT,
        FUSE_MATMUL_TRANSPOSE,
        FUSE_MATMUL_SCALE,
        FUSE_MATMUL_ACTIVATION,
        FUSE_ATTENTION_PROJECTIONS,
        FUSE_BIAS_GELU,
        FUSE_BIAS_SOFTMAX,
        FUSE_POOL_FLATTEN,
        FUSE_EMBEDDING,
        FUSE_SKIP_NORMALIZATION,
        FUSE_SKIP_NORMALIZATION_BIASED_SUM,
        FUSE_SKIP_NORMALIZATION_SUM,
    ),
    Level.LAYOUT: (FUSE_CONV_SUM,),
}
"""Rules that make one operator of what the other rules keep apart, and would take apart again: applied once all else is done."""

LAST: dict[Level, tuple[Pass, ...]] = {
    Level.BASIC: (COPY_DEQUANTIZATION,),
    Level.EXTENDED: (FUSE_QUERY_ROTATION, FUSE_QUERY_NORM, FUSE_NBITS_MLP, FUSE_NBITS_QKV, PACK_QUERY_PROJECTIONS),
}
"""Passes that others would undo, by the level from which on they run: after the rules of `JOINS`."""


def known_names() -> list[str]:
    """The names of all passes and rules that may be disabled, sorted."""
    passes = [item.name for items in (*PASSES.values(), CLEAN_UP, *LAST.values(), [WRITE_OLDER]) for item in items]
    rules = [rule.name for levels in (RULES, JOINS) for level in levels.values() for rule in level]
    return sorted([*passes, *rules, OverrideDimensions.name])


def optimize(
    model: Model,
    level: Level | int,
    *,
    evaluate: Evaluate | None,
    disabled: Collection[str] = frozenset(),
    enabled: Collection[str] = frozenset(),
    extra_rules: Sequence[Rule] = (),
    extra_passes: Sequence[Pass] = (),
    keep_opset: bool = False,
    check: bool = False,
    verify: RunModel | None = None,
    verifies_passes: bool = True,
    goes_on: bool = False,
    records: bool = False,
    loops: int = 1,
    fold_seconds: float | None = None,
    fold_bytes: int | None = None,
) -> Report:
    """Optimize `model` in place.

    Args:
        model: what to optimize; its interface stays.
        level: how far to go; what is no level counts as the next lower one.
        evaluate: computes nodes for constant folding; None folds only what shape inference knows.
        disabled: names of passes and rules to leave out.
        enabled: names of `quantization.OPTIONAL` to apply too.
        extra_rules: rules to try after those of their level.
        extra_passes: passes to run after those of their `level`, BASIC where they have none.
        keep_opset: make no operator that is newer than the opsets that the model imports, unless the pass `write_older` has a name
            for it there; so that the model can be saved.
        check: verify the model after each pass, to find the pass that breaks it; done anyway where there are extra ones.
        verify: computes a model; with it each rewrite is compared on random inputs with what it replaces, and each pass on the
            whole model. What changes results is undone, left out and reported, with a model that shows it.
        verifies_passes: whether passes are compared too; for large models that takes as long as running them.
        goes_on: whether to go on without a rule or pass that raises or leaves an invalid model; it is reported.
        records: whether the report lists every change.
        loops: 0 never goes through BASIC again after a higher level, 1 does where that changed something, 2 repeats the higher
            levels too.
        fold_seconds: how long folding may evaluate; `LIMITS.fold_seconds` by default.
        fold_bytes: the largest constant that folding may make; `LIMITS.fold_bytes` by default.

    Returns:
        What was done.

    Raises:
        InvalidArgument: `disabled` has a name that no pass or rule has.
        InvalidGraph: the model is invalid: types that contradict one another, a recursion of functions.
        OptimizationError: a pass or rule raised another error, or left an invalid model; the message names it.
    """
    _check_names(disabled, [*(rule.name for rule in extra_rules), *(item.name for item in extra_passes)])
    context = Context(evaluate)
    context.fold_seconds = context.fold_seconds if fold_seconds is None else fold_seconds
    context.fold_bytes = context.fold_bytes if fold_bytes is None else fold_bytes
    report = Report(_level(level), len(model.graph))
    watch = Watch(report, {*disabled, *(OPTIONAL - set(enabled))}, verify, records=records, verifies_passes=verifies_passes)
    watch.suspects = frozenset(rule.name for rule in extra_rules)
    has_extra = bool(extra_rules or extra_passes)
    start = time.perf_counter()
    with span("optimize", model=model.label, level=report.level.name):
        first = Guard(model, context, watch, is_guarded=False, goes_on=False, checks=check)
        for item in ALWAYS:
            first.run(item)
        guard = Guard(model, context, watch, is_guarded=has_extra or verify is not None, goes_on=goes_on, checks=check)
        choice = _Choice(watch, extra_rules, extra_passes, keep_opset)
        if report.level >= Level.BASIC:
            _until_stable(guard, choice.stage(Level.BASIC))
        for _ in range(ROUNDS if loops > 1 else 1):
            if not _higher_levels(guard, choice, report.level, loops):
                break
        _until_stable(guard, choice.last_stage(report.level))
    report.seconds = time.perf_counter() - start
    report.nodes_after = len(model.graph)
    return report


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
        changed = [guard.run(item) for item in passes]
        if True not in changed:
            return count > 0
        guard.run(INFER_SHAPES)
    return bool(passes)


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

    watch: Watch
    extra_rules: Sequence[Rule]
    extra_passes: Sequence[Pass]
    keep_opset: bool

    def stage(self, level: Level) -> list[Pass]:
        """The passes of one level, its rules and the clean-up; empty where the level has none of its own."""
        own = [*RULES[level], *(rule for rule in self.extra_rules if rule.level is level)]
        rules = [rule for rule in own if rule.name not in self.watch.disabled]
        passes = [*PASSES[level], *(item for item in self.extra_passes if getattr(item, "level", Level.BASIC) == level)]
        if not (rules or passes):
            return []
        return self._items(passes, rules)

    def last_stage(self, level: Level) -> list[Pass]:
        """The rules that join what others keep apart, the clean-up, the last passes, and for a file older names."""
        rules = [rule for least, joins in JOINS.items() if level >= least for rule in joins]
        chosen = [rule for rule in rules if rule.name not in self.watch.disabled]
        last = [item for least, passes in LAST.items() if level >= least for item in passes]
        last += [WRITE_OLDER] if self.keep_opset else []
        return [*(self._items([], chosen) if chosen else []), *(item for item in last if item.name not in self.watch.disabled)]

    def _items(self, passes: Sequence[Pass], rules: Sequence[Rule]) -> list[Pass]:
        applied = ApplyRules(rules, self.watch.report.fired, keep_opset=self.keep_opset, watch=self.watch)
        return [item for item in (*passes, applied, *CLEAN_UP) if item.name not in self.watch.disabled]
