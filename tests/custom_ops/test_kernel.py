"""Kernels of compiled libraries."""

from __future__ import annotations

import gc

import numpy as np
from support.custom_ops import library_path
from support.custom_sites import site_of

from sardonyx.custom_ops.abi import frame, handles
from sardonyx.custom_ops.definition import Kernel
from sardonyx.custom_ops.library import load_library
from sardonyx.dtypes import DataType
from sardonyx.ir import TensorType

FLOAT = TensorType(DataType.FLOAT)


def _scale() -> Kernel:
    found = {item.name: item for item in load_library(library_path(), {}).definitions}
    return found["Scale"].create(site_of(FLOAT, factor=2.0, offset=1))


def test_a_kernel_computes_by_itself() -> None:
    """Without a session."""
    (result,) = _scale().compute([np.ones(3, np.float32)])
    assert result is not None
    assert result.tolist() == [3, 3, 3]


def test_a_kernel_that_dies_leaves_nothing() -> None:
    """Handles and frames of ours go with it."""
    load_library(library_path(), {})
    gc.collect()
    before = len(frame._FRAMES), len(handles._OBJECTS)
    kernel = _scale()
    kernel.compute([np.ones(3, np.float32)])
    del kernel
    gc.collect()
    after = len(frame._FRAMES), len(handles._OBJECTS)
    assert after[0] == before[0]
    assert after[1] == before[1] + 1, "the domain that the second registration made stays, as the library keeps it"
