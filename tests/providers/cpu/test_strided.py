"""Which kernel copies a region, and that each copies every element of it."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, run_cpu

from sardonyx.codegen.emit.types import I8, I16, I32, I64
from sardonyx.codegen.run.step_table import Buffer as Place
from sardonyx.codegen.run.step_table import KernelCall, StepTable
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim
from sardonyx.ir.shape import symbol
from sardonyx.providers.cpu.library import driver_for, library_for
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import StridedDim, copy_region, dense_strides, moved_type

_N = symbol("N")


def _copied(region: list[StridedDim], length: int, isa: str, n: int = 1) -> tuple[str, list[int]]:
    """The kernel's name, and a result of `length` elements that were -1 and are now copied from 0, 1, 2 and so on."""
    low = Lowering(host_target(isa), 1)
    copy_region(low, "Copy", Buffer(DataType.INT32, (1000,)), Buffer(DataType.INT32, (length,)), region)
    (step,) = low.steps
    addresses, engines = library_for(low.target).compile(low.writers)
    source, result = np.arange(1000, dtype=np.int32), np.full(length, -1, np.int32)
    params, tasks = step.plan(Sizes({"N": n}))
    table = StepTable([KernelCall(addresses[step.symbol], [Place(1), Place(2)], params, tasks)], 2)
    table.set_bases([source.ctypes.data, result.ctypes.data])
    assert driver_for(low.target).run(table) == -1
    assert engines
    return step.symbol.removesuffix(f"_{isa}"), result.tolist()


@pytest.mark.parametrize("isa", LEVELS)
def test_rows_are_copied_as_vectors(isa: str) -> None:
    """A box of a matrix; neighbours that are dense in both are one dimension."""
    symbol_, found = _copied([StridedDim(2, 10, 5), StridedDim(5, 1, 1)], 10, isa)
    assert (symbol_, found) == ("copy_4_oo", [0, 1, 2, 3, 4, 10, 11, 12, 13, 14])
    symbol_, found = _copied([StridedDim(2, 20, 20), StridedDim(5, 4, 4), StridedDim(4, 1, 1)], 40, isa)
    assert found == list(range(40))


@pytest.mark.parametrize("isa", LEVELS)
def test_an_element_is_repeated(isa: str) -> None:
    """Stride 0 in the source."""
    assert _copied([StridedDim(2, 1, 3), StridedDim(3, 0, 1)], 6, isa) == ("copy_4_fo", [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("isa", LEVELS)
def test_steps_and_short_rows_go_by_a_table(isa: str) -> None:
    """Where the result is dense; rows of two elements are such of twice the size, where they lie so."""
    assert _copied([StridedDim(3, 2, 1)], 3, isa) == ("places_4", [0, 2, 4])
    assert _copied([StridedDim(2, 10, 3), StridedDim(3, 1, 1)], 6, isa) == ("places_4", [0, 1, 2, 10, 11, 12])
    assert _copied([StridedDim(2, 10, 2), StridedDim(2, 1, 1)], 4, isa) == ("places_8", [0, 1, 10, 11])
    assert _copied([StridedDim(2, 5, 2), StridedDim(2, 1, 1)], 4, isa) == ("places_4", [0, 1, 5, 6])


@pytest.mark.parametrize("isa", LEVELS)
def test_steps_on_both_sides_go_element_by_element(isa: str) -> None:
    """Strides other than 1."""
    assert _copied([StridedDim(3, 2, 2)], 5, isa) == ("copy_4_ss", [0, -1, 2, -1, 4])


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(
    ("rows", "columns", "kernel"),
    [
        (5, 7, "transpose_4"),
        (3, 7, "interleave_3_4"),
        (7, 3, "deinterleave_3_4"),
        (_N, 7, "transpose_4"),
        (3, _N, "interleave_3_4"),
    ],
)
def test_planes_are_transposed(rows: Dim, columns: Dim, kernel: str, isa: str) -> None:
    """By tiles, or by streams where one side has a few elements for all sizes."""
    region = [StridedDim(columns, 1, rows), StridedDim(rows, columns, 1)]
    for n in (0, 1, 3, 30):
        height, width = (n if dim is _N else dim for dim in (rows, columns))
        assert isinstance(height, int)
        assert isinstance(width, int)
        symbol_, found = _copied(region, height * width, isa, n)
        assert symbol_ == kernel
        assert found == np.arange(height * width).reshape(height, width).T.ravel().tolist()


def test_elements_are_moved_by_their_size() -> None:
    """Types that kernels do not compute with are moved too; strings are not."""
    kinds = [DataType.BOOL, DataType.FLOAT8E4M3FN, DataType.BFLOAT16, DataType.FLOAT, DataType.COMPLEX64]
    assert [moved_type(kind) for kind in kinds] == [I8, I8, I16, I32, I64]
    assert [moved_type(kind) for kind in (DataType.STRING, DataType.UNDEFINED, DataType.COMPLEX128, None)] == [None] * 4


def test_dense_strides() -> None:
    """Products of the dimensions behind."""
    assert dense_strides((2, _N, 3)) == [3 * _N, 3, 1]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
@pytest.mark.parametrize("repeats", [[2, 3, 4], [1, 3, 1], [2, 1, 5], [7, 1, 1], [1, 1, 70]])
def test_what_is_repeated_along_several_dimensions(repeats: list[int], dtype: type) -> None:
    """The innermost one first, then whole rows of it; of sizes that only the binding shows too."""
    kind = {np.uint8: "uint8", np.float32: "float", np.int64: "int64"}[dtype]
    numbers = ", ".join(map(str, repeats))
    for shape in ("2, 3, 5", "n, 3, m"):
        body = f"graph(x: {kind}[{shape}]) -> (y) {{ r: int64[3] = [{numbers}] y = Tile(x, r) }}"
        x = np.arange(30).reshape(2, 3, 5).astype(dtype)
        np.testing.assert_array_equal(run_cpu(body, {"x": x})[0], np.tile(x, repeats))


def test_what_is_broadcast_along_several_dimensions() -> None:
    """As Expand does."""
    x = np.arange(12, dtype=np.float32).reshape(2, 1, 3, 1, 2)
    body = "graph(x: float[2, 1, 3, 1, 2]) -> (y) { s: int64[5] = [2, 4, 3, 70, 2] y = Expand(x, s) }"
    np.testing.assert_array_equal(run_cpu(body, {"x": x})[0], np.broadcast_to(x, (2, 4, 3, 70, 2)))
