"""The names that ONNX Runtime has for optimizations, so that its `disabled_optimizers` work here.

    own_names(["ConvBNFusion", "fuse_gelu"])          {"fuse_conv_batchnorm", "fuse_gelu"}

One name of ONNX Runtime's may be part of a pass here, which is left out as a whole then; `docs/optimizer.md` says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sardonyx.errors import InvalidArgument
from sardonyx.optimize.passes.override_dimensions import OverrideDimensions
from sardonyx.optimize.pipeline import known_items

__all__ = ["ELSEWHERE", "NAMES", "own_names"]

_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Level1_RuleBasedTransformer": (
        "CastChainElimination",
        "ConvAddFusion",
        "ConvBNFusion",
        "ConvMulFusion",
        "DivMulFusion",
        "FuseReluClip",
        "GemmSumFusion",
        "GemmTransposeFusion",
        "LabelEncoderFusion",
        "MatMul_BatchNormalization_Fusion",
        "NotWhereFusion",
        "Pad_Fusion",
        "PreShapeNodeElimination",
    ),
    "Level2_RuleBasedTransformer": ("ClipQuantFusion", "ReluQuantFusion"),
}
"""ONNX Runtime's transformer -> its rules, but for those that stand for passes here which do more."""


def _own_by_alias() -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for item in (OverrideDimensions({}, {}), *known_items()):
        for alias in getattr(item, "aliases", ()):
            found.setdefault(alias, set()).add(item.name)
    for group, members in _GROUPS.items():
        found[group] = {name for member in members for name in found[member]}
    return {alias: tuple(sorted(names)) for alias, names in sorted(found.items())}


NAMES: Mapping[str, tuple[str, ...]] = _own_by_alias()
"""ONNX Runtime's name -> the rules and passes here that do the same, or of which it is a part, by their `aliases`."""

_TRAINING = "it is for training, and in no default list of ONNX Runtime's"
ELSEWHERE: Mapping[str, str] = {
    "BiasDropoutFusion": "Dropout, which it is about, does nothing in inference and goes",
    "FuseFp16InitializerToFp32NodeTransformer": "constant folding does it",
    "InsertCastTransformer": "half types are widened once a model is partitioned; session.keep_narrow_floats leaves them",
    "IsInfReduceSumFusion": _TRAINING,
    "MemcpyTransformer": "the partitioner puts copies in, which are always needed",
    "NchwcTransformer": "the CPU provider packs channels when it compiles",
    "NhwcTransformer": "the layout step converts what a provider claims",
    "PropagateCastOps": _TRAINING,
    "UpstreamGather": _TRAINING,
    "UpstreamReshape": _TRAINING,
}
"""ONNX Runtime's name -> why there is nothing of it to leave out: who does it, or why nobody has to."""


def own_names(names: Iterable[str]) -> frozenset[str]:
    """Return the rules and passes that names of this package, or of ONNX Runtime's, stand for; what neither knows stays as it is.

    Raises:
        InvalidArgument: `names` is one text instead of several.
    """
    if isinstance(names, str):
        raise InvalidArgument(f"optimizers are named in a list, got the text {names!r}")
    return frozenset(own for name in names if name not in ELSEWHERE for own in NAMES.get(name, (name,)))
