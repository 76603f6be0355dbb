"""Views of normalizations."""

from __future__ import annotations

from typing import Any

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Node, Value
from sardonyx.ops.views.normalize import (
    BatchNormalization,
    GroupNormalization,
    LayerNormalization,
    LpNormalization,
    Lrn,
    MeanVariance,
    epsilon_of,
    trains,
)


def test_epsilon_is_a_hundred_thousandth() -> None:
    """By default, in every normalization."""
    assert epsilon_of(node("InstanceNormalization", 6)) == 1e-5


@pytest.mark.parametrize(
    ("version", "attributes", "is_training"),
    [
        (1, {}, True),
        (6, {"is_test": 1}, False),
        (7, {}, False),
        (13, {}, False),
        (14, {}, False),
        (14, {"training_mode": 1}, True),
    ],
)
def test_a_batch_normalization_trains(version: int, attributes: dict[str, Any], is_training: bool) -> None:
    """Unless `is_test` before opset 7, and where `training_mode` says so from 14 on."""
    assert BatchNormalization.of(node("BatchNormalization", version, **attributes)).is_training is is_training


@pytest.mark.parametrize(("version", "expected"), [(6, False), (7, True), (13, True), (14, False)])
def test_a_batch_normalization_may_train_by_its_outputs(version: int, expected: bool) -> None:
    """From opset 7 to 13."""
    assert BatchNormalization.of(node("BatchNormalization", version)).trains_by_outputs is expected


@pytest.mark.parametrize(("version", "expected"), [(1, False), (8, False), (9, True)])
def test_statistics_may_be_for_each_activation(version: int, expected: bool) -> None:
    """Where `spatial` is 0, which there is before opset 9."""
    assert BatchNormalization.of(node("BatchNormalization", version, spatial=0)).is_per_channel is expected
    assert BatchNormalization.of(node("BatchNormalization", version)).is_per_channel


@pytest.mark.parametrize(("version", "expected"), [(18, False), (21, True)])
def test_a_group_normalization_scales_channels(version: int, expected: bool) -> None:
    """From opset 21 on, groups before."""
    view = GroupNormalization.of(node("GroupNormalization", version, num_groups=2))
    assert (view.groups, view.scales_channels, view.stash_type) == (2, expected, 1)


@pytest.mark.parametrize("attributes", [{}, {"num_groups": 0}])
def test_groups_are_counted(attributes: dict[str, Any]) -> None:
    """There is at least one."""
    with pytest.raises(InvalidGraph, match="num_groups=.*, expected at least 1"):
        GroupNormalization.of(node("GroupNormalization", 21, **attributes))


def test_a_layer_normalization_begins_at_the_last_axis() -> None:
    """By default, with statistics in float32."""
    view = LayerNormalization.of(node("LayerNormalization", 17))
    assert (view.axis, view.first(3), view.stashes_float) == (-1, 2, True)
    assert not LayerNormalization.of(node("LayerNormalization", 17, stash_type=11)).stashes_float


def test_an_axis_that_is_not_there_is_refused() -> None:
    """The message says the range."""
    with pytest.raises(InvalidGraph, match=r"axis=3 is outside \[-3, 2\]"):
        LayerNormalization.of(node("LayerNormalization", 17, axis=3)).first(3)


def test_a_norm_is_of_order_1_or_2() -> None:
    """2 by default."""
    assert LpNormalization.of(node("LpNormalization", 1)) == LpNormalization(-1, 2)
    with pytest.raises(InvalidGraph, match="p=3, expected 1 or 2"):
        LpNormalization.of(node("LpNormalization", 1, p=3))


@pytest.mark.parametrize(("version", "expected"), [(7, True), (13, True), (14, False)])
def test_outputs_that_are_listed_make_a_normalization_train(version: int, expected: bool) -> None:
    """From opset 7 to 13, whether anything reads them or not, as in ONNX Runtime."""
    outputs = [Value(name) for name in ("y", "mean", "var", "saved_mean", "saved_var")]
    assert trains(Node("BatchNormalization", [], outputs, version=version)) is expected
    assert not trains(Node("BatchNormalization", [], [Value("y"), Value(""), Value("")], version=version))


def test_local_response_normalization() -> None:
    """The standard's defaults; a size below 1 is refused."""
    assert Lrn.of(node("LRN", 13, size=5)) == Lrn(5, pytest.approx(1e-4), 0.75, 1.0)
    with pytest.raises(InvalidGraph, match="size=0, expected 1 or more"):
        Lrn.of(node("LRN", 13))


@pytest.mark.parametrize(
    ("version", "attributes", "rank", "expected"),
    [
        (8, {}, 4, (0, 2, 3)),
        (8, {"across_channels": 1}, 3, (0, 1, 2)),
        (13, {}, 4, (0, 2, 3)),
        (13, {}, 3, (0, 2)),
        (13, {"axes": [-1]}, 5, (4,)),
    ],
)
def test_a_mean_is_of_these_axes(version: int, attributes: dict[str, Any], rank: int, expected: tuple[int, ...]) -> None:
    """All but the channels where a node names none, or with them as one could say before opset 9."""
    assert MeanVariance.of(node("MeanVarianceNormalization", version, **attributes)).axes_of(rank) == expected


def test_a_mean_of_an_axis_that_is_not_there_is_refused() -> None:
    """Where the node names the axis."""
    with pytest.raises(InvalidGraph, match="axes=3"):
        MeanVariance.of(node("MeanVarianceNormalization", 13, axes=[3])).axes_of(3)


@pytest.mark.parametrize(("version", "divides"), [(8, False), (9, True)])
def test_a_deviation_may_not_count(version: int, divides: bool) -> None:
    """Before opset 9."""
    assert MeanVariance.of(node("MeanVarianceNormalization", version, normalize_variance=0)).divides == divides


def test_a_mean_of_an_axis_that_is_named_twice_is_refused() -> None:
    """From the front or the back."""
    with pytest.raises(InvalidGraph, match="names an axis twice"):
        MeanVariance.of(node("MeanVarianceNormalization", 13, axes=[0, -3])).axes_of(3)
