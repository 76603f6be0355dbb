"""TensorQuantOverrides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import model

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.quantization.overrides import Override, hint, read_overrides
from sardonyx.quantization.quant_utils import QuantType

MODEL = model("graph(x: float[2]) -> (y: float[2]) { y = Relu(x) }")


def test_what_is_said_of_a_tensor_is_read() -> None:
    """What is not said is left to the rest."""
    found = read_overrides({"x": [{"quant_type": QuantType.QUInt16, "rmin": -1.0}]}, MODEL)
    assert found == {"x": Override(dtype=DataType.UINT16, low=-1.0)}
    assert read_overrides(None, MODEL) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"xx": [{}]}, "no tensor"),
        ({"x": {}}, "list of one dictionary"),
        ({"x": [{"bits": 3}]}, "'bits'"),
        ({"x": [{"quant_type": 3}]}, "QuantType"),
        ({"x": [{"scale": 0.0}]}, "above 0"),
        ({"x": [{"scale": float("nan")}]}, "above 0"),
    ],
)
def test_what_is_malformed_is_refused(given: Any, message: str) -> None:
    """With the tensor's name."""
    with pytest.raises(InvalidArgument, match=message):
        read_overrides(given, MODEL)


def test_a_scale_goes_before_a_range() -> None:
    """And a range before what was calibrated."""
    range_of = (np.float32(0), np.float32(1))
    given = Override(scale=0.5, zero_point=3).grid(DataType.UINT8, *range_of, symmetric=False, least_range=None)
    assert (given.scale, given.zero_point) == (0.5, 3)
    wide = Override(high=255.0).grid(DataType.UINT8, *range_of, symmetric=False, least_range=None)
    assert wide.scale == 1


def test_the_nearest_name_is_a_hint() -> None:
    """Where there is one."""
    assert hint("conv_1", ["conv_2", "relu"]) == "; did you mean 'conv_2'?"
    assert hint("zzz", ["relu"]) == ""
