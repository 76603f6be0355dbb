"""The whole pipeline on random models of many nodes: every change keeps results, and so do all together."""

from __future__ import annotations

import pytest
from support.random_models import random_model

from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Level
from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.sample import samples
from sardonyx.optimize.soundness import check_sound
from sardonyx.optimize.watch import run_both
from sardonyx.providers.reference.provider import evaluate
from sardonyx.providers.reference.whole import run_model

SEEDS = range(50)


@pytest.mark.parametrize("seed", SEEDS)
def test_results_stay(seed: int) -> None:
    """Each change is compared, then the model with itself as it was."""
    before, after = random_model(seed), random_model(seed)
    check_sound(before)
    report = optimize(after, Level.ALL, evaluate=evaluate, verify=run_model)
    verify(after)
    assert [str(problem) for problem in report.problems] == []
    assert report.unverified == {}
    feed = next(samples(before.graph.inputs, seed))
    named = {value.name: array for value, array in feed.items()}
    assert run_both(run_model, after, named, run_model(before, named), 1e-4) is None


def test_models_are_varied() -> None:
    """Most passes and many rules find something in them."""
    found = set[str]()
    for seed in range(30):
        report = optimize(random_model(seed), Level.ALL, evaluate=evaluate)
        found.update(report.fired)
        found.update(record.name for record in report.passes.values() if record.changes)
    assert found >= {
        "fold_constants",
        "eliminate_identities",
        "eliminate_common_subexpressions",
        "simplify_reshapes",
        "eliminate_dead_nodes",
        "fuse_gelu",
        "fuse_swish",
        "merge_transposes",
        "merge_casts",
    }
