"""If, Loop and Scan with bodies of a few nodes, which capture, carry, exchange and collect what they find."""

from __future__ import annotations

from collections.abc import Sequence

from fuzz.model import BodyText, Making

__all__ = ["make_if", "make_loop", "make_scan"]

_TRIPS = (3, 1, 0, 2, 4, 7, 33, 200, -1, -(1 << 63))
_UNARY = ("Neg", "Abs", "Relu", "Identity")
_BINARY = ("Add", "Sub", "Max", "Mul")


class _Inner:
    """The nodes of one body, over values of one shape."""

    def __init__(self, m: Making, known: Sequence[str], depth: int) -> None:
        self._m, self._known, self._depth = m, list(known), depth
        self.lines: list[str] = []

    def made(self) -> str:
        """A value: of a new node, mostly."""
        m = self._m
        if m.draw.chance(6):
            return m.draw.pick(self._known)
        name = m.name("b")
        way = m.draw.below(8)
        if way == 7 and self._depth:
            return self._nested(name)
        if way > 4:
            self.lines.append(f"{name} = {m.draw.pick(_UNARY)}({m.draw.pick(self._known)})")
        elif way == 4:
            first, second = m.name("b"), m.name("b")
            self.lines.append(f"{first} = Concat({m.draw.pick(self._known)}, {m.draw.pick(self._known)}) {{axis = -1}}")
            self.lines.append(f"{name}, {second} = Split({first}) {{axis = -1}}")
        else:
            self.lines.append(f"{name} = {m.draw.pick(_BINARY)}({m.draw.pick(self._known)}, {m.draw.pick(self._known)})")
        self._known.append(name)
        return name

    def _nested(self, name: str) -> str:
        """A value that a body in this one makes."""
        m = self._m
        inner = _Inner(m, self._known, self._depth - 1)
        trips, go, step, hold, state = (m.name("b") for _ in range(5))
        result, slices = inner.made(), m.name("b")
        extra = _Inner(m, [*self._known, state], 0)
        last = extra.made()
        body = " ".join(extra.lines)
        if m.draw.chance(2):
            count = m.draw.pick(_TRIPS[:5])
            self.lines.append(f"{trips}: int64[] = {count} {go}: bool[] = 1")
            head = f"graph({step}: int64[], {hold}: bool[], {state}) -> ({hold}, {last}, {last})"
            self.lines.append(f"{name}, {slices} = Loop({trips}, {go}, {m.draw.pick(self._known)}) {{body = {head} {{ {body} }} }}")
        else:
            self.lines.append(f"{go}: bool[] = {m.draw.below(2)}")
            branches = [f"graph() -> ({result}) {{ {' '.join(inner.lines)} }}", self._other_branch()]
            self.lines.append(f"{name} = If({go}) {{then_branch = {branches[0]}, else_branch = {branches[1]}}}")
        self._known.append(name)
        return name

    def _other_branch(self) -> str:
        inner = _Inner(self._m, self._known, 0)
        result = inner.made()
        return f"graph() -> ({result}) {{ {' '.join(inner.lines)} }}"


def _feeds(m: Making, count: int) -> tuple[list[int], list[str]]:
    """Inputs of one shape of at least one dimension."""
    shape = m.shape(m.small(1, 2))
    return shape, [m.feed(shape) for _ in range(count)]


def make_loop(m: Making) -> str:
    """Some carried values, some scan outputs; the number of iterations and the condition in any form."""
    _, given = _feeds(m, m.small(1, 3))
    carried, outputs = m.small(0, len(given)), m.small(0, 2)
    states = [m.name("b") for _ in range(carried)]
    step, hold, trips = m.name("b"), m.name("b"), m.draw.pick(_TRIPS)
    inner = _Inner(m, [*given, *states], 2)
    made = [inner.made() for _ in range(carried + max(outputs, 1 - carried))]
    going = hold
    if m.draw.chance(3):
        going, most = m.name("b"), m.name("b")
        inner.lines.append(f"{most}: int64[] = {m.small(0, 9)} {going} = Less({step}, {most})")
    limit = None if going != hold and m.draw.chance(3) else m.ints([trips], scalar=True)
    first = None if m.draw.chance(4) else m.weight([], "bool") if m.draw.chance(4) else m.flag(True)
    head = f"graph({', '.join([f'{step}: int64[]', f'{hold}: bool[]', *states])}) -> ({', '.join([going, *made])})"
    body = BodyText(f"{head} {{ {' '.join(inner.lines)} }}")
    return m.call("Loop", [limit, first, *given[:carried]], len(made), body=body)


def make_scan(m: Making) -> str:
    """States and sequences along any axis, from either end."""
    shape, given = _feeds(m, m.small(1, 2))
    length, count = max(m.size(), 1), m.small(1, 2)  # of no slices providers do not agree which sizes are 0
    axes = [m.axis(len(shape) + 1) for _ in range(count)]
    scanned = []
    for axis in axes:
        place = axis % (len(shape) + 1)
        scanned.append(m.feed([*shape[:place], length, *shape[place:]]))
    states = [m.name("b") for _ in range(m.small(0, len(given)))]
    slices = [m.name("b") for _ in scanned]
    inner = _Inner(m, [*given, *states, *slices], 1)
    made = [inner.made() for _ in range(len(states) + m.small(1, 2))]
    outputs = len(made) - len(states)
    head = f"graph({', '.join([*states, *slices])}) -> ({', '.join(made)})"
    return m.call(
        "Scan",
        [*given[: len(states)], *scanned],
        len(made),
        body=BodyText(f"{head} {{ {' '.join(inner.lines)} }}"),
        num_scan_inputs=count,
        scan_input_axes=axes,
        scan_input_directions=[m.draw.below(2) for _ in axes],
        scan_output_axes=[m.axis(len(shape) + 1) for _ in range(outputs)],
        scan_output_directions=[m.draw.below(2) for _ in range(outputs)],
    )


def make_if(m: Making) -> str:
    """Branches of one shape."""
    _, given = _feeds(m, 2)
    count = m.small(1, 3)
    branches = []
    for _ in range(2):
        inner = _Inner(m, given, 2)
        made = [inner.made() for _ in range(count)]
        branches.append(BodyText(f"graph() -> ({', '.join(made)}) {{ {' '.join(inner.lines)} }}"))
    condition = m.weight([1] * m.small(0, 1), "bool")
    return m.call("If", [condition], count, then_branch=branches[0], else_branch=branches[1])
