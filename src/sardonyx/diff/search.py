"""Find the first nodes whose outputs differ between two engines, by bisection.

A part of the model runs by both engines on the same inputs, which are those that a computes; so an error is seen where it is
made, neither amplified nor damped by other nodes. Where a part differs its first half is tried, then its second; where neither
does, the error needs nodes of both, such as a fusion across the middle, and the part is made smaller from both ends. An error that
later nodes damp away is found by trying one short part after the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from sardonyx.diff.engines import Engine, Loaded
from sardonyx.diff.slices import Part, Slices
from sardonyx.diff.tensor_error import TensorError
from sardonyx.diff.tolerance import Tolerance
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import SardonyxError
from sardonyx.ir import Node, Value

__all__ = ["Compared", "Search", "Sides"]

_MOST_TRIES = 64
"""Nodes of a part up to which each is tried to be left out."""
_Values = Mapping[Value, OnnxValue]


@dataclasses.dataclass(frozen=True, slots=True)
class Sides:
    """What is compared, and how."""

    a: Engine
    """What is taken to be right."""
    b: Engine
    """What is asked."""
    plain: Engine
    """What computes the values on the way where a cannot run a part."""
    tolerance: Tolerance
    """What may differ."""
    blames_failures: bool = False
    """Whether a part that b cannot run differs: so it is where b cannot run the whole."""


@dataclasses.dataclass(frozen=True, slots=True)
class Compared:
    """A part that was run by both engines."""

    part: Part
    """The part."""
    made: Mapping[Value, OnnxValue]
    """What a computed."""
    errors: tuple[TensorError, ...]
    """The errors of its outputs."""
    others: Sequence[OnnxValue] = ()
    """What b computed, for each output; empty where it failed."""
    failure: str = ""
    """What b said where it failed."""
    loaded: Loaded | None = None
    """The part as b has loaded it."""
    differs: bool = False
    """Whether b differs from a."""
    suspect: Node | None = None
    """Of several nodes the one that makes the first value that differs where all values of the part are given out; None where
    none differs then, as where they are fused."""


class Search:
    """One search."""

    def __init__(self, slices: Slices, sides: Sides, window: int, on_step: Callable[[str], None] = lambda label: None) -> None:
        """Begin.

        Args:
            slices: of the model.
            sides: the engines, and the limits.
            window: nodes of the short parts that are tried one after another.
            on_step: called before each run of a part, with what is run.
        """
        self._slices, self._sides, self._window, self._on_step = slices, sides, max(1, window), on_step
        self.count = 0
        """How many parts were compared."""

    def compare(self, part: Part) -> Compared:
        """Run a part by both engines; raises SardonyxError where nothing but b can run it."""
        self.count += 1
        self._on_step(_label(part))
        made, is_reliable = self._run_a(part)
        values = dict(zip(part.outputs, made, strict=True))
        try:
            loaded = self._sides.b.load(part.model)
            others = loaded.run(part.feed)
        except SardonyxError as error:
            is_blamed = self._sides.blames_failures
            return Compared(part, values, (), failure=f"{type(error).__name__}: {error}" if is_blamed else "", differs=is_blamed)
        errors = self._sides.tolerance.judge(part, made, others, lambda model, feed: self._sides.a.load(model).run(feed))
        differs = is_reliable and not all(error.agrees for error in errors)
        return Compared(part, values, tuple(errors), others, loaded=loaded, differs=differs)

    def _run_a(self, part: Part) -> tuple[Sequence[OnnxValue], bool]:
        """Return the outputs of a part, and whether a itself could compute them."""
        try:
            return self._sides.a.load(part.model).run(part.feed), True
        except SardonyxError:
            return self._sides.plain.load(part.model).run(part.feed), False

    def find(self, values: _Values, known: Compared | None) -> Compared | None:
        """Return the first nodes that differ, as few as were found; None where no part does.

        Args:
            values: before the first node.
            known: the whole model, compared, where it differs.
        """
        last = len(self._slices.nodes)
        differs = known is not None and known.differs
        found = self._bisect(0, last, values, known) if known is not None and differs else self._scan(0, last, values)
        if found is None or len(found.part.nodes) == 1 or not found.errors:
            return found
        return dataclasses.replace(found, suspect=self._suspect(found.part))

    def _suspect(self, part: Part) -> Node | None:
        values = self._slices.named(part.nodes, part.feed)
        open_part = self._slices.part(part.nodes, values, gives_all=True)
        wrong = _wrong_names(self.compare(open_part))
        return next((node for node in part.nodes if any(value.name in wrong for value in node.outputs)), None)

    def _bisect(self, low: int, high: int, values: _Values, known: Compared) -> Compared:
        if high - low <= 1:
            return known
        middle = (low + high) // 2
        left = self._window_at(low, middle, values)
        if left is not None and left.differs:
            return self._bisect(low, middle, values, left)
        after = self._after(left, values, middle)
        right = self._window_at(middle, high, after)
        if right is not None and right.differs:
            return self._bisect(middle, high, after, right)
        found = self._scan(low, high, values) if high - low > self._window else None
        return found or self._across(low, middle, high, values, known)

    def _scan(self, low: int, high: int, values: _Values) -> Compared | None:
        """Try one short part after another."""
        for start in range(low, high, self._window):
            stop = min(start + self._window, high)
            found = self._window_at(start, stop, values)
            if found is not None and found.differs:
                return self._bisect(start, stop, values, found)
            end, inside = self._first_inside(start, stop, values)
            if inside is not None and inside.differs:
                return self._bisect(start, end, values, inside)
            values = self._after(found, values, stop)
        return None

    def _first_inside(self, low: int, high: int, values: _Values) -> tuple[int, Compared | None]:
        """Return the end of a window up to the first value in it that differs, and the window compared; None where none does.

        All values of the window are given out, so that none is damped away; what is fused in other runs is not fused then.
        """
        part = self._slices.part(self._slices.nodes[low:high], values, gives_all=True)
        found = self.compare(part) if part.outputs else None
        if found is None or not found.differs:
            return high, None
        wrong = _wrong_names(found)
        made = enumerate(self._slices.nodes[low:high], low + 1)
        stop = next((end for end, node in made if any(value.name in wrong for value in node.outputs)), high)
        return stop, self._window_at(low, stop, values)

    def _across(self, low: int, middle: int, high: int, values: _Values, known: Compared) -> Compared:
        """Make a part smaller that differs although its halves do not: first from the end, then from the front."""
        stop, beyond, best = high, middle, known
        while stop - beyond > 1:
            trial = (stop + beyond) // 2
            found = self._window_at(low, trial, values)
            if found is not None and found.differs:
                stop, best = trial, found
            else:
                beyond = trial
        start, beyond, held = low, middle, values
        while beyond - start > 1:
            trial = (start + beyond) // 2
            ahead = self._after(self._made(start, trial, held), held, trial)
            found = self._window_at(trial, stop, ahead)
            if found is not None and found.differs:
                start, best, held = trial, found, ahead
            else:
                beyond = trial
        return self._reduced(best, held)

    def _reduced(self, known: Compared, values: _Values) -> Compared:
        """Leave out nodes that the difference does not need: those beside it, then those before it."""
        wrong = next(
            (value for value in known.part.outputs for error in known.errors if error.name == value.name and not error.agrees), None
        )
        if wrong is not None:
            fewer = self._slices.ancestors(known.part.nodes, wrong)
            known = self._if_differs(fewer, values, known) if len(fewer) < len(known.part.nodes) else known
        if len(known.part.nodes) > _MOST_TRIES:
            return known
        for node in known.part.nodes:
            rest = [other for other in known.part.nodes if other is not node]
            if not rest or not self._slices.is_source(node, rest):
                continue
            single = self._slices.part([node], values)
            values = {**values, **(dict(zip(single.outputs, self._run_a(single)[0], strict=True)) if single.outputs else {})}
            known = self._if_differs(rest, values, known)
        return known

    def _if_differs(self, nodes: Sequence[Node], values: _Values, known: Compared) -> Compared:
        part = self._slices.part(nodes, values)
        found = self.compare(part) if part.outputs else None
        return found if found is not None and found.differs else known

    def _window_at(self, low: int, high: int, values: _Values) -> Compared | None:
        """Return nodes [low, high) compared; None where nothing reads what they make."""
        part = self._slices.part(self._slices.nodes[low:high], values)
        return self.compare(part) if part.outputs else None

    def _made(self, low: int, high: int, values: _Values) -> Compared | None:
        """Return what a computes by nodes [low, high)."""
        part = self._slices.part(self._slices.nodes[low:high], values)
        if not part.outputs:
            return None
        return Compared(part, dict(zip(part.outputs, self._run_a(part)[0], strict=True)), ())

    def _after(self, passed: Compared | None, values: _Values, index: int) -> _Values:
        return self._slices.advance(values, {} if passed is None else passed.made, index)


def _wrong_names(found: Compared) -> set[str]:
    """Return the names of outputs that differ; of an element of a sequence or a map also that of the whole."""
    differing = [error.name for error in found.errors if not error.agrees]
    return {name for full in differing for name in (full, full.partition("[")[0])}


def _label(part: Part) -> str:
    first = part.nodes[0] if part.nodes else None
    return f"{len(part.nodes)} nodes from {first.name or first.op_type}" if first is not None else "no nodes"
