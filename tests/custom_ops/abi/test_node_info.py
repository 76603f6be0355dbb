"""What a library may know of its node."""

from __future__ import annotations

import numpy as np
import pytest
from support.custom_sites import site_of

from sardonyx.custom_ops.abi.node_info import NodeInfo
from sardonyx.custom_ops.abi.values import find_value
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.ir import Attribute, AttributeKind


def test_attributes_are_found_by_name_and_kind() -> None:
    """Another kind is an error, as is one that is not there."""
    info = NodeInfo(site_of(axis=2), 1)
    assert info.attribute("axis", AttributeKind.INT) == 2
    with pytest.raises(Fail, match="has type INT, the library asks for FLOAT"):
        info.attribute("axis", AttributeKind.FLOAT)
    with pytest.raises(Fail, match="no attribute with name: 'x' is defined"):
        info.attribute("x", AttributeKind.INT)


def test_an_empty_list_is_one_of_any_kind() -> None:
    """Files do not always say which."""
    info = NodeInfo(site_of(items=Attribute(AttributeKind.INTS, ())), 1)
    assert info.attribute("items", AttributeKind.FLOATS) == ()


def test_constant_inputs_are_values_until_it_is_closed() -> None:
    """Other inputs are none."""
    info = NodeInfo(site_of(None, None, constants={1: np.ones(2)}), 1)
    value = info.constant(1)
    assert info.constant(0) is None
    assert value is not None
    assert info.constant(1) is value
    info.close()
    with pytest.raises(InvalidArgument):
        find_value(value.address)
