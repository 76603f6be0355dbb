"""Rules about convolutions and pooling, in the order in which they are tried at one node."""

from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.conv.decompose_stft import DECOMPOSE_STFT
from sardonyx.optimize.rules.conv.fuse_conv_activation import FUSE_CONV_ACTIVATION
from sardonyx.optimize.rules.conv.fuse_conv_add import FUSE_CONV_ADD
from sardonyx.optimize.rules.conv.fuse_conv_batchnorm import FUSE_CONV_BATCHNORM
from sardonyx.optimize.rules.conv.fuse_conv_multiply import FUSE_CONV_MULTIPLY
from sardonyx.optimize.rules.conv.fuse_conv_sum import FUSE_CONV_SUM
from sardonyx.optimize.rules.conv.fuse_pad import FUSE_PAD
from sardonyx.optimize.rules.conv.fuse_parallel_convs import FUSE_PARALLEL_CONVS, FUSE_PARALLEL_NORMALIZATION
from sardonyx.optimize.rules.conv.fuse_pool_flatten import FUSE_POOL_FLATTEN
from sardonyx.optimize.rules.conv.fuse_space_to_depth import FUSE_CONV_GATHER, FUSE_SPACE_TO_DEPTH
from sardonyx.optimize.rules.conv.turn_conv_transpose import TURN_CONV_TRANSPOSE

__all__ = ["BASIC", "EXTENDED", "LATE_FUSIONS", "LATE_LAYOUT_FUSIONS"]

BASIC: tuple[Rule, ...] = (
    FUSE_CONV_BATCHNORM,
    FUSE_CONV_MULTIPLY,
    FUSE_CONV_ADD,
    FUSE_PARALLEL_CONVS,
    FUSE_PARALLEL_NORMALIZATION,
    FUSE_PAD,
    FUSE_SPACE_TO_DEPTH,
    FUSE_CONV_GATHER,
)
"""The rules of level BASIC."""

EXTENDED: tuple[Rule, ...] = (
    DECOMPOSE_STFT,
    TURN_CONV_TRANSPOSE,
)
"""The rules of level EXTENDED."""

LATE_FUSIONS: tuple[Rule, ...] = (
    FUSE_CONV_ACTIVATION,
    FUSE_POOL_FLATTEN,
)
"""Rules of level EXTENDED that make one operator of what other rules would decompose again."""

LATE_LAYOUT_FUSIONS: tuple[Rule, ...] = (FUSE_CONV_SUM,)
"""Such rules of level LAYOUT, once transposes have moved."""
