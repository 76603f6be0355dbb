"""Rules about operators that move data (Reshape, Transpose, Slice, Gather …), in the order in which they are tried at one node."""

from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.movement.cast_one_hot_indices import CAST_ONE_HOT_INDICES
from sardonyx.optimize.rules.movement.drop_expand import DROP_EXPAND
from sardonyx.optimize.rules.movement.drop_ones import DROP_ONES_AFTER_RESHAPE, DROP_ONES_BEFORE_RESHAPE
from sardonyx.optimize.rules.movement.drop_slice_of_concat import DROP_SLICE_OF_CONCAT
from sardonyx.optimize.rules.movement.expand_microsoft_movement import EXPAND_MICROSOFT_MOVEMENT, EXPAND_MICROSOFT_UNIQUE
from sardonyx.optimize.rules.movement.fuse_gather_range import FUSE_GATHER_RANGE
from sardonyx.optimize.rules.movement.merge_reshapes import MERGE_RESHAPES
from sardonyx.optimize.rules.movement.merge_slices import MERGE_SLICES
from sardonyx.optimize.rules.movement.merge_squeezes import MERGE_SQUEEZES
from sardonyx.optimize.rules.movement.merge_transposes import MERGE_TRANSPOSES
from sardonyx.optimize.rules.movement.merge_unsqueezes import MERGE_UNSQUEEZES
from sardonyx.optimize.rules.movement.move_unsqueeze import MOVE_UNSQUEEZE
from sardonyx.optimize.rules.movement.skip_before_shape import SKIP_BEFORE_SHAPE, SKIP_TRANSPOSE_BEFORE_SHAPE
from sardonyx.optimize.rules.movement.skip_reshapes_around_transpose import SKIP_RESHAPES_AROUND_TRANSPOSE

__all__ = ["BASIC", "DECOMPOSITIONS"]

DECOMPOSITIONS: tuple[Rule, ...] = (
    CAST_ONE_HOT_INDICES,
    EXPAND_MICROSOFT_MOVEMENT,
    EXPAND_MICROSOFT_UNIQUE,
)
"""Rules that take operators apart, at level BASIC before all others."""

BASIC: tuple[Rule, ...] = (
    MERGE_TRANSPOSES,
    SKIP_RESHAPES_AROUND_TRANSPOSE,
    MERGE_RESHAPES,
    DROP_ONES_BEFORE_RESHAPE,
    DROP_ONES_AFTER_RESHAPE,
    MERGE_SLICES,
    DROP_EXPAND,
    DROP_SLICE_OF_CONCAT,
    FUSE_GATHER_RANGE,
    MERGE_SQUEEZES,
    MERGE_UNSQUEEZES,
    MOVE_UNSQUEEZE,
    SKIP_BEFORE_SHAPE,
    SKIP_TRANSPOSE_BEFORE_SHAPE,
)
"""The rules of level BASIC."""
