"""Rules about activation functions, in the order in which they are tried at one node."""

from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.activation.approximate_gelu import APPROXIMATE_GELU
from sardonyx.optimize.rules.activation.expand_gelus import EXPAND_GELUS
from sardonyx.optimize.rules.activation.fuse_bias_gelu import FUSE_BIAS_GELU
from sardonyx.optimize.rules.activation.fuse_gelu import FUSE_GELU, FUSE_GELU_TANH
from sardonyx.optimize.rules.activation.fuse_hard_swish import FUSE_HARD_SWISH
from sardonyx.optimize.rules.activation.fuse_mish import FUSE_MISH
from sardonyx.optimize.rules.activation.fuse_relu_clip import FUSE_RELU_CLIP
from sardonyx.optimize.rules.activation.fuse_swish import FUSE_SWISH

__all__ = ["BASIC", "DECOMPOSITIONS", "EXTENDED", "LATE_FUSIONS"]

DECOMPOSITIONS: tuple[Rule, ...] = (EXPAND_GELUS,)
"""Rules that take fused operators apart, at level BASIC before all others."""

BASIC: tuple[Rule, ...] = (FUSE_RELU_CLIP,)
"""The rules of level BASIC."""

EXTENDED: tuple[Rule, ...] = (
    FUSE_GELU,
    FUSE_GELU_TANH,
    APPROXIMATE_GELU,
    FUSE_SWISH,
    FUSE_HARD_SWISH,
    FUSE_MISH,
)
"""The rules of level EXTENDED."""

LATE_FUSIONS: tuple[Rule, ...] = (FUSE_BIAS_GELU,)
"""Rules of level EXTENDED that make one operator of what other rules would decompose again."""
