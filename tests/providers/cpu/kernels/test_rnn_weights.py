"""Weights with the gates of a unit side by side."""

import numpy as np
import pytest

from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Tensor, TensorType, Value
from sardonyx.providers.cpu.kernels.rnn_weights import ABSENT, Arrangement, pack_arranged
from sardonyx.providers.cpu.lowering import Lowering


def test_each_vector_of_units_has_one_of_each_gate() -> None:
    """Rows 0 to 4 are the first gate of 5 units, 5 to 9 the second; units behind the last are zeros."""
    found = Arrangement(1, 10, ((0, 5),), H=5, padded=8, lanes=4, width=8).places()
    assert found.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 4, -1, -1, -1, 9, -1, -1, -1]


def test_directions_and_groups_follow_one_another() -> None:
    """A gate of zeros takes its place too; the last panel is filled up."""
    arrangement = Arrangement(2, 6, ((4,), (ABSENT, 2)), H=2, padded=2, lanes=2, width=8)
    assert arrangement.places().tolist() == [4, 5, -1, -1, 2, 3, 10, 11, -1, -1, 8, 9, -1, -1, -1, -1]
    assert (arrangement.count, arrangement.panels) == (12, 2)


@pytest.mark.parametrize("K", [1, 3])
def test_constants_are_packed_at_once(K: int) -> None:
    """Into panels that begin at a cache line, once for all that ask alike."""
    rows = np.arange(10 * K, dtype=np.float32).reshape(1, 10, K)
    value = Value("w", TensorType(DataType.FLOAT, rows.shape), Tensor.from_array(rows, "w"))
    low = Lowering(host_target(), 1)
    arrangement = Arrangement(1, 10, ((0, 5),), H=5, padded=8, lanes=4, width=8)
    node = Node("LSTM", [value], 1, {}, version=14)
    packed = pack_arranged(low, node, value, arrangement, K)
    assert pack_arranged(low, node, value, arrangement, K) is packed
    assert packed.constant is not None
    assert packed.constant.ctypes.data % 64 == 0
    places = arrangement.places().reshape(2, 8)
    expected = np.where(places[:, :, np.newaxis] < 0, 0, rows[0][places]).transpose(0, 2, 1)
    np.testing.assert_array_equal(packed.constant, expected)
    assert not low.steps


def test_others_are_packed_in_the_run() -> None:
    """By one step, which knows the places."""
    value = Value("w", TensorType(DataType.FLOAT, (1, 10, 3)))
    low = Lowering(host_target(), 1)
    arrangement = Arrangement(1, 10, ((0, 5),), H=5, padded=16, lanes=16, width=32)
    packed = pack_arranged(low, Node("LSTM", [value], 1, {}, version=14), value, arrangement, 3)
    assert [step.name for step in low.steps] == ["Pack"]
    assert packed.shape == (1, 3, 32)
