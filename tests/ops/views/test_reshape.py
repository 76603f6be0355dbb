"""Views of operators that change the shape."""

from __future__ import annotations

from typing import Any

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.inputs import COMPUTED, constants
from sardonyx.ops.views.reshape import Blocks, Flatten, Reshape, Squeeze, Tile, Transpose, Unsqueeze


def test_the_target_of_a_reshape() -> None:
    """It is an attribute before opset 5 and an input since."""
    assert Reshape.of(node("Reshape", 4, shape=[2, -1])) == Reshape((2, -1), keeps_zero=False, takes_input=False)
    given = node("Reshape", 14, ["x", [0, 3]], allowzero=1)
    assert Reshape.of(given, constants(given)) == Reshape((0, 3), keeps_zero=True, takes_input=True)
    computed = node("Reshape", 14, ["x", "shape"])
    assert Reshape.of(computed, constants(computed)) == Reshape(COMPUTED, keeps_zero=False, takes_input=True)


def test_a_flatten_begins_at_axis_1() -> None:
    """By default; the rank is an axis too."""
    assert (Flatten.of(node("Flatten", 13)).place(3), Flatten.of(node("Flatten", 13, axis=3)).place(3)) == (1, 3)
    assert Flatten.of(node("Flatten", 13, axis=-1)).place(3) == 2
    with pytest.raises(InvalidGraph, match=r"axis=4 is outside \[-3, 3\]"):
        Flatten.of(node("Flatten", 13, axis=4)).place(3)


def test_axes_of_a_squeeze() -> None:
    """They are an attribute before opset 13 and an input since, and may be named twice."""
    assert Squeeze.of(node("Squeeze", 11, axes=[-1, 0, 2])).places(3) == (0, 2)
    given = node("Squeeze", 13, ["x", [1]])
    assert Squeeze.of(given, constants(given)).places(3) == (1,)
    computed = node("Squeeze", 13, ["x", "axes"])
    assert Squeeze.of(computed, constants(computed)).places(3) is COMPUTED


def test_a_squeeze_without_axes_drops_every_1() -> None:
    """An empty list counts as none, as in ONNX Runtime."""
    for given in (node("Squeeze", 13, ["x"]), node("Squeeze", 13, ["x", []])):
        assert Squeeze.of(given, constants(given)).places(3) is None


def test_axes_of_an_unsqueeze() -> None:
    """They are places in the output, in any order."""
    given = node("Unsqueeze", 13, ["x", [-1, 0]])
    assert Unsqueeze.of(given, constants(given)).places(3) == (0, 2)
    assert Unsqueeze.of(node("Unsqueeze", 11, axes=[1])).places(2) == (1,)
    computed = node("Unsqueeze", 13, ["x", "axes"])
    assert Unsqueeze.of(computed, constants(computed)).places(3) is None


def test_an_unsqueeze_needs_axes_that_differ() -> None:
    """None at all, or one named twice, is refused."""
    with pytest.raises(InvalidGraph, match="axes are missing"):
        Unsqueeze.of(node("Unsqueeze", 13, ["x"]), constants(node("Unsqueeze", 13, ["x"])))
    with pytest.raises(InvalidGraph, match="names an axis twice for an output of rank 2"):
        Unsqueeze.of(node("Unsqueeze", 11, axes=[1, -1])).places(2)


def test_a_transpose_reverses_by_default() -> None:
    """The order is given by the rank."""
    assert Transpose.of(node("Transpose", 13)).order(3) == (2, 1, 0)
    assert Transpose.of(node("Transpose", 13, perm=[1, 0])).order(2) == (1, 0)


def test_what_is_no_permutation_is_refused() -> None:
    """Axes named twice, or for another rank."""
    with pytest.raises(InvalidGraph, match=r"perm=\[0, 0\] is no order of 2 axes"):
        Transpose.of(node("Transpose", 13, perm=[0, 0]))
    with pytest.raises(InvalidGraph, match=r"perm=\[1, 0\] is no order of 3 axes"):
        Transpose.of(node("Transpose", 13, perm=[1, 0])).order(3)


def test_a_tile_was_along_one_axis() -> None:
    """Before opset 6."""
    assert (Tile.of(node("Tile", 5)).is_by_axis, Tile.of(node("Tile", 6)).is_by_axis) == (True, False)


def test_blocks_are_depth_first() -> None:
    """By default, DCR."""
    assert Blocks.of(node("DepthToSpace", 13, blocksize=2)) == Blocks(2, is_depth_first=True)
    assert not Blocks.of(node("DepthToSpace", 13, blocksize=2, mode="CRD")).is_depth_first


@pytest.mark.parametrize(
    ("attributes", "message"),
    [({}, "blocksize=None, expected at least 1"), ({"blocksize": 2, "mode": "RCD"}, "mode='RCD', expected DCR or CRD")],
)
def test_blocks_that_cannot_be_are_refused(attributes: dict[str, Any], message: str) -> None:
    """A block has a size, and one of two orders."""
    with pytest.raises(InvalidGraph, match=message):
        Blocks.of(node("DepthToSpace", 13, **attributes))
