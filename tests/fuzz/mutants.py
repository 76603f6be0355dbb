"""Mutants: a model of the standard's cases, a window of a network or a drawn one, with changes of structure, bytes and feeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import onnx
from fuzz.draw import Draw
from fuzz.feeds import mutate_feeds
from fuzz.mutate import MUTATIONS, mutate_bytes
from fuzz.operators import make_case
from fuzz.seeds import Seed
from support.models import model

from sardonyx.formats.onnx import to_bytes

__all__ = ["Mutant", "make_mutant"]

_LONGEST_TEXT = 4000


@dataclasses.dataclass(frozen=True, slots=True)
class Mutant:
    """A model in bytes, which may be none any more, and what is fed to it."""

    name: str
    """What it was made of."""
    data: bytes
    """The bytes of the model."""
    feeds: dict[str, Any]
    """A value for each name."""
    damage: tuple[int, ...] = ()
    """Choices by which its compiled form is damaged before it is loaded; none where it is run as it is."""

    def content(self) -> bytes:
        """The bytes of the model."""
        return self.data

    def __str__(self) -> str:
        feeds = {name: _shown(value) for name, value in self.feeds.items()}
        damage = f"\ncompiled, damaged by {self.damage}" if self.damage else ""
        return f"{self.name}\n{_text_of(self.data)}\nfeeds {feeds}{damage}"


def make_mutant(draw: Draw, seeds: Sequence[Seed]) -> Mutant:
    """Draw a mutant of one of the seeds, or of a drawn model."""
    if not seeds or draw.chance(5):
        case = make_case(draw)
        seed = Seed("drawn", to_bytes(model(case.text, opset=case.opset)), case.feeds)
    else:
        seed = draw.pick(seeds)
    feeds = dict(seed.feeds)
    proto = onnx.load_from_string(seed.content)
    changes = draw.below(4)
    for _ in range(changes):
        draw.pick(MUTATIONS)(draw, proto, feeds)
    content = proto.SerializeToString()
    if draw.chance(10):
        content = mutate_bytes(draw, content)
    elif draw.chance(25):
        return Mutant(seed.name, content, feeds, tuple(draw.below(1 << 20) for _ in range(4)))
    if draw.chance(2):
        mutate_feeds(draw, feeds)
    return Mutant(seed.name, content, feeds)


def _text_of(content: bytes) -> str:
    """A model in the standard's text form; its bytes where it has none."""
    try:
        text: str = onnx.printer.to_text(onnx.load_from_string(content))
    except Exception:  # noqa: BLE001  bytes that are no model any more
        text = content.hex()
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} …"


def _shown(value: Any) -> str:
    if hasattr(value, "dtype"):
        strides = "" if value.flags.c_contiguous else f" strides {value.strides}"
        return f"{value.dtype}{list(value.shape)}{strides} {value.reshape(-1)[:16].tolist()}"
    return repr(value)[:200]
