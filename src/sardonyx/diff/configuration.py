"""One side of a comparison: an engine and how it is set up, as text.

level=none,provider=Reference             this engine: no optimization, NumPy's kernels
provider=CPU+Reference,isa=avx2,threads=1
disable=fuse_gelu+fuse_conv,session.executor=parallel
onnxruntime,level=basic                   another engine
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from sardonyx.errors import InvalidArgument
from sardonyx.spelling import nearest

__all__ = ["ENGINES", "LEVELS", "PLAIN", "Configuration", "parse_configuration"]

ENGINES = ("sardonyx", "onnxruntime", "openvino")
"""What can run a model."""
LEVELS = {"none": 0, "basic": 1, "extended": 2, "layout": 3, "all": 99}
"""Levels of optimization, and their numbers in ONNX Runtime."""
_KEYS = ("level", "provider", "precision", "threads", "isa", "disable", "engine")
_SEPARATOR = "+"


@dataclasses.dataclass(frozen=True, slots=True)
class Configuration:
    """One side of a comparison."""

    engine: str = "sardonyx"
    """One of ENGINES."""
    level: str = "all"
    """One of LEVELS."""
    providers: tuple[str, ...] = ()
    """Execution providers in the order of priority, with or without "ExecutionProvider"; empty for the engine's own choice."""
    precision: str = ""
    """The type that providers compute in, as their option `precision` takes it; "" for theirs."""
    threads: int = 0
    """Threads of one run; 0 leaves the number open."""
    isa: str = ""
    """The instruction set of the CPU provider, such as "avx2"; "" for the best."""
    disabled: tuple[str, ...] = ()
    """Rules and passes that do not run."""
    entries: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Session config entries."""

    def __str__(self) -> str:
        parts = [self.engine] if self.engine != "sardonyx" else []
        parts += [f"level={self.level}"] if self.level != "all" else []
        parts += [f"provider={_SEPARATOR.join(self.providers)}"] if self.providers else []
        parts += [f"{name}={value}" for name in ("precision", "threads", "isa") if (value := getattr(self, name))]
        parts += [f"disable={_SEPARATOR.join(self.disabled)}"] if self.disabled else []
        parts += [f"{key}={text}" for key, text in self.entries.items()]
        return ",".join(parts) or "default"


PLAIN = Configuration(level="none", providers=("Reference",))
"""NumPy's kernels without optimization."""


def parse_configuration(text: str) -> Configuration:
    """Return the configuration that a text stands for; "" and "default" are a session without options.

    Args:
        text: parts separated by commas: an engine, or KEY=VALUE with one of level, provider, precision, threads, isa and disable,
            or with a session config entry. Several providers, rules or passes are separated by "+".

    Raises:
        InvalidArgument: a part is none of these, or a value is none that its key takes.
    """
    given: dict[str, str] = {}
    entries: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, separator, value = part.partition("=")
        if not separator:
            given |= {} if part == "default" else {"engine": _chosen("engine", part, ENGINES)}
        elif key in _KEYS:
            given[key] = value
        elif "." in key:
            entries[key] = value
        else:
            raise InvalidArgument(f"a configuration has no key {key!r}{_hint(key, _KEYS)}; it has {', '.join(_KEYS)}")
    threads = given.get("threads", "0")
    if not threads.isdigit():
        raise InvalidArgument(f"threads is a number of at least 0, got {threads!r}")
    configuration = Configuration(
        engine=_chosen("engine", given.get("engine", "sardonyx"), ENGINES),
        level=_chosen("level", given.get("level", "all"), tuple(LEVELS)),
        providers=_several(given.get("provider", "")),
        precision=given.get("precision", ""),
        threads=int(threads),
        isa=given.get("isa", ""),
        disabled=_several(given.get("disable", "")),
        entries=entries,
    )
    _check_engine(configuration)
    return configuration


def _check_engine(configuration: Configuration) -> None:
    """Refuse what only this engine has, for another: nothing that is asked for is left out in silence."""
    if configuration.engine == "sardonyx":
        return
    own = {"isa": bool(configuration.isa), "disable": bool(configuration.disabled)}
    if configuration.engine == "openvino":
        own |= {"provider": bool(configuration.providers), "level": configuration.level != "all"}
        own["config entry"] = bool(configuration.entries)
    else:
        own["precision"] = bool(configuration.precision)
    asked = [name for name, is_asked in own.items() if is_asked]
    if asked:
        raise InvalidArgument(f"{configuration.engine} takes no {' and no '.join(asked)}")


def _several(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(_SEPARATOR)))


def _chosen(what: str, text: str, known: Sequence[str]) -> str:
    if text not in known:
        raise InvalidArgument(f"there is no {what} {text!r}{_hint(text, known)}; there are {', '.join(known)}")
    return text


def _hint(text: str, known: Sequence[str]) -> str:
    close = nearest(text, known)
    return f", did you mean {close!r}?" if close else ""
