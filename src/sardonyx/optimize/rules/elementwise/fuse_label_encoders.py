"""Merge two LabelEncoders in a row into one.

    LabelEncoder(LabelEncoder(x, table1), table2)      ->      LabelEncoder(x, table2 after table1)         (ai.onnx.ml)

Left alone:
    tables given as tensors, and those of opset 1, which are both directions of one list
    floats between the two tables, among which are several zeros and NaN
    a first result that has other users
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir import Node, Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_LABEL_ENCODERS"]

_DOMAIN = "ai.onnx.ml"
_KINDS = ("strings", "int64s", "floats")
"""Of what keys and values may be: the suffixes of their attributes."""


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.LabelEncoder(op.LabelEncoder(x, _domain=_DOMAIN, _as="first"), _domain=_DOMAIN)


def _check(match: Match) -> str | None:
    for node in match.nodes:
        if _kind(node, "keys") is None or _kind(node, "values") is None:
            return "a table is given as a tensor, or of opset 1"
    middle = _kind(match.root, "keys")
    return None if middle in ("strings", "int64s") and middle == _kind(match.node("first"), "values") else f"{middle} in between"


def _kind(node: Node, side: str) -> str | None:
    """Return the suffix of the attribute that holds a table's keys or values."""
    found = [kind for kind in _KINDS if f"{side}_{kind}" in node.attributes]
    return found[0] if len(found) == 1 and f"{side}_tensor" not in node.attributes else None


def _entries(node: Node, side: str) -> Sequence[str | int | float]:
    """Return the keys or values of a table."""
    kind = str(_kind(node, side))
    name = f"{side}_{kind}"
    if kind == "strings":
        return node.texts(name, ())
    return node.integers(name, ()) if kind == "int64s" else node.numbers(name, ())


def _default(node: Node) -> str | int | float:
    """Return what is found for other keys: text or a number, as the values are."""
    kind = str(_kind(node, "values"))
    if kind == "strings":
        return node.text("default_string", "_Unused")
    return node.integer("default_int64", -1) if kind == "int64s" else node.number("default_float", -0.0)


def _replace(op: Builder, match: Match, learned: None) -> Value:
    first, second = match.node("first"), match.root
    table = dict(zip(_entries(second, "keys"), _entries(second, "values"), strict=True))
    other, kind = _default(second), str(_kind(second, "values"))
    values = [table.get(value, other) for value in _entries(first, "values")]
    keys = f"keys_{_kind(first, 'keys')}"
    attributes = {keys: first.attributes[keys]}
    made = {f"values_{kind}": values, f"default_{kind.removesuffix('s')}": table.get(_default(first), other)}
    return op.LabelEncoder(match["x"], _domain=_DOMAIN, _attributes=attributes, **made)


FUSE_LABEL_ENCODERS = Rule("fuse_label_encoders", _pattern, _replace, _check, aliases=("LabelEncoderFusion",))
