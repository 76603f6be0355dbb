"""Rewrite rules."""

from __future__ import annotations

from typing import Any

from sardonyx.optimize.rule import Rule

__all__ = ["RULES"]


def _pattern(op: Any, x: Any) -> Any:
    return op.SquaredRelu(op.Relu(x), _domain="template")


def _replace(op: Any, match: Any, learned: Any) -> Any:
    return op.SquaredRelu(match["x"], _domain="template", **{name: item.value for name, item in match.root.attributes.items()})


RULES = [Rule("drop_relu_before_squared_relu", _pattern, _replace)]
"""SquaredRelu(Relu(x)) -> SquaredRelu(x), with the attributes of the former."""
