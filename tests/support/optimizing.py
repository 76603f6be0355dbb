"""Apply rules and passes to models in text form, verify the result and compare its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.evaluate import evaluate_model, evaluate_node, random_feeds

from sardonyx.ir import Model
from sardonyx.ir.text import parse_model, print_graph
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rule import Rule
from sardonyx.trace import Event, observe

__all__ = ["apply_pass", "apply_rule", "body", "declines", "model_of", "operators"]


def model_of(text: str, opset: str = "21") -> Model:
    """Parse a model whose text may begin with the graph, read under `opset` then."""
    return parse_model(text if text.lstrip().startswith("opset") else f"opset {opset}\n{text}")


def operators(model: Model) -> list[str]:
    """The operators of the main graph in order."""
    return [node.op_type for node in model.graph]


def body(model: Model) -> str:
    """The main graph as text, without types between the nodes."""
    return print_graph(model.graph, opset_imports=model.opset_imports, types=False)


def apply_rule(
    rule: Rule,
    text: str,
    *,
    opset: str = "21",
    rtol: float = 1e-5,
    symbols: dict[str, int] | None = None,
    infer: bool = True,
    compare: bool = True,
) -> tuple[Model, int]:
    """Rewrite a model with one rule, verify it and compare numbers; the model and how often the rule fired."""
    before, after = model_of(text, opset), model_of(text, opset)
    if infer:
        INFER_SHAPES.run(after, Context())
    fired = rewrite(after, RuleSet([rule]))
    verify(after)
    _same_interface(before, after)
    if compare:
        _same_numbers(before, after, rtol, symbols)
    return after, fired[rule.name]


def declines(rule: Rule, text: str, *, opset: str = "21", infer: bool = True) -> str:
    """Why the rule leaves the model alone: the reason that it gives, or "no match"; fails where it fires."""
    events: list[Event] = []
    with observe(events.append):
        _, fired = apply_rule(rule, text, opset=opset, infer=infer, compare=False)
    assert not fired, f"{rule.name} fired"
    reasons = [event.details["reason"] for event in events if event.name == "rewrite.decline"]
    return reasons[0] if reasons else "no match"


def apply_pass(
    what: Pass,
    text: str,
    *,
    opset: str = "21",
    rtol: float = 0.0,
    symbols: dict[str, int] | None = None,
    compare: bool = True,
    context: Context | None = None,
) -> tuple[Model, bool]:
    """Run shape inference and one pass, verify and compare numbers; the model and whether the pass changed it."""
    before, after = model_of(text, opset), model_of(text, opset)
    context = Context(evaluate_node) if context is None else context
    INFER_SHAPES.run(after, context)
    changed = what.run(after, context)
    verify(after)
    _same_interface(before, after)
    if compare:
        _same_numbers(before, after, rtol, symbols)
    assert not what.run(after, context), f"{what.name} changes what it has just made"
    return after, changed


def _same_interface(before: Model, after: Model) -> None:
    assert [value.name for value in after.graph.inputs] == [value.name for value in before.graph.inputs]
    assert [value.name for value in after.graph.outputs] == [value.name for value in before.graph.outputs]


def _same_numbers(before: Model, after: Model, rtol: float, symbols: dict[str, int] | None) -> None:
    feeds = random_feeds(before, symbols=symbols)
    for old, new in zip(evaluate_model(before, feeds), evaluate_model(after, feeds), strict=True):
        _equal(old, new, rtol)


def _equal(old: Any, new: Any, rtol: float) -> None:
    assert old.dtype == new.dtype
    assert old.shape == new.shape
    if old.dtype.kind == "f" and rtol:
        np.testing.assert_allclose(new, old, rtol=rtol, atol=rtol * (np.abs(old).max(initial=0) or 1))
    else:
        np.testing.assert_array_equal(new, old)
