"""What a search says of its findings: each at once, as it was found, then made small; crashes and hangs one by one, others once.

Differences from onnxruntime are said once for each model that was changed, and not made small: most are of its own making, such as
elements that it never writes, and a smaller one has another cause.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection
from pathlib import Path

from fuzz.draw import Draw
from fuzz.harness import Runnable, finding_of, kind_of, make_small, signature_of

__all__ = ["Findings"]

_EACH = ("crash", "hang")
"""Kinds of which none is left out because there was one like it."""


class Findings:
    """The findings of a search, by what they have in common."""

    def __init__(self, make: Callable[[Draw], Runnable], kinds: Collection[str], folder: Path | None = None) -> None:
        """Say findings of these kinds, of cases that `make` draws, and keep model and feeds of each in `folder`, if it is given."""
        self._make, self._kinds, self._folder = make, kinds, folder
        self._known: set[str] = set()

    def add(self, seed: int, finding: str, say: Callable[[str], object]) -> None:
        """Say a finding of the case of a seed, if it is of a kind that counts and nothing like it was said before."""
        kind = kind_of(finding)
        if kind not in self._kinds:
            return
        if kind == "search":
            if self._is_new(signature_of(finding)):
                say(f"seed {seed}: {finding}\n")
            return
        draw = Draw.seeded(seed)
        case = self._make(draw)
        is_new = self._is_new(signature_of(finding) if kind != "peer" else f"peer {getattr(case, 'name', '')}")
        if is_new or _is_one_of_each(finding):
            self._say_and_keep(case, f"seed {seed}: {finding}", f"{seed}-{kind}", say)
        if is_new and kind != "peer":
            self._say_small(seed, finding, draw, say)

    def _is_new(self, signature: str) -> bool:
        is_new = signature not in self._known
        self._known.add(signature)
        return is_new

    def _say_small(self, seed: int, finding: str, draw: Draw, say: Callable[[str], object]) -> None:
        again = finding_of(lambda: self._make(Draw(draw.choices)))
        if kind_of(again) != kind_of(finding):
            say(f"seed {seed}: only after the cases before it; alone: {again or 'nothing'}\n")
            return
        text, small = make_small(draw.choices, again, self._make)
        self._say_and_keep(small, f"seed {seed}, made small: {text}", f"{seed}-{kind_of(finding)}-small", say)

    def _say_and_keep(self, case: Runnable, finding: str, name: str, say: Callable[[str], object]) -> None:
        text = f"{finding}\n{finding_of(case, str)}\n"  # in a child, since onnx's printer may crash
        say(text)
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{name}.txt").write_text(text, encoding="utf-8", errors="replace")
        (self._folder / f"{name}.onnx").write_bytes(case.content())
        (self._folder / f"{name}.pickle").write_bytes(pickle.dumps(case.feeds))


def _is_one_of_each(finding: str) -> bool:
    kind, _, rest = finding.partition(": ")
    return kind in _EACH or kind_of(rest) in _EACH
