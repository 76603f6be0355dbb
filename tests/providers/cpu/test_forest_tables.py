"""Tables of trees: where nodes lie, which form votes have, how tests are written."""

from __future__ import annotations

import numpy as np
import pytest
from support.forests import forest_model, named_trees

from sardonyx.codegen.kernels.trees.forest import EQUALITY, MISSING, PADDING, REST_FLAGS
from sardonyx.ops.forest import MODES, Forest, assemble
from sardonyx.ops.views.ml_tree import TreeEnsemble
from sardonyx.providers.cpu.forest_tables import lay_out, votes_of


def _stump(mode: str, threshold: float = 0.5, *, missing: int = 0, feature: int = 0, dtype: type = np.float32) -> Forest:
    return assemble(
        roots=np.array([0]),
        features=np.array([feature, 0, 0]),
        thresholds=np.array([threshold, 0, 0], dtype),
        modes=np.array([MODES.index(f"BRANCH_{mode}"), 7, 7]),
        is_inner=np.array([True, False, False]),
        children=np.array([1, 2, 1, 1, 2, 2]),
        missing=(missing, 0, 0),
        members=None,
        vote_nodes=np.array([2, 1]),
        vote_targets=np.array([0, 0]),
        vote_weights=np.float32([10, 20]),
        target_count=1,
    )


def _record(forest: Forest) -> tuple[float, int, list[float]]:
    """The root's threshold and flags, and the values of its pair."""
    tables = lay_out(forest, votes_of(forest, 1), np.float32)
    assert tables is not None
    words = tables.nodes.view(np.uint32).reshape(-1, 2)
    assert words[0, 1] >> tables.shift == 2
    return float(words[0, :1].view(np.float32)[0]), int(words[0, 1]) & 3, words[2:4, 0].view(np.float32).tolist()


@pytest.mark.parametrize(
    ("mode", "threshold", "flags", "pair"),
    [
        ("LEQ", 0.5, 0, [10, 20]),
        ("LT", np.nextafter(np.float32(0.5), np.float32(0)), 0, [10, 20]),
        ("GT", 0.5, MISSING, [20, 10]),
        ("GTE", np.nextafter(np.float32(0.5), np.float32(0)), MISSING, [20, 10]),
        ("EQ", 0.5, EQUALITY, [10, 20]),
        ("NEQ", 0.5, EQUALITY | MISSING, [20, 10]),
    ],
)
def test_all_tests_are_written_as_one(mode: str, threshold: float, flags: int, pair: list[float]) -> None:
    """The first of the pair is met where the test holds as it is written; NaN fails the test as it was, unless the node says else."""
    assert _record(_stump(mode)) == (threshold, flags, pair)
    assert _record(_stump(mode, missing=1)) == (threshold, flags ^ MISSING, pair)


def test_double_thresholds_are_rounded_so_that_each_float_is_on_the_right_side() -> None:
    """Downwards for x <= t; a test of equality with what is no float32 never holds."""
    below = np.nextafter(np.float32(0.1), np.float32(0))
    assert _record(_stump("LEQ", 0.1, dtype=np.float64))[0] == below
    assert np.isnan(_record(_stump("EQ", 0.1, dtype=np.float64))[0])


def test_large_features_need_the_wide_records() -> None:
    """A small record has 32 bits for flags, feature and pair."""
    forest = _stump("LEQ", feature=1 << 29)
    assert lay_out(forest, votes_of(forest, 1), np.float32) is None
    wide = lay_out(forest, votes_of(forest, 1), np.float64)
    assert wide is not None
    assert wide.nodes.view(np.uint64)[1] >> wide.shift == 2
    assert wide.nodes.view(np.uint64)[1] >> REST_FLAGS & (1 << 30) - 1 == 1 << 29


def test_trees_begin_where_their_pairs_count_from_and_lanes_behind_them_meet_a_leaf() -> None:
    """Two slots for each inner node and each root."""
    model = forest_model("TreeEnsembleRegressor", named_trees("target", 3, 4))
    forest = TreeEnsemble.forest(next(iter(model.graph)))
    tables = lay_out(forest, votes_of(forest, 1), np.float32)
    assert tables is not None
    assert tables.starts[:3].tolist() == tables.bases[:3].tolist() == [0, 10, 20]
    assert tables.starts[3:].tolist() == [30] * PADDING
    assert tables.nodes[30] == 0


@pytest.mark.parametrize(("votes", "form"), [("one", "many"), ("dense", "dense"), ("list", "list"), ("first", "many")])
def test_the_form_of_votes(votes: str, form: str) -> None:
    """The first that fits; trees go in the order of their targets, and keep their own among those of one."""
    model = forest_model("TreeEnsembleRegressor", named_trees("target", 7, 4, targets=3, votes=votes))
    forest = TreeEnsemble.forest(next(iter(model.graph)))
    found = votes_of(forest, 3)
    assert found.form == form
    if votes == "one":
        assert found.order.tolist() == [0, 3, 6, 2, 5, 1, 4]
        assert found.targets is not None
        assert found.targets.tolist() == [0, 0, 0, 1, 1, 2, 2, -1]
    if votes == "first":
        assert found.voted is not None
        assert found.voted.tolist() == [1, 0, 0]
