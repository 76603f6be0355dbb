"""Rules about casts, choices and other element-wise operators, in the order in which they are tried at one node."""

from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.elementwise.expand_bernoulli import EXPAND_BERNOULLI
from sardonyx.optimize.rules.elementwise.expand_cast_like import EXPAND_CAST_LIKE
from sardonyx.optimize.rules.elementwise.expand_dropout import EXPAND_DROPOUT, EXPAND_DROPOUT_TRAINING
from sardonyx.optimize.rules.elementwise.expand_gates import EXPAND_DISTANCES, EXPAND_DROPOUT_MASK, EXPAND_GATES
from sardonyx.optimize.rules.elementwise.fuse_divide_multiply import FUSE_DIVIDE_MULTIPLY
from sardonyx.optimize.rules.elementwise.fuse_label_encoders import FUSE_LABEL_ENCODERS
from sardonyx.optimize.rules.elementwise.fuse_select import FUSE_SELECT
from sardonyx.optimize.rules.elementwise.merge_casts import MERGE_CASTS
from sardonyx.optimize.rules.elementwise.shorten_cast_chains import SHORTEN_CAST_CHAINS
from sardonyx.optimize.rules.elementwise.swap_where_branches import SWAP_WHERE_BRANCHES
from sardonyx.optimize.rules.elementwise.widen_half_types import WIDEN_HALF_TYPES

__all__ = ["BASIC", "DECOMPOSITIONS"]

DECOMPOSITIONS: tuple[Rule, ...] = (
    EXPAND_CAST_LIKE,
    EXPAND_BERNOULLI,
    WIDEN_HALF_TYPES,
    EXPAND_GATES,
    EXPAND_DISTANCES,
    EXPAND_DROPOUT_MASK,
    EXPAND_DROPOUT,
    EXPAND_DROPOUT_TRAINING,
)
"""Rules that take operators apart, at level BASIC before all others."""

BASIC: tuple[Rule, ...] = (
    FUSE_DIVIDE_MULTIPLY,
    MERGE_CASTS,
    FUSE_SELECT,
    SWAP_WHERE_BRANCHES,
    SHORTEN_CAST_CHAINS,
    FUSE_LABEL_ENCODERS,
)
"""The rules of level BASIC."""
