"""The element types of ONNX."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import pytest

from sardonyx.dtypes import DataType, bit_width, is_float, is_integer, is_signed

ALL = [dtype for dtype in DataType if dtype is not DataType.UNDEFINED]


def test_numbers_are_those_of_the_standard() -> None:
    """DataType counts as TensorProto.DataType does, for every type that the installed onnx knows."""
    for name, number in onnx.TensorProto.DataType.items():
        assert DataType[name].value == number


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_each_type_is_found_by_its_array_and_by_its_name(dtype: DataType) -> None:
    """`numpy` and `str` can both be undone."""
    assert DataType.from_numpy(dtype.numpy) is dtype
    assert DataType.parse(str(dtype)) is dtype


@pytest.mark.parametrize("dtype", [dtype for dtype in ALL if dtype is not DataType.STRING], ids=str)
def test_widths_are_those_in_a_file(dtype: DataType) -> None:
    """Sub-byte types are narrower in files than in arrays; all others are as wide."""
    width = bit_width(dtype)
    assert width == 8 * dtype.numpy.itemsize or (width < 8 and dtype.numpy.itemsize == 1)
    digits = "".join(character if character.isdigit() else " " for character in str(dtype)).split()
    assert not digits or str(width) == digits[0] or dtype in (DataType.COMPLEX64, DataType.COMPLEX128)


def test_some_widths() -> None:
    """The ones that are easily got wrong."""
    assert [bit_width(dtype) for dtype in (DataType.INT4, DataType.UINT2, DataType.FLOAT6E2M3, DataType.FLOAT8E8M0)] == [4, 2, 6, 8]
    assert [bit_width(dtype) for dtype in (DataType.BOOL, DataType.BFLOAT16, DataType.COMPLEX64)] == [8, 16, 64]


@pytest.mark.parametrize("dtype", [DataType.STRING, DataType.UNDEFINED], ids=str)
def test_what_has_no_width_is_a_key_error(dtype: DataType) -> None:
    """Strings have no fixed size, and no type has none."""
    with pytest.raises(KeyError):
        bit_width(dtype)


@pytest.mark.parametrize("dtype", ["U3", "S3", "O", np.dtypes.StringDType()])
def test_every_array_of_text_is_a_string_tensor(dtype: Any) -> None:
    """Fixed-width, byte, object and variable-width strings are one element type."""
    assert DataType.from_numpy(np.dtype(dtype)) is DataType.STRING


def test_an_array_type_that_onnx_lacks_is_a_key_error() -> None:
    """Dates and long doubles are no element types."""
    for dtype in ("datetime64[s]", np.longdouble):
        with pytest.raises(KeyError):
            DataType.from_numpy(np.dtype(dtype))


def test_a_foreign_byte_order_is_a_key_error() -> None:
    """An array of the other byte order is no tensor until it is converted: native code would misread it."""
    foreign = np.dtype(np.float32).newbyteorder("S")
    with pytest.raises(KeyError):
        DataType.from_numpy(foreign)
    assert DataType.from_numpy(foreign.newbyteorder("=")) is DataType.FLOAT


def test_each_type_is_of_one_sort() -> None:
    """Real floats, integers and the rest do not overlap; signed types are integers."""
    others = {DataType.UNDEFINED, DataType.STRING, DataType.BOOL, DataType.COMPLEX64, DataType.COMPLEX128}
    for dtype in DataType:
        assert is_float(dtype) + is_integer(dtype) + (dtype in others) == 1
        assert is_integer(dtype) or not is_signed(dtype)
        assert is_signed(dtype) == (is_integer(dtype) and not dtype.name.startswith("U"))


def test_ml_dtypes_is_not_imported_before_it_is_needed() -> None:
    """Importing the module is quick."""
    program = f"import sys, importlib.util\n{_LOAD}\nsys.exit('ml_dtypes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


_LOAD = f"""
spec = importlib.util.spec_from_file_location("dtypes", {sys.modules["sardonyx.dtypes"].__file__!r})
module = importlib.util.module_from_spec(spec)
sys.modules["dtypes"] = module
spec.loader.exec_module(module)
"""
