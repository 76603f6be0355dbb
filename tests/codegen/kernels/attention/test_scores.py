"""What is done to scores."""

from __future__ import annotations

import itertools

import pytest

from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking


def test_names_of_shapes_differ() -> None:
    """Kernels are found by them."""
    options = itertools.product(Masking, (False, True), (False, True), (0.0, 2.0, 3.0), (False, True))
    shapes = [AttentionShape(*option) for option in options]
    assert len({shape.name for shape in shapes}) == len(shapes)


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        (AttentionShape(Masking.NONE), "none"),
        (AttentionShape(Masking.FULL, is_causal=True, replaces=True, has_sink=True), "fullbool_causal_sink"),
    ],
)
def test_a_name_says_what_is_done(shape: AttentionShape, name: str) -> None:
    """In the order in which it is done."""
    assert shape.name == name
