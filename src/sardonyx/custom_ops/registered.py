"""The operators that every session of the process knows: those registered by a call."""

from __future__ import annotations

from sardonyx.custom_ops.definition import OperatorDefinition, OperatorSource
from sardonyx.errors import InvalidArgument
from sardonyx.forks import new_lock

__all__ = ["check_operator", "register_operator", "registered_operators", "unregister_operator"]

_LOCK = new_lock()
_REGISTERED: list[OperatorSource] = []


def register_operator(operator: OperatorSource) -> None:
    """Let every session made from now on know `operator`; registering it again changes nothing.

    Raises:
        InvalidArgument: it is no operator, or another of its name for the same versions is registered.
    """
    definitions = check_operator(operator)
    with _LOCK:
        if operator in _REGISTERED:
            return
        for definition in definitions:
            for other in _REGISTERED:
                _refuse_twins(definition, other)
        _REGISTERED.append(operator)


def unregister_operator(operator: OperatorSource) -> None:
    """Let sessions made from now on not know `operator`; raises InvalidArgument where it is not registered."""
    with _LOCK:
        if operator not in _REGISTERED:
            raise InvalidArgument(f"{operator!r} is not registered")
        _REGISTERED.remove(operator)


def registered_operators() -> tuple[OperatorSource, ...]:
    """Return the operators registered, in order."""
    return tuple(_REGISTERED)


def check_operator(operator: object) -> tuple[OperatorDefinition, ...]:
    """Return the definitions of `operator`; raises InvalidArgument where it is none."""
    definitions = getattr(operator, "definitions", None)
    if not isinstance(definitions, tuple) or not all(isinstance(item, OperatorDefinition) for item in definitions):
        raise InvalidArgument(f"expected an operator, such as @sardonyx.op makes of a function, got {operator!r}")
    return definitions


def _refuse_twins(definition: OperatorDefinition, other: OperatorSource) -> None:
    for item in other.definitions:
        same = (item.domain, item.name) == (definition.domain, definition.name)
        if same and item.since <= definition.until and definition.since <= item.until:
            raise InvalidArgument(
                f"{definition.domain}.{definition.name} of {definition.owner} is registered already, by {item.owner}; "
                "unregister_operator takes it away, and since= and until= divide versions"
            )
