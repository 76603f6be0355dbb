"""What PagedAttention does around attention, kernel by kernel."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I32
from sardonyx.codegen.kernels.attention.group_query import Rotation
from sardonyx.codegen.kernels.attention.paged import write_new_rows, write_pages, write_tokens
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with the kernels."""
    engine, module = Engine(target), Module(target)
    write_tokens(module, "tokens", (I32, I32, I32))
    write_pages(module, "pages", F32)
    write_new_rows(module, "rows", Rotation.NONE, has_slots=True)
    engine.add(module)
    return engine


def _tokens(engine: Engine, firsts: list[int], pasts: list[int], table: list[list[int]], blocks: int = 6) -> tuple[Array, int]:
    numbers, status = np.full((3, 4), 7), np.zeros(1, np.int64)
    lists = [np.array(item, np.int32) for item in (firsts, pasts, table)]
    call(engine, "tokens", [*lists, numbers, status], [len(pasts), 3, len(table[0]), 4, blocks, -1], 0, 1)
    return numbers, int(status[0])


def test_a_token_has_a_sequence_a_position_a_slot_and_keys(engine: Engine) -> None:
    """Blocks have four places."""
    numbers, status = _tokens(engine, [0, 1, 3], [4, 3], [[5, 2], [0, 3]])
    assert status == 0
    assert numbers.tolist() == [[0, 4, 8, 5], [1, 3, 3, 5], [1, 4, 12, 5]]


@pytest.mark.parametrize(
    ("firsts", "pasts", "table", "blocks"),
    [
        ([0, 1, 4], [4, 3], [[5, 2], [0, 3]], 6),
        ([1, 1, 3], [4, 3], [[5, 2], [0, 3]], 6),
        ([0, 2, 1], [4, 3], [[5, 2], [0, 3]], 6),
        ([0, 1, 3], [4, -1], [[5, 2], [0, 3]], 6),
        ([0, 1, 3], [4, 7], [[5, 2], [0, 3]], 6),
        ([0, 1, 3], [4, 3], [[5, 2], [0, -1]], 6),
        ([0, 1, 3], [4, 3], [[5, 2], [0, 3]], 5),
    ],
)
def test_what_does_not_fit_is_reported(
    engine: Engine, firsts: list[int], pasts: list[int], table: list[list[int]], blocks: int
) -> None:
    """Its tokens have no keys and no slot."""
    numbers, status = _tokens(engine, firsts, pasts, table, blocks)
    assert status > 0
    wrong = [row for row in numbers.tolist() if row == [0, -1, -1, 0]]
    assert wrong


@pytest.mark.parametrize("is_same", [False, True])
def test_a_cache_is_copied_unless_it_is_the_same(engine: Engine, is_same: bool) -> None:
    """Block by block."""
    old = np.random.default_rng(0).standard_normal((3, 19)).astype(np.float32)
    kept, new = old.copy(), old if is_same else np.zeros_like(old)
    call(engine, "pages", [old, new], [19], 0, 3)
    np.testing.assert_array_equal(new, kept)


def test_rows_go_to_their_slots(engine: Engine) -> None:
    """One without a slot goes nowhere."""
    rows, cache = np.arange(24, dtype=np.float32).reshape(3, 2, 4), np.full((5, 2, 4), -1, np.float32)
    numbers = np.array([[0, 0, 3, 1], [0, 1, -1, 2], [0, 2, 0, 3]])
    call(engine, "rows", [rows, rows, rows, numbers, cache], [2, 4, 0, 0, 8], 0, 3)
    np.testing.assert_array_equal(cache[[3, 0]], rows[[0, 2]])
    assert (cache[[1, 2, 4]] == -1).all()
