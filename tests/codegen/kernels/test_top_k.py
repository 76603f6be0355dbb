"""The first elements of rows: lists of every length, adverse orders, results side by side."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I64
from sardonyx.codegen.kernels import top_k
from sardonyx.codegen.kernels.ranking import INSERTION
from sardonyx.codegen.kernels.top_k import STATE_BYTES, TopKParams, list_room, sorting_passes, work_bytes, write_top_k
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """The largest floats, and the smallest integers."""
    module = Module(target)
    write_top_k(module, "largest", F32, largest=True)
    write_top_k(module, "smallest", I64, largest=False)
    engine = Engine(target)
    engine.add(module)
    return engine


def _run(
    engine: Engine, name: str, x: Array, k: int, inner: int = 1, block: int = 2, together: int = 1
) -> tuple[Array, Array, int]:
    rows, n = x.shape
    kind = F32 if x.dtype == np.float32 else I64
    room = min(n, list_room(max(k, 0)))
    values, positions = np.zeros((rows, max(k, 0)), x.dtype), np.zeros((rows, max(k, 0)), np.int64)
    work_of_one = STATE_BYTES + room * work_bytes(kind)
    work, length, status = np.zeros(together * work_of_one // 8), np.zeros(1, np.int64), np.zeros(1, np.int64)
    params = TopKParams(rows, n, inner, block, together, work_of_one)
    call(engine, name, [x, values, positions, work, length, np.array([k]), status], params.words(), 0, params.tasks())
    if not status[0]:
        assert length[0] == k
    return values, positions, int(status[0])


@pytest.mark.parametrize("k", [0, 1, 2, INSERTION, INSERTION + 1, 100])
@pytest.mark.parametrize("order", ["random", "ascending", "descending", "equal"])
def test_whatever_the_order(engine: Engine, k: int, order: str) -> None:
    """The k-th of equals is the first one; NaN comes last."""
    x = np.random.default_rng(0).standard_normal((3, 333)).astype(np.float32)
    x[0, 5], x[1, :300] = np.nan, np.nan
    x = {"random": x, "ascending": np.sort(x), "descending": -np.sort(-x), "equal": np.zeros_like(x)}[order]
    values, positions, status = _run(engine, "largest", x, k)
    wanted = np.argsort(-x, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(positions, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, 1))
    assert status == 0


@pytest.mark.parametrize("n", [1, 15, 16, 17, 64, 257])
def test_lengths_around_vectors(engine: Engine, n: int) -> None:
    """As many as there are, and fewer."""
    x = np.random.default_rng(1).integers(-9, 9, (2, n))
    for k in {1, n // 2, n}:
        wanted = np.argsort(x, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(_run(engine, "smallest", x, k)[1], wanted)


@pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33])
def test_the_first_of_short_rows(engine: Engine, n: int) -> None:
    """Of equals the one that stands first; NaN only where there is nothing else."""
    x = np.random.default_rng(n).integers(-2, 3, (50, n)).astype(np.float32)
    x[::3, 0], x[7], x[8] = np.nan, np.nan, [0.0, -0.0][n % 2]
    wanted = np.argsort(-x, axis=1, kind="stable")[:, :1]
    values, positions, status = _run(engine, "largest", x, 1)
    np.testing.assert_array_equal(positions, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, 1))
    assert status == 0


@pytest.mark.parametrize("k", [3, 300])
@pytest.mark.parametrize("together", [1, 2])
def test_long_rows_are_several_tasks(engine: Engine, k: int, together: int) -> None:
    """Each task goes on with the list of the one before, whether rows are ascending, descending or random."""
    x = np.random.default_rng(3).integers(-(10**6), 10**6, (3, 600_001))
    x[1].sort()
    x[2] = -np.sort(x[2])
    assert TopKParams(3, x.shape[1], 1, 1, together, 0).tasks() == 3 * (3 if together == 1 else 4)
    wanted = np.argsort(x, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(_run(engine, "smallest", x, k, block=1, together=together)[1], wanted)


def test_results_side_by_side(engine: Engine) -> None:
    """Those of neighbouring rows are columns."""
    x = np.random.default_rng(2).standard_normal((6, 20)).astype(np.float32)
    positions = _run(engine, "largest", x, 4, inner=3)[1]
    np.testing.assert_array_equal(positions.reshape(2, 4, 3).transpose(0, 2, 1).reshape(6, 4), np.argsort(-x, axis=1)[:, :4])


@pytest.mark.parametrize("k", [-1, 21, -(1 << 63), (1 << 63) - 1])
def test_a_k_that_cannot_be_is_reported(engine: Engine, k: int) -> None:
    """And nothing is written."""
    x, status = np.zeros((2, 20), np.float32), np.zeros(1, np.int64)
    nothing = np.zeros(0, np.uint8)
    params = TopKParams(2, 20, 1, 2, 1, 0)
    call(engine, "largest", [x, nothing, nothing, nothing, nothing, np.array([k]), status], params.words(), 0, params.tasks())
    assert status[0] != 0


@pytest.mark.parametrize(("rows", "n", "k"), [(1, 100, 100), (3, 97, 51), (2, 64, 64), (5, 49, 17), (2, 100, 16), (4, 16, 16)])
@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("name", ["largest", "smallest"])
def test_rows_are_sorted_part_by_part_where_k_is_large(
    target: Target, monkeypatch: pytest.MonkeyPatch, name: str, rows: int, n: int, k: int, together: int
) -> None:
    """Several parts of a row, the last one whole or not; bytes that all keys share are passed over; of equals the first comes first."""
    monkeypatch.setattr(top_k, "_PART", 16)
    monkeypatch.setattr(top_k, "SORTED_FROM", 16)
    kind, largest = (F32, True) if name == "largest" else (I64, False)
    module, engine = Module(target), Engine(target)
    write_top_k(module, "parts", kind, largest=largest)
    engine.add(module)
    draw = np.random.default_rng(n)
    x = draw.standard_normal((rows, n)).astype(np.float32) if largest else draw.integers(-(1 << 40), 1 << 40, (rows, n))
    x[0] = x[0] // x[0].dtype.type(2)
    x[-1, ::3] = 0
    room = n if k > 16 else min(n, list_room(k))
    values, positions = np.zeros((rows, k), x.dtype), np.zeros((rows, k), np.int64)
    work_of_one = -(-(STATE_BYTES + room * work_bytes(kind)) // 8) * 8
    work, length, status = np.zeros(together * work_of_one // 8), np.zeros(1, np.int64), np.zeros(1, np.int64)
    params = TopKParams(rows, n, 1, 1, together, work_of_one, sorting_passes(kind) if k > 16 else 1)
    call(engine, "parts", [x, values, positions, work, length, np.array([k]), status], params.words(), 0, params.tasks())
    wanted = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(positions, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, 1))
