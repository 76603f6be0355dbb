"""Facts about names of quantized values, and records of them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from onnx import numpy_helper

from sardonyx.quantization import named_values

FUNCTIONS = [name for name in named_values.__all__ if name.startswith("add_")]
RECORDS = ["BiasToQuantize", "QuantizedInitializer", "QuantizedValue"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_names_are_onnxruntimes(name: str) -> None:
    """Of a tensor called t."""
    peer = pytest.importorskip("onnxruntime.quantization.quant_utils")
    assert getattr(named_values, name)("t") == getattr(peer, name)("t")


@pytest.mark.parametrize("name", RECORDS)
def test_records_are_made_as_onnxruntimes(name: str) -> None:
    """The same parameters in the same order, and attributes of the same names."""
    peer = pytest.importorskip("onnxruntime.quantization.quant_utils")
    ours, theirs = getattr(named_values, name), getattr(peer, name)
    names = list(inspect.signature(theirs).parameters)
    assert list(inspect.signature(ours).parameters) == names
    made = theirs(*names)
    assert {key: getattr(ours(*names), key) for key in vars(made)} == vars(made)


def test_a_record_of_a_weight_has_no_numbers_by_itself() -> None:
    """They are noted later."""
    weight = numpy_helper.from_array(np.zeros(2, np.float32), "w")
    assert len(named_values.QuantizedInitializer("w", weight, [0], [0], [0], [1]).quantized_data) == 0


def test_a_value_is_an_input_or_an_initializer() -> None:
    """By name."""
    kind = named_values.QuantizedValueType
    assert (kind.from_string("Input"), str(kind.Initializer)) == (kind.Input, "Initializer")
    with pytest.raises(ValueError, match="one of Input, Initializer, got 'x'"):
        kind.from_string("x")
