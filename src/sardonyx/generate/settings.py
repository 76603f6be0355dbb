"""How tokens are chosen, and when a row ends: the settings of a generation, checked once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.spelling import nearest

__all__ = ["Processor", "Settings", "is_whole", "settings_of"]

Processor = Callable[[Sequence[int], Array], Array]
"""A function of a row's tokens so far, prompt included, and float32 scores (vocabulary,), which returns scores of the same
shape."""

_SAMPLING = ("temperature", "top_k", "top_p", "min_p")
"""What has a meaning only when tokens are drawn."""
_TOKENS = ("eos_token_id", "suppress_tokens", "begin_suppress_tokens", "forced_eos_token_id")
_MAY_BE_NONE = ("max_new_tokens", "forced_bos_token_id", "seed")
_ELSEWHERE = {
    "max_length": "max_new_tokens, which does not count the prompt",
    "min_length": "min_new_tokens, which does not count the prompt",
    "max_tokens": "max_new_tokens",
    "stop": "stop_words",
    "stop_strings": "stop_words",
    "logits_processor": "processors",
}
"""Settings of other packages -> what serves for them here."""
_MOST = float(np.finfo(np.float32).max)
"""The greatest number that scores, which are float32, can be divided or multiplied by."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """How a row is continued; the names are those of `generation_config.json`."""

    max_new_tokens: int | None = None
    """Most tokens that are made; None for 256, or as many as the model's range leaves where that is fewer."""
    min_new_tokens: int = 0
    """Before so many are made, none of `eos_token_id` is chosen."""
    do_sample: bool = False
    """Draw tokens by their probability rather than take the most probable one."""
    temperature: float = 1.0
    """What scores are divided by before tokens are drawn; 0 takes the most probable token."""
    top_k: int = 0
    """Draw among this many tokens of the highest scores; 0 for all."""
    top_p: float = 1.0
    """Draw among the fewest tokens whose probabilities sum up to at least this."""
    min_p: float = 0.0
    """Draw among tokens whose probability is at least this part of the highest one."""
    repetition_penalty: float = 1.0
    """What positive scores of tokens that the row has are divided by, and negative ones multiplied by."""
    no_repeat_ngram_size: int = 0
    """No sequence of so many tokens is made twice; 0 for no limit."""
    num_beams: int = 1
    """How many beams are searched; 1 for none."""
    length_penalty: float = 1.0
    """The exponent of the length that a beam's score is divided by."""
    early_stopping: bool | str = False
    """When beams end: True at `num_beams` results, False when a better one is unlikely, "never" when none can be."""
    num_return_sequences: int = 1
    """How many results a prompt gets."""
    eos_token_id: tuple[int, ...] = ()
    """Tokens that end a row; the result has the one that did."""
    stop_sequences: tuple[tuple[int, ...], ...] = ()
    """Sequences of tokens that end a row."""
    stop_words: tuple[str, ...] = ()
    """Texts that end a row, which its text then ends before; these need a tokenizer."""
    suppress_tokens: tuple[int, ...] = ()
    """Tokens that are never chosen."""
    begin_suppress_tokens: tuple[int, ...] = ()
    """Tokens that are not chosen first."""
    forced_bos_token_id: int | None = None
    """The token that comes first."""
    forced_eos_token_id: tuple[int, ...] = ()
    """The tokens of which one comes last where `max_new_tokens` ends the row."""
    seed: int | None = None
    """The seed of the numbers that draw tokens, for equal results; None for other ones each time."""
    processors: tuple[Processor, ...] = ()
    """Functions that change scores, in this order, before temperature and limits."""

    def __post_init__(self) -> None:
        _check_whole(self, "max_new_tokens", 1)
        if not isinstance(self.do_sample, (bool, int)):
            raise InvalidArgument(f"do_sample is True or False, got {self.do_sample!r}")
        for name in ("min_new_tokens", "top_k", "no_repeat_ngram_size"):
            _check_whole(self, name, 0)
        for name in ("num_beams", "num_return_sequences"):
            _check_whole(self, name, 1)
        _check_number(self, "temperature", 0, _MOST)
        _check_number(self, "top_p", 0, 1)
        _check_number(self, "min_p", 0, 1)
        _check_number(self, "length_penalty", -_MOST, _MOST)
        _check_number(self, "repetition_penalty", 0, _MOST)
        for name in ("forced_bos_token_id", "seed"):
            if getattr(self, name) is not None:
                _check_whole(self, name, 0)
        if self.repetition_penalty == 0 or self.top_p == 0:
            raise InvalidArgument("repetition_penalty and top_p are greater than 0; 1 has no effect")
        if self.early_stopping not in (True, False, "never"):
            raise InvalidArgument(f'early_stopping is True, False or "never", got {self.early_stopping!r}')
        if self.num_return_sequences > self.num_beams and not self.draws:
            raise InvalidArgument(
                f"num_return_sequences={self.num_return_sequences} needs as many beams (num_beams={self.num_beams}) or "
                "do_sample=True: "
                "without either, all results are equal"
            )
        if any(not word for word in (*self.stop_words, *self.stop_sequences)):
            raise InvalidArgument("an empty text or sequence among stop_words and stop_sequences would end every row at once")
        if any(not callable(function) for function in self.processors):
            raise InvalidArgument("processors are functions of a row's tokens and its scores")

    @property
    def draws(self) -> bool:
        """Whether tokens are drawn."""
        return self.do_sample and self.temperature > 0

    @property
    def changes_scores(self) -> bool:
        """Whether scores are changed before a token is chosen."""
        return (
            self.repetition_penalty != 1
            or self.no_repeat_ngram_size > 0
            or self.min_new_tokens > 0
            or self.forced_bos_token_id is not None
            or bool(self.forced_eos_token_id or self.suppress_tokens or self.begin_suppress_tokens or self.processors)
        )


def settings_of(base: Settings, changes: Mapping[str, Any]) -> Settings:
    """Return settings with some changed; one of temperature, top_k, top_p and min_p without do_sample draws tokens.

    Args:
        base: what holds for the others.
        changes: field of Settings -> value (Any: as users and JSON write them): numbers of NumPy too; any collection where the
            field is a tuple, and one item for a tuple of one; None for none of what a tuple lists, and for what `base` says where a
            field cannot be None.

    Raises:
        InvalidArgument: there is no such setting, or a value is not one of it.
    """
    known = {field.name for field in dataclasses.fields(Settings)}
    for name in changes:
        if name not in known:
            raise InvalidArgument(f"there is no setting {name!r}; {_advice(name, known)}")
    values = {name: _value(name, value) for name, value in changes.items() if _is_stated(name, value)}
    if "do_sample" not in values and any(values.get(name) is not None for name in _SAMPLING):
        values["do_sample"] = True
    return dataclasses.replace(base, **values)


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number, of Python or of NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _advice(name: str, known: set[str]) -> str:
    if name in _ELSEWHERE:
        return f"give {_ELSEWHERE[name]}"
    close = nearest(name, known)
    return f"did you mean {close!r}?" if close else f"there are {sorted(known)}"


def _is_stated(name: str, value: Any) -> bool:
    return value is not None or name in _MAY_BE_NONE or name in _COLLECTIONS


def _value(name: str, value: Any) -> Any:
    """Return what a user or a configuration says as the field has it; what cannot be is left for the checks of Settings."""
    collection = _COLLECTIONS.get(name)
    if collection is not None:
        return () if value is None else collection(name, value)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _tokens(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, (list, tuple, set, frozenset, range, np.ndarray)):
        found = list(value) if not isinstance(value, np.ndarray) else value.reshape(-1).tolist()
    else:
        found = [value]
    if not all(is_whole(token) for token in found):
        raise InvalidArgument(f"{name} is the number of a token, or a list of such, got {value!r}")
    return tuple(int(token) for token in found)


def _sequences(name: str, value: Any) -> tuple[tuple[int, ...], ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InvalidArgument(f"{name} is a list of lists of tokens, such as [[4, 5]], got {value!r}")
    sequences = list(value)
    if any(is_whole(sequence) for sequence in sequences):
        raise InvalidArgument(f"{name} is a list of lists of tokens: give [{value!r}] for one sequence")
    return tuple(_tokens(name, sequence) for sequence in sequences)


def _words(name: str, value: Any) -> tuple[str, ...]:
    found: list[Any] = [value] if isinstance(value, (str, bytes)) or not isinstance(value, Iterable) else list(value)
    if any(not isinstance(word, str) for word in found):
        raise InvalidArgument(f"{name} is a text, or a list of texts, got {value!r}")
    return tuple(found)


def _functions(_name: str, value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


_COLLECTIONS: Mapping[str, Callable[[str, Any], tuple[Any, ...]]] = {
    **dict.fromkeys(_TOKENS, _tokens),
    "stop_sequences": _sequences,
    "stop_words": _words,
    "processors": _functions,
}
"""Fields that are tuples -> how a value becomes one."""


def _check_whole(settings: Settings, name: str, least: int) -> None:
    value = getattr(settings, name)
    if value is None and name == "max_new_tokens":
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArgument(f"{name} is a whole number of at least {least}, got {value!r}")


def _check_number(settings: Settings, name: str, least: float, most: float) -> None:
    value = getattr(settings, name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidArgument(f"{name} is a number from {least} to {most}, got {value!r}")
