"""Every rule on random graphs: it fires, it declines, and results agree.

Graphs are drawn from the rule's pattern, or taken from a recipe where the pattern tells too little, and varied.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator

import pytest
from support.optimizing import model_of
from support.random_graphs import models_for, variants
from support.rule_recipes import RECIPES

from sardonyx.errors import SardonyxError
from sardonyx.ir import Model
from sardonyx.optimize.contract import Context, Level
from sardonyx.optimize.edit import clone_graph
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.pipeline import LATE_FUSIONS, RULES
from sardonyx.optimize.report import Report
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rule import Rule
from sardonyx.optimize.sample import samples
from sardonyx.optimize.soundness import check_sound
from sardonyx.optimize.target import OpKey, microsoft
from sardonyx.optimize.watch import Watch, found_by_running
from sardonyx.providers.reference.whole import run_model

ALL = [rule for level in (RULES, LATE_FUSIONS) for rules in level.values() for rule in rules]
DRAWN = 60
OPSETS = "21, com.microsoft 1, ai.onnx.ml 4"
VARIED = 12
STEP = 0.1
"""What a step of an integer may become where the model goes on to make floats of it."""
LOSSY = 0.01
"""A rule that states so large a tolerance changes numbers by steps of a quantization, or is one that users ask for knowingly."""

UNNAMED = microsoft("MatMulIntegerToFloat", "MatMulNBits", "EmbedLayerNormalization", "MultiHeadAttention")
"""What rules make of products that are on integers already, or where a user asks for it, whatever a provider prefers; and what other
rules decompose in turn, where no provider prefers it."""


def models(rule: Rule) -> Iterator[Model]:
    """Models for a rule; some of them in variants."""
    recipes = [model_of(text, OPSETS) for text in RECIPES.get(rule.name, ())]
    for index, model in enumerate([*recipes, *models_for(rule, DRAWN)]):
        yield model
        if index < VARIED:
            yield from variants(model, index)


@functools.cache
def outcome(name: str) -> tuple[int, int, list[str]]:
    """How often the rule of that name fires, how many models it leaves alone, and what it makes wrong."""
    rule = next(rule for rule in ALL if rule.name == name)
    fired, declined, problems = 0, 0, list[str]()
    for model in models(rule):
        before = Model(clone_graph(model.graph, {}), dict(model.opset_imports))
        INFER_SHAPES.run(model, Context())
        watch = Watch(Report(Level.ALL), run=run_model)
        try:
            count = rewrite(model, RuleSet([rule]), watch=watch).total()
        except SardonyxError:
            if _can_run(before):
                raise
            continue  # operators of com.microsoft are drawn without knowing what fits them
        fired += count
        declined += not count
        problems += map(str, watch.report.problems)
        if count:
            problems += unnamed(before, model, rule)
            check_sound(model)
            problems += differs(before, model, rule)
    return fired, declined, problems


def unnamed(before: Model, after: Model, rule: Rule) -> list[str]:
    """The operators of com.microsoft that a rule makes without saying so."""
    was, made = ({OpKey(node.domain, node.op_type) for node in model.graph} for model in (before, after))
    return [f"{key} is not among what it makes" for key in made - was - rule.makes - UNNAMED if key.domain == "com.microsoft"]


def _can_run(model: Model) -> bool:
    """Whether a model gives results for some inputs."""
    for feed in samples(model.graph.inputs, 0):
        try:
            run_model(model, {value.name: array for value, array in feed.items()})
        except SardonyxError:
            continue
        return True
    return False


def differs(before: Model, after: Model, rule: Rule) -> list[str]:
    """How two models differ on random inputs, but where the first differs from itself, as what draws numbers does."""
    for feed in samples(before.graph.inputs, zlib.crc32(rule.name.encode())):
        named = {value.name: array for value, array in feed.items()}
        try:
            old = run_model(before, named)
        except SardonyxError:
            continue
        allowed = STEP if rule.integer_steps else 10 * rule.tolerance
        found, _ = found_by_running(run_model, before, after, named, old, allowed, 1)
        return [f"the whole model {found}"] if found is not None else []
    return []


@pytest.mark.parametrize("name", [rule.name for rule in ALL])
def test_results_agree(name: str) -> None:
    """What a rule puts in place gives the same results, and a sound model."""
    rule = next(rule for rule in ALL if rule.name == name)
    fired, _, problems = outcome(name)
    assert rule.tolerance >= LOSSY or rule.integer_steps > 1 or problems == []
    if not fired:
        pytest.skip("no random graph makes it fire: give it a recipe in support/rule_recipes.py")


@pytest.mark.parametrize("name", [rule.name for rule in ALL])
def test_declines(name: str) -> None:
    """A rule leaves some of the graphs alone on which its pattern nearly holds."""
    if not outcome(name)[1]:
        pytest.skip("it fires on all of them")


@pytest.mark.parametrize("name", sorted(set(RECIPES) & {rule.name for rule in ALL}))
def test_recipes_fire(name: str) -> None:
    """Each recipe is for a rule, which fires on it."""
    rule = next(rule for rule in ALL if rule.name == name)
    for text in RECIPES[name]:
        model = model_of(text, OPSETS)
        INFER_SHAPES.run(model, Context())
        assert rewrite(model, RuleSet([rule]))[name] > 0
