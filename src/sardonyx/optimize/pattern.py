"""Patterns: ordinary Python functions on a recording builder, compiled to terms that match values of a graph.

    def pattern(op, x, w, scale):
        return op.Mul(op.Conv(x, w, op.optional("bias"), _as="conv"), op.constant(scale))

Each parameter after `op` stands for any one value, the same value wherever it occurs. A call `op.Conv(...)` stands for a node; it
must have just these inputs (None: left out) and no other outputs in use. Keywords constrain attributes, which have the schema's
default where a node lacks them:

    axis=1                  equal to 1                    to=op.attribute("to")    anything, captured by that name
    perm=lambda p: ...      a predicate                   _domain="com.microsoft"  another domain
    _as="conv"              capture the node by name      _ordered=True            a commutative operator as written, not both ways
    _shared=True            its output may have users outside of the pattern; the node then stays for these

A call stands for the node's first output; `first, second = op.outputs(op.Split(x), 2)` gives others.

Inputs are other calls, parameters, numbers (a constant that holds this value, rounded to its type), and

    op.optional("b")        any value or none             op.rest("xs")            all further inputs, as a tuple
    op.constant(w)          a constant, of any value      op.number(0.5, 1e-3)     a constant of one element, within a tolerance
    op.any_of(p, q)         the first of the alternatives that leads to a match
    op.optional_constant("axes")                          a constant, or none

A function that returns several values has the first's node as its root; the others must be outputs of nodes that the root reaches.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TypeAlias

from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.ir.attribute import AttributeValue
from sardonyx.optimize.terms import (
    AnyValue,
    AttributeCapture,
    Choice,
    Nothing,
    Number,
    Operation,
    Output,
    Rest,
    Term,
)

__all__ = ["Pattern", "PatternBuilder", "PatternFunction", "compile_pattern", "operators_of", "record_pattern"]

PatternFunction: TypeAlias = Callable[..., "Term | tuple[Term, ...]"]
"""f(op, *values) -> the value, or values, that the rule replaces; parameters are terms."""

_RESERVED = {"_domain", "_as", "_shared", "_ordered"}


class PatternBuilder:
    """Records the calls of a pattern function; any attribute is an operator, as the notation `op.Relu(x)` wants it."""

    def __getattr__(self, op_type: str) -> Callable[..., Term]:
        """Return the recorder of nodes of `op_type`."""
        if op_type.startswith("__"):
            raise AttributeError(op_type)

        def record(*inputs: OnnxValue, **constraints: AttributeValue) -> Term:
            return self.node(op_type, *inputs, **constraints)

        return record

    def node(self, op_type: str, *inputs: OnnxValue, **constraints: AttributeValue) -> Term:
        """Record a node of an operator whose name is no identifier, or is computed."""
        unknown = {key for key in constraints if key.startswith("_")} - _RESERVED
        if unknown:
            known = ", ".join(sorted(_RESERVED))
            raise InvalidArgument(f"pattern: {op_type} takes no {', '.join(sorted(unknown))}; known are {known}")
        operation = Operation(
            constraints.get("_domain", ""),
            op_type,
            tuple(self.input(_term(value)) for value in inputs),
            {key: value for key, value in constraints.items() if key not in _RESERVED},
            name=constraints.get("_as", ""),
            is_shared=constraints.get("_shared", False),
            is_ordered=constraints.get("_ordered", False),
        )
        return Output(operation, 0)

    def input(self, term: Term) -> Term:
        """Return what is recorded for an input of a call: the term itself, or one that stands for it."""
        return term

    def outputs(self, call: Term, count: int) -> tuple[Term, ...]:
        """Return the first `count` outputs of a call."""
        if not isinstance(call, Output):
            raise InvalidArgument(f"pattern: outputs are those of a call such as op.Split(x), found {call!r}")
        return tuple(Output(call.operation, index) for index in range(count))

    def attribute(self, name: str) -> AttributeCapture:
        """Capture the attribute, also where it is missing and has no default (None)."""
        return AttributeCapture(name)

    def optional(self, name: str) -> Term:
        """Return any value, or an input that is left out."""
        return AnyValue(name, may_be_missing=True)

    def rest(self, name: str) -> Term:
        """Return all further inputs; only as the last argument."""
        return Rest(name)

    def constant(self, parameter: Term | str) -> Term:
        """Return a constant, captured by the parameter's name."""
        name = parameter.name if isinstance(parameter, AnyValue) else str(parameter)
        return AnyValue(name, must_be_constant=True)

    def optional_constant(self, name: str) -> Term:
        """Return a constant, or an input that is left out."""
        return AnyValue(name, must_be_constant=True, may_be_missing=True)

    def number(self, value: float, tolerance: float = 1e-5) -> Term:
        """Return a constant of one element, equal to `value` within a relative tolerance after rounding to its type."""
        return Number(value, tolerance)

    def any_of(self, *alternatives: object) -> Term:
        """Return the first alternative that leads to a match."""
        return Choice(tuple(_term(alternative) for alternative in alternatives))


def operators_of(pattern: Pattern) -> dict[tuple[str, str], set[str]]:
    """Return the domain and the name of each operator that a pattern asks for, with the attributes that it names."""
    found: dict[tuple[str, str], set[str]] = {}
    pending: list[Term] = list(pattern.results)
    while pending:
        term = pending.pop()
        if isinstance(term, Choice):
            pending.extend(term.terms)
        elif isinstance(term, Output):
            operation = term.operation
            found.setdefault((operation.domain, operation.op_type), set()).update(operation.constraints)
            pending.extend(operation.inputs)
    return found


def _term(value: AttributeValue) -> Term:
    if value is None:
        return Nothing()
    if isinstance(value, (int, float)):
        return Number(float(value), 1e-5)
    if isinstance(value, (AnyValue, Choice, Nothing, Number, Output, Rest)):
        return value
    raise InvalidArgument(f"pattern: an input must be a call, a parameter, a number or None, found {value!r}")


class Pattern:
    """A compiled pattern; immutable."""

    __slots__ = ("depth", "parameters", "results", "roots")

    def __init__(self, parameters: Sequence[str], results: tuple[Term, ...]) -> None:
        """Hold the terms that a pattern function returned; raises InvalidArgument where the first is no call."""
        first = results[0]
        choices = first.terms if isinstance(first, Choice) else (first,)
        if not all(isinstance(choice, Output) for choice in choices):
            raise InvalidArgument("pattern: what it returns must be a call such as op.Add(x, y), or any_of such calls")
        self.parameters = tuple(parameters)
        self.results = results
        self.roots: tuple[Output, ...] = tuple(choice for choice in choices if isinstance(choice, Output))
        self.depth = first.depth


@functools.lru_cache(maxsize=1024)
def compile_pattern(function: PatternFunction) -> Pattern:
    """Run a pattern function once on a recording builder."""
    return record_pattern(function, PatternBuilder())


def record_pattern(function: PatternFunction, builder: PatternBuilder) -> Pattern:
    """Run a pattern function on a builder of the caller's."""
    names = list(inspect.signature(function).parameters)[1:]
    results = function(builder, *(AnyValue(name) for name in names))
    return Pattern(names, results if isinstance(results, tuple) else (results,))
