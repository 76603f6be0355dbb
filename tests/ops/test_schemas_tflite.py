"""Signatures of the operators of sardonyx.tflite."""

from __future__ import annotations

from sardonyx.ops.fact import find_shape_function
from sardonyx.ops.families import family_of
from sardonyx.ops.schemas import find_schema
from sardonyx.ops.schemas_tflite import DOMAIN, SIGNATURES
from sardonyx.providers.reference.registry import find_kernel

NAMES = [line.partition("(")[0] for line in SIGNATURES.strip().replace("\n  ", " ").splitlines()]


def test_every_operator_is_whole() -> None:
    """It has a schema, a shape function, a reference kernel and a family."""
    for name in NAMES:
        assert find_schema(DOMAIN, name, 1) is not None
        assert find_shape_function(DOMAIN, name, 1) is not None
        assert find_kernel(DOMAIN, name, 1) is not None
        assert (family_of(name) or "").startswith("tflite/")
