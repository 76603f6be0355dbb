"""What a Python function says about an operator: inputs, attributes and their defaults, by names, kinds and defaults alone.

    def normalize(x, scale, bias=None, *rest, axis=-1, mode="fast"): ...
                  required  optional  variadic  attributes

Type hints are not read. A default decides the kind of an attribute; one without a default must be in every node.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence

from sardonyx.custom_ops.definition import Arity
from sardonyx.errors import InvalidArgument, InvalidGraph
from sardonyx.ir import Attribute, Tensor

__all__ = ["Input", "Signature", "attribute_names", "decode", "name_of", "read_attributes", "read_inputs"]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REQUIRED = inspect.Parameter.empty


@dataclasses.dataclass(frozen=True, slots=True)
class Input:
    """A formal input."""

    name: str
    """The parameter's name."""
    arity: Arity
    """Whether it may be left out or repeated."""


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """An operator's inputs and attributes."""

    inputs: tuple[Input, ...]
    """In order; only the last may be variadic."""
    attributes: Mapping[str, object]
    """Attribute -> default, of whatever kind its author chose. `inspect.Parameter.empty` for one that every node must have."""


def read_inputs(function: Callable[..., object], *, skip: int = 0) -> tuple[Input, ...]:
    """Return the inputs that the positional parameters of `function` stand for, after the first `skip`.

    Raises:
        InvalidArgument: a positional parameter has another default than None, there is a **parameter, or it is no function that
            tells its parameters and returns what it computed.
    """
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidArgument(f"{name_of(function)} is written with async def; an operator is a function that returns its result")
    inputs = []
    for item in _parameters(function)[skip:]:
        if item.kind in _POSITIONAL:
            if item.default is not _REQUIRED and item.default is not None:
                raise InvalidArgument(
                    f"{name_of(function)}: the input {item.name!r} has the default {item.default!r}; an input that may be left "
                    "out has the default None, and an attribute stands after *"
                )
            inputs.append(Input(item.name, Arity.REQUIRED if item.default is _REQUIRED else Arity.OPTIONAL))
        elif item.kind is inspect.Parameter.VAR_POSITIONAL:
            inputs.append(Input(item.name, Arity.VARIADIC))
        elif item.kind is inspect.Parameter.VAR_KEYWORD:
            raise InvalidArgument(f"{name_of(function)}: **{item.name} cannot be attributes; name each of them after *")
    return tuple(inputs)


def read_attributes(function: Callable[..., object]) -> dict[str, object]:
    """Return the attributes that the keyword-only parameters of `function` stand for, with their defaults.

    Raises:
        InvalidArgument: a default is none that an attribute can have.
    """
    found = {}
    for item in _parameters(function):
        if item.kind is inspect.Parameter.KEYWORD_ONLY:
            if item.default is not _REQUIRED and not _is_attribute(item.default):
                raise InvalidArgument(
                    f"{name_of(function)}: the attribute {item.name!r} has the default {item.default!r}; expected an int, a "
                    "float, a str, a bool, a tuple of these, an array, or None"
                )
            found[item.name] = item.default
    return found


def name_of(function: Callable[..., object]) -> str:
    """Return what messages call a function, also a partial one, or an object that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    found: str = getattr(function, "__qualname__", type(function).__qualname__)
    return found


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise InvalidArgument(f"{function!r:.100} is no function that tells its parameters; write one with def") from None


def attribute_names(function: Callable[..., object]) -> frozenset[str]:
    """Return the names of the keyword-only parameters of `function`."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset(item.name for item in parameters if item.kind is inspect.Parameter.KEYWORD_ONLY)


def _is_attribute(default: object) -> bool:
    if isinstance(default, (tuple, list)):
        return all(isinstance(item, (int, float, str)) for item in default)
    return default is None or isinstance(default, (int, float, str)) or hasattr(default, "dtype")


def decode(attributes: Mapping[str, Attribute], declared: Mapping[str, object]) -> dict[str, object]:
    """Return the attributes of a node as a function gets them by keyword, with defaults for those that the node lacks.

    Args:
        attributes: the node's.
        declared: what `read_attributes` returned.

    Raises:
        InvalidGraph: the node has an attribute that is not declared or of another kind, or lacks one without default.
    """
    unknown = sorted(attributes.keys() - declared.keys())
    if unknown:
        known = ", ".join(declared) or "none"
        raise InvalidGraph(f"it has the attribute {unknown[0]!r}, which the operator lacks; its attributes are: {known}")
    missing = [name for name, default in declared.items() if default is _REQUIRED and name not in attributes]
    if missing:
        raise InvalidGraph(f"it lacks the attribute {missing[0]!r}, which has no default")
    return {
        name: default if name not in attributes else _decoded(name, attributes[name], default) for name, default in declared.items()
    }


def _decoded(name: str, attribute: Attribute, default: object) -> object:
    """Return one attribute as Python has it: an int, float, bool, str, array or a tuple of these."""
    value = attribute.value
    if isinstance(value, Tensor):
        value = value.numpy()
    if isinstance(value, tuple):
        value = tuple(item.numpy() if isinstance(item, Tensor) else item for item in value)
    if default is _REQUIRED or default is None:
        return value
    if isinstance(default, (tuple, list)):
        return _decoded_list(name, value, default)
    return _like(name, value, default)


def _decoded_list(name: str, value: object, default: Sequence[object]) -> tuple[object, ...]:
    if not isinstance(value, tuple):
        raise InvalidGraph(f"its attribute {name!r} is {value!r}; expected a list, as the default {default!r} is")
    return tuple(_like(name, item, default[0]) for item in value) if default else value


def _like(name: str, value: object, default: object) -> object:
    """`value` in the kind of `default`: an int may stand for a float or a bool."""
    if isinstance(default, bool) and isinstance(value, int):
        return bool(value)
    if isinstance(default, float) and isinstance(value, int):
        return float(value)
    kinds = next((kind for kind in (int, float, str) if isinstance(default, kind)), None)
    if (kinds is not None and not isinstance(value, kinds)) or (kinds is None and not hasattr(value, "dtype")):
        expected = "a tensor" if kinds is None else kinds.__name__
        raise InvalidGraph(f"its attribute {name!r} is {value!r}; expected {expected}, as the default {default!r} is")
    return value
