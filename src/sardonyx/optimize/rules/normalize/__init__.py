"""Rules about normalizations and the embeddings before them, in the order in which they are tried at one node."""

from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.normalize.expand_batch_norm_training import EXPAND_BATCH_NORM_TRAINING, EXPAND_BATCH_NORM_UPDATES
from sardonyx.optimize.rules.normalize.expand_embedding import EXPAND_EMBEDDING, EXPAND_EMBEDDING_MASK
from sardonyx.optimize.rules.normalize.expand_losses import (
    EXPAND_CROSS_ENTROPY,
    EXPAND_CROSS_ENTROPY_PROBABILITIES,
    EXPAND_LIKELIHOOD_LOSS,
)
from sardonyx.optimize.rules.normalize.expand_mean_variance import EXPAND_GLOBAL_LP_POOL, EXPAND_MEAN_VARIANCE
from sardonyx.optimize.rules.normalize.expand_skip_normalization import (
    EXPAND_SKIP_LAYER_NORM_SUM,
    EXPAND_SKIP_NORMALIZATION,
    EXPAND_SKIP_RMS_NORM_SUM,
)
from sardonyx.optimize.rules.normalize.fuse_embedding import FUSE_EMBEDDING
from sardonyx.optimize.rules.normalize.fuse_group_norm import FUSE_GROUP_NORM, FUSE_GROUP_NORM_BIAS, FUSE_GROUP_NORM_SCALE
from sardonyx.optimize.rules.normalize.fuse_layer_norm import (
    FUSE_LAYER_NORM,
    FUSE_LAYER_NORM_AFFINE,
    FUSE_LAYER_NORM_BIAS,
    FUSE_LAYER_NORM_SCALE,
    FUSE_LAYER_NORM_UNSCALED,
)
from sardonyx.optimize.rules.normalize.fuse_layer_norm_statistics import FUSE_LAYER_NORM_STATISTICS
from sardonyx.optimize.rules.normalize.fuse_rms_norm import FUSE_RMS_NORM, FUSE_RMS_NORM_UNSCALED
from sardonyx.optimize.rules.normalize.fuse_skip_normalization import (
    FUSE_SKIP_NORMALIZATION,
    FUSE_SKIP_NORMALIZATION_BIASED_SUM,
    FUSE_SKIP_NORMALIZATION_SUM,
)

__all__ = ["DECOMPOSITIONS", "EXTENDED", "LATE_FUSIONS"]

DECOMPOSITIONS: tuple[Rule, ...] = (
    EXPAND_EMBEDDING,
    EXPAND_EMBEDDING_MASK,
    EXPAND_SKIP_NORMALIZATION,
    EXPAND_SKIP_LAYER_NORM_SUM,
    EXPAND_SKIP_RMS_NORM_SUM,
    EXPAND_MEAN_VARIANCE,
    EXPAND_GLOBAL_LP_POOL,
    EXPAND_BATCH_NORM_TRAINING,
    EXPAND_BATCH_NORM_UPDATES,
    EXPAND_LIKELIHOOD_LOSS,
    EXPAND_CROSS_ENTROPY,
    EXPAND_CROSS_ENTROPY_PROBABILITIES,
)
"""Rules that take fused operators apart, at level BASIC before all others."""

EXTENDED: tuple[Rule, ...] = (
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
)
"""The rules of level EXTENDED."""

LATE_FUSIONS: tuple[Rule, ...] = (
    FUSE_EMBEDDING,
    FUSE_SKIP_NORMALIZATION,
    FUSE_SKIP_NORMALIZATION_BIASED_SUM,
    FUSE_SKIP_NORMALIZATION_SUM,
)
"""Rules of level EXTENDED that make one operator of what other rules would decompose again."""
