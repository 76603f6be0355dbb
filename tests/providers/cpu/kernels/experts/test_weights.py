"""Panels of the weights of experts."""

import numpy as np

from sardonyx.codegen.kernels.pack import pack_columns
from sardonyx.codegen.kernels.panels import BlockPanels
from sardonyx.dtypes import DataType
from sardonyx.ir import Tensor, Value
from sardonyx.providers.cpu.kernels.experts.weights import PER_ROW, Numbers, ordered, pack_numbers, pack_plain

_RNG = np.random.default_rng(0)


def _value(array: np.ndarray) -> Value:
    return Value("w", constant=Tensor.from_array(array))


def test_rows_of_the_gate_come_first() -> None:
    """Whether they alternate with the others or lie apart from them."""
    array = np.arange(8).reshape(2, 4)
    assert ordered(array, None, alternates=True).tolist() == [[0, 2, 1, 3], [4, 6, 5, 7]]
    assert ordered(array, array + 10, alternates=False).tolist() == [[0, 1, 2, 3, 10, 11, 12, 13], [4, 5, 6, 7, 14, 15, 16, 17]]
    assert ordered(array, None, alternates=False) is array


def test_plain_weights_are_packed_expert_by_expert() -> None:
    """As the columns of a matrix (in, out), with those of a second tensor behind."""
    first, second = (_RNG.standard_normal((3, 5, 7)).astype(np.float32) for _ in range(2))
    packed = pack_plain(Tensor.from_array(first), _value(second), False, 4)
    assert packed.shape == (3, 3, 7, 4)
    for expert in range(3):
        assert (packed[expert] == pack_columns(np.concatenate([first[expert], second[expert]]).T, 4)).all()


def test_narrow_weights_stay_narrow_where_all_are() -> None:
    """Beside a tensor in float32 they are widened."""
    half, wide = _RNG.standard_normal((2, 3, 4)).astype(np.float16), _RNG.standard_normal((2, 3, 4)).astype(np.float32)
    widened = Tensor.widened(Tensor.from_array(half))
    assert pack_plain(widened, None, False, 4).dtype == np.float16
    mixed = pack_plain(widened, _value(wide), False, 8)
    assert mixed.dtype == DataType.FLOAT.numpy
    assert (mixed[0, 0, :, 3:6] == wide[0].T).all()


def test_weights_of_few_bits_have_scales_by_block_or_by_row() -> None:
    """One scale of a row is that of all its blocks."""
    panels, codes = BlockPanels(4, PER_ROW, None), _RNG.integers(0, 256, (2, 3, 70), dtype=np.uint8)
    scales = _RNG.random((2, 3)).astype(np.float32)
    packed = pack_numbers(Tensor.from_array(codes), panels, Numbers(_value(codes), _value(scales), None), None, False, 1, 4)
    assert packed.shape == (2, 1, 2, panels.block_bytes(4))
    for expert in range(2):
        found = packed[expert, 0, :, :16].view(np.float32)
        assert (found[:, :3] == scales[expert]).all()
