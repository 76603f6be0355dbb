"""Rules about matrix products, in the order in which they are tried at one node."""

from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.matmul.expand_einsum import EXPAND_EINSUM
from sardonyx.optimize.rules.matmul.expand_fused_products import EXPAND_FUSED_PRODUCTS, EXPAND_TRANSPOSE_MATMUL
from sardonyx.optimize.rules.matmul.expand_gemm_scalar import EXPAND_GEMM_SCALAR
from sardonyx.optimize.rules.matmul.fuse_gemm_activation import FUSE_GEMM_ACTIVATION
from sardonyx.optimize.rules.matmul.fuse_gemm_transpose import FUSE_GEMM_TRANSPOSE
from sardonyx.optimize.rules.matmul.fuse_matmul_activation import FUSE_MATMUL_ACTIVATION
from sardonyx.optimize.rules.matmul.fuse_matmul_add import FUSE_MATMUL_ADD
from sardonyx.optimize.rules.matmul.fuse_matmul_batchnorm import FUSE_MATMUL_BATCHNORM
from sardonyx.optimize.rules.matmul.fuse_matmul_multiply import FOLD_GEMM_SCALES, FUSE_MATMUL_MULTIPLY
from sardonyx.optimize.rules.matmul.fuse_matmul_transpose import FUSE_MATMUL_SCALE, FUSE_MATMUL_TRANSPOSE
from sardonyx.optimize.rules.matmul.skip_reshapes_around_matmul import SKIP_RESHAPES_AROUND_MATMUL
from sardonyx.optimize.rules.matmul.spell_einsum import SPELL_EINSUM
from sardonyx.optimize.rules.matmul.split_einsum import SPLIT_EINSUM
from sardonyx.optimize.rules.matmul.turn_vector_product import TURN_VECTOR_PRODUCT

__all__ = ["BASIC", "DECOMPOSITIONS", "LATE_FUSIONS"]

DECOMPOSITIONS: tuple[Rule, ...] = (
    EXPAND_FUSED_PRODUCTS,
    EXPAND_TRANSPOSE_MATMUL,
    SPELL_EINSUM,
    EXPAND_EINSUM,
    SPLIT_EINSUM,
    EXPAND_GEMM_SCALAR,
)
"""Rules that take fused operators apart, at level BASIC before all others."""

BASIC: tuple[Rule, ...] = (
    FUSE_MATMUL_BATCHNORM,
    FUSE_MATMUL_MULTIPLY,
    FUSE_MATMUL_ADD,
    SKIP_RESHAPES_AROUND_MATMUL,
    FOLD_GEMM_SCALES,
    FUSE_GEMM_TRANSPOSE,
)
"""The rules of level BASIC."""

LATE_FUSIONS: tuple[Rule, ...] = (
    FUSE_GEMM_ACTIVATION,
    TURN_VECTOR_PRODUCT,
    FUSE_MATMUL_TRANSPOSE,
    FUSE_MATMUL_SCALE,
    FUSE_MATMUL_ACTIVATION,
)
"""Rules of level EXTENDED that make one operator of what other rules would decompose again."""
