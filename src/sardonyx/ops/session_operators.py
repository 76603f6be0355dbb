"""Operators that only one session knows: schemas and shape functions beside those that all sessions share.

    with session_operators(lookup):
        build the session          find_schema and infer_graph ask `lookup` first, on this thread only

Nothing global changes, so sessions do not see one another's operators.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from sardonyx.ir import Node
from sardonyx.ops.fact import Fact
from sardonyx.ops.schema import OpSchema

__all__ = ["Lookup", "SessionOperator", "find_session_operator", "session_operator_names", "session_operators"]


class SessionOperator:
    """An operator as checks and inference see it."""

    __slots__ = ("declines", "expression", "infer", "schema")

    def __init__(
        self,
        schema: OpSchema,
        infer: Callable[[Node, Sequence[Fact | None]], tuple[Fact, ...]],
        expression: object = None,
        declines: Callable[[Node, Sequence[Fact | None]], str] = lambda node, inputs: "",
    ) -> None:
        """Make an operator.

        Args:
            schema: what nodes are checked against.
            infer: a function (node, input facts) -> output facts, which may raise InvalidGraph.
            expression: what providers may compute it by (`providers.expressions` and `providers.user_kernels` know the types),
                None for nothing.
            declines: a function (node, input facts) -> why the operator does not take a node in place of a built-in one; "" where
                it does.
        """
        self.schema, self.infer, self.expression, self.declines = schema, infer, expression, declines


class Lookup(Protocol):
    """What knows the operators of one session."""

    def find_operator(self, domain: str, op_type: str, version: int) -> SessionOperator | None:
        """Return the operator at an opset version of its domain, or None."""

    def names(self) -> Mapping[tuple[str, str], str]:
        """Return (domain, operator) -> the versions of the domain at which it exists, as text; for messages."""


_LOOKUP: contextvars.ContextVar[Lookup | None] = contextvars.ContextVar("session_operators", default=None)


@contextlib.contextmanager
def session_operators(lookup: Lookup | None) -> Iterator[None]:
    """Let checks and inference of this thread know the operators of `lookup` within the block; None changes nothing."""
    if lookup is None:
        yield
        return
    token = _LOOKUP.set(lookup)
    try:
        yield
    finally:
        _LOOKUP.reset(token)


def find_session_operator(domain: str, op_type: str, version: int) -> SessionOperator | None:
    """Return the operator that only the session being built knows, or None."""
    lookup = _LOOKUP.get()
    return None if lookup is None else lookup.find_operator(domain, op_type, version)


def session_operator_names() -> Mapping[tuple[str, str], str]:
    """Return (domain, operator) -> versions, as text, of the operators that only the session being built knows."""
    lookup = _LOOKUP.get()
    return {} if lookup is None else lookup.names()
