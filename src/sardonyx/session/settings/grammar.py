"""Kinds of config entries whose text is a list of pairs.

"P=65536; OpenVINO=4096,stats.csv"              limits of memory by provider
"input_ids:[8,4096]; mask:[8,4096]"             shapes by input
"cuda(encoder, =embed); cpu(decoder)"           devices of layers
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.option import Kind, Unfit
from sardonyx.partition.pins import parse_pins
from sardonyx.runtime.executor import EXECUTORS
from sardonyx.session.enums import GraphOptimizationLevel

__all__ = [
    "AFFINITY",
    "DEVICES",
    "EXECUTOR_NAME",
    "LAYERS",
    "LEVEL",
    "LIMIT",
    "LIMITS",
    "MODE",
    "PINS",
    "SHAPES",
    "YES",
    "Limit",
    "read_limit",
]

_LIMIT = re.compile(r"(\d*)\s*(?:,(.*))?", re.ASCII)
_SHAPE = re.compile(r"(.+):\s*\[([\d\s,]*)\]", re.ASCII)
_DEVICES = ("cpu", "gpu", "npu")
_NUMBER = re.compile(r"-?\d+", re.ASCII)
_MOST_PROCESSORS = 1 << 16
_RULE = re.compile(r"([^()]+)\(([^()]*)\)")


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """How much memory a provider may take."""

    kib: int | None
    """KiB; None for what the provider says that it has."""
    file: str = ""
    """A file of what nodes need, beside the model; "" for none."""


def read_limit(what: str, text: str) -> Limit:
    """Return the limit that `text` says; raises InvalidArgument, which begins with `what`, for another text."""
    try:
        return _limit(text)
    except Unfit as error:
        raise InvalidArgument(f"{what} is {LIMIT.values}; got {error}") from error


def _limit(text: str) -> Limit:
    match = _LIMIT.fullmatch(text.strip())
    if match is None or not text.strip():
        raise Unfit(text)
    return Limit(int(match[1]) if match[1] else None, (match[2] or "").strip())


def _limits(text: str) -> tuple[tuple[str, Limit], ...]:
    found: list[tuple[str, Limit]] = []
    for part in _parts(text):
        name, separator, limit = (item.strip() for item in part.partition("="))
        if not separator or not name:
            raise Unfit(part)
        found.append((name, read_limit(f"the memory limit of {name}", limit)))
    return tuple(found)


def _shapes(text: str) -> Mapping[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for part in _parts(text):
        match = _SHAPE.fullmatch(part)
        sizes = [] if match is None else [size.strip() for size in match[2].split(",")]
        if match is None or not all(size.isdigit() and int(size) > 0 for size in sizes):
            raise Unfit(part)
        found[match[1].strip()] = tuple(map(int, sizes))
    return found


def _layers(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for rule in _parts(text):
        match = _RULE.fullmatch(rule)
        if match is None:
            raise Unfit(rule)
        device = match[1].strip()
        for layer in (part.strip() for part in match[2].split(",") if part.strip()):
            if layer in found:
                raise InvalidArgument(
                    f"the layer {layer!r} is assigned twice, to {found[layer]} and {device}; give it to one device"
                )
            found[layer] = device
    return found


def _devices(text: str) -> tuple[tuple[str, str], ...]:
    found = []
    for part in (part for part in text.split(";") if part):
        device, _, number = part.partition(":")
        if device not in _DEVICES or not _NUMBER.fullmatch(number or "0"):
            raise Unfit(part)
        found.append((device, number or "0"))
    return tuple(found)


def _affinities(text: str) -> tuple[frozenset[int], ...]:
    return tuple(_processors(part) for part in text.split(";") if part)


def _processors(text: str) -> frozenset[int]:
    """Return the numbers, from 0 on, that a list "1,2" or an interval "3-5" of numbers from 1 on says."""
    first, is_interval, last = text.partition("-")
    numbers = [first, last] if is_interval else [part for part in text.split(",") if part]
    if not numbers or not all(number.isascii() and number.isdigit() and 0 < int(number) <= _MOST_PROCESSORS for number in numbers):
        raise Unfit(text)
    found = [int(number) - 1 for number in numbers]
    if is_interval and found[0] > found[1]:
        raise Unfit(text)
    return frozenset(range(found[0], found[1] + 1) if is_interval else found)


def _level(text: str) -> int:
    """Return the number that a level's number, its name, or the name without its prefix in any case stands for."""
    for level in GraphOptimizationLevel:
        if text in (level.name, str(level.value)) or f"ort_{text.lower()}" == level.name.lower():
            return int(level)
    raise Unfit(text)


def _executor(text: str) -> str:
    if text in EXECUTORS:
        return text
    with without_fork():
        from sardonyx.runtime.installed_executors import installed_executors  # which few sessions have

    if text not in installed_executors():
        raise Unfit(text)
    return text


def _mode(text: str) -> str:
    found = text.lower().removeprefix("ort_")
    if found not in ("sequential", "parallel"):
        raise Unfit(text)
    return found


def _yes(text: str) -> bool:
    if text.lower() not in ("0", "1", "false", "true"):
        raise Unfit(text)
    return text.lower() in ("1", "true")


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


LIMIT = Kind("KIB, KIB,FILE or ,FILE", _limit)
LIMITS = Kind("a list PROVIDER=KIB; PROVIDER=KIB,FILE; ...", _limits)
SHAPES = Kind("a list NAME:[SIZE,SIZE]; ... with sizes from 1 on", _shapes)
LAYERS = Kind("a list of DEVICE(TEXT, TEXT), separated by semicolons", _layers)
AFFINITY = Kind('a list "1,2;3-5" for the threads in order, with processors counted from 1', _affinities)
DEVICES = Kind('a list of devices with numbers, such as "cpu:0"', _devices)
LEVEL = Kind('0, 1, 2, 3, 99 or one of "disable_all", "enable_basic", "enable_extended", "enable_layout", "enable_all"', _level)
EXECUTOR_NAME = Kind('"sequential", "dataflow", "parallel", or the name of an installed executor', _executor)
MODE = Kind('"sequential" or "parallel"', _mode)
YES = Kind('"0" or "1", "false" or "true"', _yes)
PINS = Kind("a list WHAT=PROVIDER; ...", lambda text: parse_pins(_parts(text)))
