"""Activations of fused operators."""

import pytest

from sardonyx.ops.activations import FUSED_ACTIVATIONS
from sardonyx.ops.schemas import find_schema


@pytest.mark.parametrize("name", FUSED_ACTIVATIONS)
def test_parameters_are_attributes_of_the_operator(name):
    """Each is an operator of ai.onnx that has them."""
    schema = find_schema("", name, 21)
    assert schema is not None
    assert set(FUSED_ACTIVATIONS[name]) <= set(schema.attributes)
