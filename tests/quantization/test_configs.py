"""Facts about the arguments of a quantization as objects."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from sardonyx.quantization import quantize_dynamic, quantize_static
from sardonyx.quantization.configs import DynamicQuantConfig, QuantConfig, StaticQuantConfig
from sardonyx.quantization.kinds import QuantType


@pytest.mark.parametrize(("config", "function"), [(StaticQuantConfig, quantize_static), (DynamicQuantConfig, quantize_dynamic)])
def test_a_configuration_has_the_defaults_of_its_function(config: type, function: object) -> None:
    """Each field is an argument."""
    arguments = inspect.signature(function).parameters  # type: ignore[arg-type]  # a function
    for field in dataclasses.fields(config):
        if field.default is not dataclasses.MISSING:
            assert arguments[field.name].default == field.default


def test_configurations_have_one_class() -> None:
    """Scripts ask by it."""
    assert issubclass(DynamicQuantConfig, QuantConfig)
    assert issubclass(StaticQuantConfig, QuantConfig)


def test_what_both_kinds_are_told_can_be_kept_by_itself() -> None:
    """With onnxruntime's arguments and defaults."""
    config = QuantConfig(per_channel=True, nodes_to_exclude=["a"])
    assert (config.per_channel, config.nodes_to_exclude, config.reduce_range) == (True, ["a"], False)
    assert (config.activation_type, config.weight_type) == (QuantType.QUInt8, QuantType.QInt8)
