"""One option that is given as text: a session config entry, a provider option or an environment variable.

    THREADS = Option("intra_op_num_threads", COUNT, 0, "threads of one provider; 0 leaves the number open")
    THREADS.read({"intra_op_num_threads": "4"})        4
    THREADS.read({})                                   0
    THREADS.read({"intra_op_num_threads": "four"})     InvalidArgument: intra_op_num_threads is a number of at least 0, got 'four'

Options are read by their own `read` only, and listed in tables, of which the documentation is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument
from sardonyx.spelling import nearest

__all__ = [
    "COUNT",
    "FLAG",
    "NAMES",
    "PATH",
    "POSITIVE",
    "SECONDS",
    "SIZE_BYTES",
    "TEXT",
    "Ignored",
    "Kind",
    "Option",
    "Unfit",
    "check_names",
    "choice",
    "is_foreign",
]

_T_co = TypeVar("_T_co", covariant=True)


class Unfit(ValueError):
    """A text, or the part of it that is named, is none of the values that an option takes."""

    def __init__(self, text: str) -> None:
        """Name the part."""
        super().__init__(repr(text))


@dataclasses.dataclass(frozen=True, slots=True)
class Kind(Generic[_T_co]):
    """The values that an option takes."""

    values: str
    """In words that can follow "is", such as "a number of at least 0"."""
    parse: Callable[[str], _T_co]
    """The value that a text stands for; raises Unfit."""


@dataclasses.dataclass(frozen=True, slots=True)
class Option(Generic[_T_co]):
    """An option: its name, its values and its meaning."""

    name: str
    """The key by which it is given."""
    kind: Kind[Any]
    """The values that it takes."""
    default: _T_co
    """The value where it is left out or empty."""
    meaning: str
    """What it does, for the documentation."""
    since: str = "0.1"
    """The version of sardonyx that brought it."""

    def read(self, given: Mapping[str, str]) -> _T_co:
        """Return the value of this option among texts by name; raises InvalidArgument where the text is none of its values."""
        text = given.get(self.name, "")
        if not text:
            return self.default
        try:
            value: _T_co = self.kind.parse(text)
        except Unfit as error:
            raise InvalidArgument(f"{self.name} is {self.kind.values}, got {error}") from error
        return value

    @property
    def default_text(self) -> str:
        """The default as it would be given, "" for none."""
        if isinstance(self.default, bool):
            return str(int(self.default))
        if isinstance(self.default, (int, float, str)):
            return str(self.default)
        return ""


@dataclasses.dataclass(frozen=True, slots=True)
class Ignored:
    """An option of onnxruntime's that is accepted and has no effect."""

    name: str
    """Its key; one that ends in "." or "_" stands for all keys that begin so."""
    reason: str
    """Why it has none, for the documentation."""
    usual: str | None = None
    """The text that asks for nothing; one that differs is warned of. None where no text is worth a warning."""


def choice(*texts: str) -> Kind[str]:
    """Return the kind of options that take one of `texts`."""

    def parse(text: str) -> str:
        if text not in texts:
            raise Unfit(text)
        return text

    quoted = [f'"{text}"' for text in texts]
    return Kind(" or ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]])), parse)


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise Unfit(text)
    return text == "1"


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise Unfit(text)
    return int(text)


def _positive(text: str) -> int:
    if _count(text) < 1:
        raise Unfit(text)
    return int(text)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError as error:
        raise Unfit(text) from error
    if not 0 <= found < float("inf"):
        raise Unfit(text)
    return found


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";") if part.strip())


FLAG = Kind('"0" or "1"', _flag)
COUNT = Kind("a number of at least 0", _count)
POSITIVE = Kind("a number of at least 1", _positive)
SIZE_BYTES = Kind("a number of bytes", _count)
SECONDS = Kind("a number of seconds", _seconds)
TEXT = Kind("a text", str)
PATH = Kind("a path", str)
NAMES = Kind("a list of names, separated by semicolons", _names)


def check_names(owner: str, given: Iterable[str], known: Sequence[Option[object]]) -> None:
    """Raise InvalidArgument where a name among `given` is none of an owner's options; the message says which is near."""
    names = [option.name for option in known]
    unknown = sorted(set(given) - set(names))
    if unknown:
        close = nearest(unknown[0], names)
        advice = f"did you mean {close!r}?" if close else f"it has {', '.join(names) or 'none'}"
        raise InvalidArgument(f"{owner} has no options {unknown}; {advice}")


def is_foreign(name: str, ignored: Iterable[Ignored]) -> Ignored | None:
    """Return which of `ignored` the option `name` is, or None."""
    return next(
        (item for item in ignored if name == item.name or (item.name.endswith((".", "_")) and name.startswith(item.name))), None
    )
