"""Report what each rule did at one node: how far it matched, and why it stopped."""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Iterable

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.optimize.report import NodeLabel

__all__ = ["Attempt", "FusionReport", "Outcome", "label_text"]

_WIDTH = 80
_INDENT = 14
_TIE = "\0"
"""Stands for a space at which no line may end."""
_MOST_SINGLE = 10
"""How many rules that matched one node are shown with what they expected."""


class Outcome(enum.StrEnum):
    """How the best attempt of a rule or pass ended."""

    FIRED = "fired"
    """It replaced the node."""
    NOT_TRIED = "not tried"
    """Its pattern is there in the optimized model, but it takes no part."""
    DECLINED = "declined"
    """Its pattern matched whole, but a condition that no pattern can say does not hold."""
    STOPPED = "stopped"
    """A part of its pattern matched."""
    CHANGED = "changed"
    """It is a pass, and the node is no more, or another one in its place."""


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """The attempt of one rule that came furthest at the node, or the change that a pass made to it."""

    optimization: str
    """The rule or pass."""
    outcome: Outcome
    """How it ended."""
    matched: tuple[NodeLabel, ...]
    """The nodes that matched, the root of the pattern first."""
    pattern_size: int
    """How many nodes the smallest match of the pattern has; 0 for a pass."""
    reason: str = ""
    """Why it declined or takes no part, or what a pass did."""
    place: str = ""
    """Where it stopped: an input of a matched node."""
    expected: str = ""
    """What the pattern has there."""
    found: str = ""
    """What the model has there."""
    made: tuple[NodeLabel, ...] = ()
    """The nodes that it put in place of those that matched."""

    @property
    def is_single(self) -> bool:
        """Return whether one node of several matched."""
        return self.outcome is Outcome.STOPPED and len(self.matched) == 1 < self.pattern_size

    def __str__(self) -> str:
        size = max(self.pattern_size, len(self.matched))
        progress = f", {len(self.matched)} of {size} nodes matched" if self.outcome is Outcome.STOPPED else ""
        is_without_new = self.outcome is Outcome.FIRED and not self.made
        fields = {
            "matched": _listed(self.matched),
            "made": "no new node" if is_without_new else _listed(self.made),
            "at": self.place,
            "expected": self.expected,
            "found": self.found,
            "reason": self.reason,
        }
        lines = [_filled(f"    {name:10s}", text) for name, text in fields.items() if text]
        return "\n".join([f"{self.optimization}: {self.outcome}{progress}", *lines])


@dataclasses.dataclass(frozen=True, slots=True)
class FusionReport:
    """Why a node was fused or not; as text of 80 columns by `str`."""

    model: str
    """The model, as messages name it."""
    node: NodeLabel
    """The node."""
    attempts: tuple[Attempt, ...]
    """What happened first; then for each rule that matched the node the attempt that came furthest, the furthest first."""

    def __str__(self) -> str:
        parts = [f"{label_text(self.node)} in {self.model}"]
        parts += [str(attempt) for attempt in self.attempts if not attempt.is_single]
        single = sorted((attempt for attempt in self.attempts if attempt.is_single), key=lambda attempt: attempt.pattern_size)
        if single:
            lines = [_filled(f"    {item.optimization}: ", f"{item.expected} at {item.place}") for item in single[:_MOST_SINGLE]]
            parts.append("\n".join(["Rules that matched one node, and what they expected beside it:", *lines]))
        further = sorted(attempt.optimization for attempt in single[_MOST_SINGLE:])
        if further:
            parts.append(_filled(f"{len(further)} more of these: ", ", ".join(further)))
        if not self.attempts:
            parts.append("No rule matched a part of its pattern here, and no pass changed the node. Ask at a node beside it.")
        return "\n\n".join(parts)


def label_text(label: NodeLabel) -> str:
    """Return what text calls a node: its operator and its name, in one line."""
    return f"{label.operator} {label.name}".rstrip()


def _listed(labels: Iterable[NodeLabel]) -> str:
    return ", ".join(label_text(label).replace(" ", _TIE) for label in labels)


def _filled(start: str, text: str) -> str:
    """Return `start` and `text` in lines of 80 columns, where words allow it."""
    filler = textwrap.TextWrapper(
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filler.fill(text).replace(_TIE, " ")
