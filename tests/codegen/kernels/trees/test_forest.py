"""The walk of rows through trees, and the sums of votes, in all forms."""

import dataclasses

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, I32, I64
from sardonyx.codegen.kernels.trees.forest import PADDING, ForestCode, ForestParams, write_forest
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

ONE = ForestCode(F32, F32, F32, "one", "sum", missing=False, equality=False)
CODES = {
    "one": ONE,
    "wide": ForestCode(I64, F64, F64, "one", "sum", missing=False, equality=False),
    "many": dataclasses.replace(ONE, votes="many"),
    "dense": dataclasses.replace(ONE, votes="dense"),
    "list": dataclasses.replace(ONE, votes="list", combine="min"),
}
SHIFT = 3
TREES = 3


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """A kernel of each form."""
    module = Module(target)
    for name, code in CODES.items():
        write_forest(module, name, code)
    engine = Engine(target)
    engine.add(module)
    return engine


def _nodes(bits: int, leaves: tuple[float, ...] | tuple[int, ...]) -> list[Array]:
    """Nodes, starts and bases of stumps: tree t tests feature t % 2 <= t, and has the leaves 2t (where that holds) and 2t + 1."""
    number, integer = np.dtype(f"f{bits // 8}"), np.dtype(f"u{bits // 8}")
    values = np.array(leaves, number if isinstance(leaves[0], float) else integer).view(integer)
    nodes = np.zeros((4 * TREES + 1, 2), integer)
    for tree in range(TREES):
        nodes[4 * tree] = np.array(tree, number).view(integer), 2 << SHIFT | (tree % 2) << 2
        nodes[4 * tree + 2, 0], nodes[4 * tree + 3, 0] = values[2 * tree], values[2 * tree + 1]
    starts = np.concatenate([4 * np.arange(TREES), np.full(PADDING, 4 * TREES)]).astype(f"i{bits // 8}")
    return [nodes, starts, starts]


def _reached(x: Array) -> Array:
    """The leaf of each row in each tree."""
    return np.stack([2 * tree + (x[:, tree % 2] > tree) for tree in range(TREES)], axis=1)


def _params(rows: int, block: int, targets: int = 1) -> ForestParams:
    return ForestParams(rows, 2, TREES, SHIFT, targets, block)


@pytest.mark.parametrize("block", [0, 32, 64, 96, 256])
@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 63, 64, 65, 96, 97, 300])
def test_rows_reach_their_leaves(engine: Engine, rows: int, block: int) -> None:
    """In vectors of trees (block 0) as in vectors of rows; nothing behind the last row is written."""
    x, total = np.random.default_rng(0).integers(0, 4, (rows, 2)), np.full(rows + 1, 9.0)
    for name, dtype, bits in (("one", np.float32, 32), ("wide", np.int64, 64)):
        found, params = total.astype(f"f{bits // 8}"), _params(rows, block)
        call(engine, name, [*_nodes(bits, tuple(map(float, range(6)))), x.astype(dtype), found], params.words(), 0, params.tasks())
        np.testing.assert_array_equal(found, [*_reached(x).sum(axis=1), 9])


@pytest.mark.parametrize("block", [0, 32, 64])
def test_votes_of_each_form_are_combined(engine: Engine, block: int) -> None:
    """A target for each tree, one vote for each target, any votes for each leaf."""
    x = np.random.default_rng(1).integers(0, 4, (90, 2)).astype(np.float32)
    leaves, params = _reached(x), _params(90, block, 2)
    targets, dense = np.array([0, 0, 1, -1], np.int32), np.arange(12, dtype=np.float32).reshape(6, 2)
    found = np.zeros((90, 2), np.float32)
    values = [*_nodes(32, tuple(map(float, range(6)))), x, found]
    call(engine, "many", [*values, targets], params.words(), 0, params.tasks())
    np.testing.assert_array_equal(found, np.stack([leaves[:, :2].sum(axis=1), leaves[:, 2]], axis=1))
    numbers = [*_nodes(32, tuple(range(6))), x, found]
    call(engine, "dense", [*numbers, targets, dense], params.words(), 0, params.tasks())
    np.testing.assert_array_equal(found, dense[leaves].sum(axis=1))
    voted, firsts = np.full((90, 2), 7, np.int32), np.array([0, 0, 1, 3, 3, 4, 5])
    ids, weights = np.array([1, 0, 1, 0, 0]), np.float32([5, 4, 3, 2, 1])
    call(engine, "list", [*numbers, targets, weights, firsts, ids, voted], params.words(), 0, params.tasks())
    for row in range(90):
        votes = [vote for leaf in leaves[row] for vote in range(firsts[leaf], firsts[leaf + 1])]
        for target in range(2):
            own = [weights[vote] for vote in votes if ids[vote] == target]
            assert (found[row, target], voted[row, target]) == (min(own, default=np.inf), bool(own))


def test_params_say_how_many_tasks() -> None:
    """A task has a block of rows, or one row."""
    assert (_params(300, 256).tasks(), _params(300, 0).tasks()) == (2, 300)


def test_names_tell_codes_apart() -> None:
    """By every field."""
    others = [
        {"data": I32},
        {"compared": F64},
        {"total": F64},
        {"votes": "list"},
        {"combine": "max"},
        {"missing": True},
        {"equality": True},
    ]
    names = {dataclasses.replace(ONE, **change).name for change in others}  # type: ignore[arg-type]
    assert len(names | {ONE.name}) == len(others) + 1
