"""Dataclasses whose methods are written when they are first called.

    from sardonyx import lazy_dataclasses as dataclasses

The standard's `dataclass` compiles up to six methods of each class when its module is imported, which was a third of the time to
the first result of a small model; most classes of a process are never compared, hashed or printed, and many never made. Here a
class gets small functions in the place of these methods; each does without code of its own at first, and is replaced by what the
standard would have written when it is called often. Everything else is the standard's: `fields`, `replace` and `is_dataclass` work
as ever.
"""

from __future__ import annotations

import collections
import dataclasses as standard
import itertools
import reprlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import FrozenInstanceError as FrozenInstanceError
from dataclasses import asdict as asdict
from dataclasses import astuple as astuple
from dataclasses import field as field
from dataclasses import fields as fields
from dataclasses import is_dataclass as is_dataclass
from dataclasses import replace as replace
from typing import TYPE_CHECKING, Any

__all__ = ["FrozenInstanceError", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

_FIELD = getattr(standard, "_FIELD", None)
"""By which `fields` knows fields from what else annotations may say; None in a Python that has it no more."""
_PLAIN_OPTIONS = {"frozen", "slots", "eq", "weakref_slot"}
_OWN_METHODS = ("__init__", "__eq__", "__repr__", "__setattr__", "__delattr__", "__getstate__", "__setstate__")
_NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")


class _Made:
    """Stands for a default that is made anew for each object."""


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Make a dataclass as the standard does, of whatever options; the methods of a plain one are written later."""
        if cls is None:
            return lambda given: dataclass(given, **options)
        found = _fields_of(cls) if _is_plain(cls, options) else None
        if found is None:
            return standard.dataclass(cls, **options)
        return _made(cls, found, options)


def _is_plain(cls: type, options: dict[str, bool]) -> bool:
    """Return whether a class has none of the methods that are written, and fields only."""
    own = cls.__dict__
    if _FIELD is None or not options.keys() <= _PLAIN_OPTIONS or ("__hash__" in own and not options.get("frozen")):
        return False
    texts = own.get("__annotations__", {}).values()
    return (
        not any(name in own for name in _OWN_METHODS)
        and "__slots__" not in own
        and all(isinstance(text, str) and not any(word in text for word in _NO_FIELDS) for text in texts)
        and all(hasattr(base, "__dataclass_fields__") == hasattr(base, "_lazy_fields") for base in cls.__mro__[1:])
    )


def _fields_of(cls: type) -> dict[str, Any] | None:
    """Return the fields of a class, those of its bases first; None where one is not plain."""
    found: dict[str, Any] = {}
    for base in cls.__mro__[-1:0:-1]:
        found.update(base.__dict__.get("__dataclass_fields__", {}))
    for name, text in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063  as texts: evaluating them takes time, and types that are imported for checking only
        given = cls.__dict__.get(name, standard.MISSING)
        own: Any = given if isinstance(given, standard.Field) else field(default=given)
        if own.kw_only is True or own.default.__class__.__hash__ is None:
            return None
        own.name, own.type, own.kw_only, own._field_type = name, text, False, _FIELD
        found[name] = own
    return found


def _made(cls: type, found: dict[str, Any], options: dict[str, bool]) -> type:
    """Return the class with its methods: the same one, or, since slots are decided when a class is made, another one with slots."""
    methods = _methods(cls, found, options)
    if options.get("slots"):
        made = _with_slots(cls, found, methods, has_weakref=options.get("weakref_slot", False))
    else:
        made = cls
        for name in cls.__dict__.get("__annotations__", {}):  # noqa: RUF063  as in `_fields_of`
            if found[name].default is not standard.MISSING:
                setattr(cls, name, found[name].default)
            elif name in cls.__dict__:
                delattr(cls, name)
        for name, method in methods.items():
            setattr(cls, name, method)
    for name in ("__init__", "__eq__", "__hash__"):
        written = made.__dict__.get(name)
        if written is not None and name in methods:
            written.owner = made
    return made


def _methods(cls: type, found: dict[str, Any], options: dict[str, bool]) -> dict[str, Any]:
    """Return what a class gets that it does not have."""
    is_frozen, has_eq = options.get("frozen", False), options.get("eq", True)
    given: dict[str, Any] = {
        "__dataclass_fields__": found,
        "_lazy_fields": True,
        "__match_args__": tuple(name for name, item in found.items() if item.init),
        "__repr__": _repr,
    }
    given["__dataclass_params__"] = _params(is_frozen=is_frozen, has_eq=has_eq)
    given["__init__"] = _later("__init__", _init_source, _init)
    if has_eq:
        given["__eq__"] = _later("__eq__", _eq_source, _equals)
        if "__hash__" not in cls.__dict__:
            given["__hash__"] = _later("__hash__", _hash_source, _hash) if is_frozen else None
    if is_frozen:
        given.update(__setattr__=_refuse_set, __delattr__=_refuse_delete)
    if is_frozen and options.get("slots"):
        given.update(__getstate__=_state, __setstate__=_set_state)
    return given


def _with_slots(cls: type, found: dict[str, Any], methods: dict[str, Any], *, has_weakref: bool) -> type:
    """Return a class like `cls` that has slots, and these methods."""
    space = dict(cls.__dict__)
    inherited = set(itertools.chain.from_iterable(_slots_of(base) for base in cls.__mro__[1:-1]))
    names = (*found, *(("__weakref__",) if has_weakref else ()))
    space["__slots__"] = tuple(name for name in names if name not in inherited)
    for name in (*found, "__dict__", "__weakref__"):
        space.pop(name, None)
    space.update(methods)
    made = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    return made


def _slots_of(base: type) -> Iterator[str]:
    slots = base.__dict__.get("__slots__", ())
    yield from (slots,) if isinstance(slots, str) else slots


def _params(*, is_frozen: bool, has_eq: bool) -> Any:
    return standard._DataclassParams(  # type: ignore[attr-defined]  # which the standard reads of bases
        init=True, repr=True, eq=has_eq, order=False, unsafe_hash=False, frozen=is_frozen, **_MORE
    )


def _more_params() -> dict[str, bool]:
    """Return what later versions of Python note of a dataclass besides."""
    known = getattr(getattr(standard, "_DataclassParams", None), "__slots__", ())
    return {
        name: value
        for name, value in {"match_args": True, "kw_only": False, "slots": True, "weakref_slot": False}.items()
        if name in known
    }


_MORE = _more_params()


def _later(
    name: str,
    source_of: Callable[[dict[str, Any], dict[str, Any]], str],
    plainly: Callable[[Any, type, tuple[Any, ...], dict[str, Any]], Any],
) -> Any:
    """Return a method without code of its own, which writes the real one when it is called often, and puts it in its own place.

    `plainly` is the method for a class and any arguments; what it cannot do, it leaves to the real one by returning `_UNDONE`.
    """
    calls = 0

    def method(self: Any, /, *arguments: Any, **named: Any) -> Any:
        nonlocal calls
        owner: Any = method.owner  # type: ignore[attr-defined]  # `_made` sets it
        calls += 1
        if calls <= _PLAIN_CALLS:
            result = plainly(self, owner, arguments, named)
            if result is not _UNDONE:
                return result
        space: dict[str, Any] = {"_checks": hasattr(owner, "__post_init__"), "_slots": "__slots__" in owner.__dict__}
        text = source_of(owner.__dict__["__dataclass_fields__"], space)
        exec(text, space)
        written = space[name]
        written.__qualname__ = f"{owner.__qualname__}.{name}"
        written.__module__ = owner.__module__
        setattr(owner, name, written)
        return written(self, *arguments, **named)

    method.__name__ = name
    return method


_PLAIN_CALLS = 40
"""To write a method takes as long as to do without it so often."""
_UNDONE = object()


def _init(self: Any, owner: type, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Set the fields of a new object, unless the arguments are wrong: then what is written says so.

    A loop in Python over fields would take as long as all else here.
    """
    names, defaults, has_more = owner.__dict__.get("_lazy_facts") or _facts_of(owner)
    if names is None:
        return _UNDONE
    if named:
        given = dict(zip(names, arguments))  # noqa: B905  there may be fewer arguments than names
        given.update(named)
        left = defaults.keys() - given if defaults else ()
        is_right = len(given) == len(arguments) + len(named) and given.keys() <= owner.__dict__["__dataclass_fields__"].keys()
        if not is_right or len(given) + len(left) != len(names):
            return _UNDONE
        _exhaust(map(_assign, itertools.repeat(self), given, given.values()))
    else:
        left = names[len(arguments) :]
        if len(arguments) > len(names) or (left and not defaults.keys() >= set(left)):
            return _UNDONE
        _exhaust(map(_assign, itertools.repeat(self), names, arguments))
    for name in left:
        item = defaults[name]
        _assign(self, name, item.default if item.default_factory is standard.MISSING else item.default_factory())
    if has_more:
        self.__post_init__()
    return None


_assign = object.__setattr__
_exhaust: Callable[[Iterable[object]], None] = collections.deque[object](maxlen=0).extend
"""Takes all that an iterator has."""


def _facts_of(owner: type) -> Any:
    """Return what objects of a class are made of, which the class keeps, in few objects: each is one that collections look at.

    These are the names that arguments have, in order, those fields that may be left out, and whether there is more to do. Where
    fields are set by no argument, there is None for the names.
    """
    fields_of, missing = owner.__dict__["__dataclass_fields__"], standard.MISSING
    defaults = {
        name: item for name, item in fields_of.items() if item.default is not missing or item.default_factory is not missing
    }
    names = owner.__dict__["__match_args__"]
    found = names if len(names) == len(fields_of) else None, defaults or _NO_DEFAULTS, hasattr(owner, "__post_init__")
    owner._lazy_facts = found  # type: ignore[attr-defined]  # of any class
    return found


_NO_DEFAULTS: dict[str, Any] = {}


def _equals(self: Any, owner: type, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    if len(arguments) != 1 or named:
        return _UNDONE
    (other,) = arguments
    if other.__class__ is not self.__class__:
        return NotImplemented
    names = [name for name, item in owner.__dict__["__dataclass_fields__"].items() if item.compare]
    return tuple([getattr(self, name) for name in names]) == tuple([getattr(other, name) for name in names])


def _hash(self: Any, owner: type, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    if arguments or named:
        return _UNDONE
    fields_of = owner.__dict__["__dataclass_fields__"].items()
    return hash(tuple([getattr(self, name) for name, item in fields_of if (item.compare if item.hash is None else item.hash)]))


def _init_source(found: dict[str, Any], space: dict[str, Any]) -> str:
    parameters, lines = ["self"], []
    space.update(_set=object.__setattr__, _Made=_Made)
    for name, item in found.items():
        value = name
        if item.default is not standard.MISSING:
            space[f"_default_{name}"] = item.default
            parameter, alone = f"{name}=_default_{name}", f"_default_{name}" if space["_slots"] else ""
        elif item.default_factory is not standard.MISSING:
            space[f"_make_{name}"] = item.default_factory
            parameter, alone = f"{name}=_Made", f"_make_{name}()"
            value = f"_make_{name}() if {name} is _Made else {name}"
        else:
            parameter, alone = name, ""
        if item.init:
            parameters.append(parameter)
        elif alone:
            value = alone
        else:
            continue
        lines.append(f" _set(self, {name!r}, {value})")
    lines.append(" self.__post_init__()" if space["_checks"] else " pass")
    return f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines)


def _tuple(owner: str, names: list[str]) -> str:
    return f"({''.join(f'{owner}.{name},' for name in names)})"


def _eq_source(found: dict[str, Any], space: dict[str, Any]) -> str:
    names = [name for name, item in found.items() if item.compare]
    return (
        "def __eq__(self, other):\n"
        f" if other.__class__ is self.__class__: return {_tuple('self', names)} == {_tuple('other', names)}\n"
        " return NotImplemented"
    )


def _hash_source(found: dict[str, Any], space: dict[str, Any]) -> str:
    names = [name for name, item in found.items() if (item.compare if item.hash is None else item.hash)]
    return f"def __hash__(self):\n return hash({_tuple('self', names)})"


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _refuse_set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for item, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
