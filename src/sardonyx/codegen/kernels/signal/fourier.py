"""Discrete Fourier transforms of any length, in O(n log n); ONNX DFT and STFT.

A transform of P elements is a chain of stages, one for each factor of P (Stockham's order, which needs no bit reversal): with
factor r, s lines or transforms so far side by side, and m = what is left of the length,

    y[q + s * (r * p + k)] = W(n)^(p k) * sum over j of W(r)^(j k) * x[q + s * (p + m * j)],      n = r * m,   q < s, p < m

where W(n) = exp(-2 pi i / n). Vectors go along q, or along p and q together while s is less than a vector. Real and imaginary
parts lie apart, in planes:

    work, of each task that runs at a time:  | real, P * B | imaginary | real of the other side | imaginary |

B lines lie side by side: one, or a vector of them. A length with a prime factor above MOST_FACTOR becomes a convolution with a
chirp (Bluestein's algorithm) of a length P that has small factors:

    X[k] = c[k] * sum over n of (x[n] c[n]) * conj(c[k - n]),      c[k] = exp(-pi i k^2 / N)

    table:  | real parts of W(P)^k, P | imaginary | real parts of c, N | imaginary | transform of the chirp / P, P | imaginary |

An inverse transform is one with real and imaginary parts exchanged. Each line is computed as it is alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.turns import cosine_and_sine
from sardonyx.codegen.emit.types import F64, I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.signal.butterflies import BUTTERFLIES, Complex, add, multiply, subtract

__all__ = ["MOST_FACTOR", "TURNS_BLOCK", "Lines", "write_chirp_filter", "write_fourier", "write_turns"]

MOST_FACTOR = 61
"""The largest prime factor of a length that is transformed by stages."""
TURNS_BLOCK = 1 << 12
"""Elements in one task of `write_turns`."""

PADDED, SIDE, LENGTH, GIVEN, LINES, GROUP = range(6)
IN_GROUP, IN_LINE, IN_STEP, OUT_GROUP, OUT_LINE, OUT_STEP = range(6, 12)
BINS, TOGETHER, SETS, SCALE, IS_CHIRPED, FIRST_TASK, FIRST_TURN, END_TURN, STAGES, FACTORS = range(12, 22)
"""The parameters of `write_fourier`: P, B, N, elements of a line that are read, how many lines there are, and how many in a group;
from one group, line and element to the next, in x and in y; elements that are stored, tasks that run at a time, how many times B
lines a task has, a factor of the result, whether there is a chirp, the number of the first task, the turns of the kernel, how many
stages, and their factors.

A turn is one stage; the stages of the second transform, where there is a chirp, follow those of the first. A kernel that does not
make all turns finds its lines where another left them, in the work memory of the same task, of one set of lines."""

_Planes: TypeAlias = tuple[Pointer, Pointer]


@dataclasses.dataclass(frozen=True, slots=True)
class Lines:
    """What lines are read and stored as."""

    is_complex: bool
    """Whether elements of x have an imaginary part."""
    inverse: bool
    """Whether the transform is the inverse one."""
    mirrored: bool
    """Whether x has the bins of a real signal up to the middle, and y is that signal."""
    windowed: bool
    """Whether elements are multiplied by those of a window."""

    @property
    def key(self) -> str:
        """A name that no other way has."""
        words = {"complex": self.is_complex, "inverse": self.inverse, "mirrored": self.mirrored, "windowed": self.windowed}
        return "_".join(word for word, holds in words.items() if holds) or "real"


def write_turns(module: Module, symbol: str, kind: Type, *, squared: bool) -> None:
    """Write the kernel `symbol`: of `count` elements k the real parts of exp(-2 pi i k / whole), then the imaginary ones.

    Parameters: count, whole, where they begin in the only buffer. With `squared`, k ** 2 is in the place of k.
    """
    with module.kernel(symbol) as b:
        count, whole = b.param(0), b.param(1)
        table = b.buffer(0, kind).at(b.param(2))
        with b.loop(b.begin, b.end) as task:
            for k, span in b.vectors(task * TURNS_BLOCK, b.min((task + 1) * TURNS_BLOCK, count), F64):
                number = b.iota(I64, span.lanes) + k
                part = (number * number) % whole if squared else number
                cosine, sine = cosine_and_sine(b, part, whole)
                table.store(cosine.to(kind), k, span)
                table.store((-sine).to(kind), k + count, span)


def write_chirp_filter(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: the transform of the conjugate chirp, by P, at the end of the table; buffers: table, work.

    The parameters are those of `write_fourier`, for one line; its only task is all of it.
    """
    transform = _write_transform(module, symbol, kind)
    with module.kernel(symbol) as b, b.loop(b.begin, b.end):
        padded, length = b.param(PADDED), b.param(LENGTH)
        table, work = b.buffer(0, kind), b.buffer(1, kind)
        chirp, planes = _planes(table.at(padded * 2), length), _planes(work, padded)
        with b.when(b.param(FIRST_TURN).eq(0)):
            _load_chirp(b, kind, chirp, planes, work)
        zero = b.const(I64, 0)
        b.call_part(transform, work, table, zero, zero, padded, *_turns(b, zero))
        with b.when(b.param(END_TURN) >= b.param(STAGES)):
            found = _planes(work.at((b.param(STAGES) & 1) * padded * 2), padded)
            kept = _planes(table.at((padded + length) * 2), padded)
            for source, target in zip(found, kept, strict=True):
                for k, span in b.vectors(0, padded, kind):
                    target.store(source.load(k, span) / padded.to(kind), k, span)


def _load_chirp(b: Kernel, kind: Type, chirp: _Planes, planes: _Planes, work: Pointer) -> None:
    """Copy the conjugate chirp into the planes, forwards from the front and backwards from the end, and zeros between."""
    padded, length = b.param(PADDED), b.param(LENGTH)
    for k, span in b.vectors(0, padded * 2, kind):
        work.store(b.const(kind.vector(span.lanes), 0.0), k, span)
    for sign, source, target in zip((1.0, -1.0), chirp, planes, strict=True):
        with b.loop(0, length) as k:
            element = source.load(k) * sign
            target.store(element, k)
            with b.when(k > 0):
                target.store(element, padded - k)


def _turns(b: Kernel, before: Register) -> tuple[Register, Register]:
    """Return the first stage that the kernel makes of a transform with so many turns before it, and the one behind its last."""
    return b.param(FIRST_TURN) - before, b.param(END_TURN) - before


def write_fourier(module: Module, symbol: str, kind: Type, lines: Lines) -> None:
    """Write the kernel `symbol`: buffers x, table, work, y, and the window where there is one."""
    transform = _write_transform(module, symbol, kind)
    with module.kernel(symbol) as b:
        side, per_task = b.param(SIDE), b.param(SIDE) * b.param(SETS)
        with b.loop(b.begin, b.end) as task:
            work = b.buffer(2, kind).at(task % b.param(TOGETHER) * b.param(PADDED) * side * 4)
            number = task + b.param(FIRST_TASK)
            with b.loop(number * per_task, b.min((number + 1) * per_task, b.param(LINES)), side) as first:
                _transform_lines(b, kind, lines, transform, work, first)


def _transform_lines(b: Kernel, kind: Type, lines: Lines, transform: Kernel, work: Pointer, first: Register) -> None:
    """Make the turns of the kernel with B lines."""
    padded, length, stages, zero = b.param(PADDED), b.param(LENGTH), b.param(STAGES), b.const(I64, 0)
    plane, table = padded * b.param(SIDE), b.buffer(1, kind)
    parts, chirp = _planes(work, plane), _planes(table.at(padded * 2), length)
    chirped = b.param(IS_CHIRPED).ne(0)
    with b.when(b.param(FIRST_TURN).eq(0)):
        _load_lines(b, kind, lines, first, parts[::-1] if lines.inverse else parts)
        with b.when(chirped):
            _multiply_all(b, kind, parts, chirp, length)
    b.call_part(transform, work, table, zero, zero, plane, *_turns(b, zero))
    end = (stages & 1) * plane * 2
    with b.when(chirped):
        with b.when((b.param(FIRST_TURN) < stages) & (b.param(END_TURN) >= stages)):
            _multiply_all(b, kind, _planes(work.at(end), plane), _planes(table.at((padded + length) * 2), padded), padded)
        b.call_part(transform, work, table, end, plane, zero, *_turns(b, stages))
    with b.when(b.param(END_TURN) >= stages + b.select(chirped, stages, 0)):
        with b.when(chirped):
            _multiply_all(b, kind, parts, chirp, length)
        found = _planes(work.at(b.select(chirped, 0, end)), plane)
        _store_lines(b, kind, lines, first, found[::-1] if lines.inverse else found)


def _planes(first: Pointer, size: Register) -> _Planes:
    return first, first.at(size)


def _multiply_all(b: Kernel, kind: Type, parts: _Planes, factors: _Planes, count: Register) -> None:
    """Multiply element k of each line by factor k."""
    side = b.param(SIDE)

    def along() -> None:
        for k, span in b.vectors(0, count, kind):
            one = (factors[0].load(k, span), factors[1].load(k, span))
            _store_pair(parts, multiply(b, _load_pair(parts, k, span), one), k, span)

    def across() -> None:
        with b.loop(0, count) as k:
            one = (factors[0].load(k), factors[1].load(k))
            for q, span in b.vectors(0, side, kind):
                place = k * side + q
                _store_pair(parts, multiply(b, _load_pair(parts, place, span), one), place, span)

    b.branch(side.eq(1), along, across)


def _load_pair(parts: _Planes, place: Register, span: Span) -> Complex:
    return parts[0].load(place, span), parts[1].load(place, span)


def _store_pair(parts: _Planes, pair: Complex, place: Register, span: Span) -> None:
    for plane, one in zip(parts, pair, strict=True):
        plane.store(one, place, span)


# -- reading and storing lines


def _place_of(b: Kernel, line: Register, group: int) -> Register:
    """Return where a line begins; `group` is the parameter that says how far groups lie apart, behind which the others are."""
    size = b.param(GROUP)
    return line // size * b.param(group) + line % size * b.param(group + 1)


def _places_of(b: Kernel, kind: Type, first: Register, group: int) -> Register:
    """Return where each of a vector of lines begins; those behind the last line are where that is."""
    lanes = b.lanes(kind)
    places = b.stack(I64, lanes)
    with b.loop(0, lanes) as lane:
        places.store(_place_of(b, b.min(first + lane, b.param(LINES) - 1), group), lane)
    return places.load(0, lanes)


def _load_lines(b: Kernel, kind: Type, lines: Lines, first: Register, parts: _Planes) -> None:
    """Copy B lines into the planes, the window applied, and zeros behind them."""
    padded, side, there, step = b.param(PADDED), b.param(SIDE), b.param(GIVEN), b.param(IN_STEP)
    x, window = b.buffer(0, kind), b.buffer(4, kind) if lines.windowed else None
    count = 2 if lines.is_complex else 1

    def put(elements: Sequence[Register], factor: Register | None, place: Register, span: Span) -> None:
        weighted = elements if factor is None else [element * factor for element in elements]
        zeros = b.const(kind.vector(span.lanes), 0.0)
        _store_pair(parts, (weighted[0], weighted[1] if lines.is_complex else zeros), place, span)

    def alone() -> None:
        line = x.at(_place_of(b, first, IN_GROUP))

        def adjacent() -> None:
            for i, span in b.vectors(0, there, kind):
                put(_adjacent_parts(b, line.at(i * count), count, span), window and window.load(i, span), i, span)

        def apart() -> None:
            for i, span in b.vectors(0, there, kind):
                at, places = line.at(i * step), b.iota(I64, span.lanes) * step
                put([_get(at.at(part), places, span) for part in range(count)], window and window.load(i, span), i, span)

        b.branch(step.eq(count), adjacent, apart)

    def together() -> None:
        places, whole = _places_of(b, kind, first, IN_GROUP), Span(b.lanes(kind))
        with b.loop(0, there) as i:
            elements = [x.at(i * step + part).gather(places) for part in range(count)]
            put(elements, window and window.load(i), i * side, whole)

    b.branch(side.eq(1), alone, together)
    for plane in parts:
        for i, span in b.vectors(there * side, padded * side, kind):
            plane.store(b.const(kind.vector(span.lanes), 0.0), i, span)
    if lines.mirrored:
        _mirror(b, parts)


def _adjacent_parts(b: Kernel, at: Pointer, count: int, span: Span) -> list[Register]:
    """Return the first of `count` parts of a vector of elements, then the second."""
    if count == 1:
        return [at.load(0, span)]
    if span.lanes == 1:
        return [at.load(0), at.load(1)]
    both = at.load(0, Span(2 * span.lanes, None if span.mask is None else b.interleave(span.mask, span.mask)))
    return [both.shuffle(range(part, 2 * span.lanes, 2)) for part in range(2)]


def _get(at: Pointer, places: Register, span: Span) -> Register:
    return at.load(places) if span.lanes == 1 else at.gather(places, span.mask)


def _clear_real_bins(b: Kernel, imaginary: Pointer) -> None:
    """Store the zeros that the imaginary parts of the first and, of even lengths, the middle bin of a real signal are."""
    side, length = b.param(SIDE), b.param(LENGTH)
    with b.loop(0, side) as q:
        imaginary.store(0.0, q)
        with b.when((length & 1).eq(0)):
            imaginary.store(0.0, length // 2 * side + q)


def _mirror(b: Kernel, parts: _Planes) -> None:
    """Add the bins behind the middle, which are conjugates of those before it; those at both ends of the half are real."""
    side, length = b.param(SIDE), b.param(LENGTH)
    _clear_real_bins(b, parts[1])
    with b.loop(0, side) as q, b.loop(length // 2 + 1, length) as k:
        source, target = (length - k) * side + q, k * side + q
        parts[0].store(parts[0].load(source), target)
        parts[1].store(-parts[1].load(source), target)


def _store_lines(b: Kernel, kind: Type, lines: Lines, first: Register, parts: _Planes) -> None:
    """Copy the bins of B lines from the planes into y."""
    side, step, bins, scale = b.param(SIDE), b.param(OUT_STEP), b.param(BINS), b.param_float(SCALE, kind)
    y, wanted = b.buffer(3, kind), parts[:1] if lines.mirrored else parts
    if not lines.is_complex and not lines.mirrored:
        _clear_real_bins(b, parts[1])

    def scaled(plane: Pointer, place: Register, span: Span) -> Register:
        element = plane.load(place, span)
        return element * scale if lines.inverse else element

    def alone() -> None:
        line = y.at(_place_of(b, first, OUT_GROUP))

        def contiguous() -> None:
            for k, span in b.vectors(0, bins, kind):
                found = [scaled(plane, k, span) for plane in wanted]
                if len(found) == 1:
                    line.store(found[0], k, span)
                elif span.lanes == 1:
                    line.store(found[0], k * 2)
                    line.store(found[1], k * 2 + 1)
                else:
                    mask = None if span.mask is None else b.interleave(span.mask, span.mask)
                    line.store(b.interleave(*found), k * 2, Span(2 * span.lanes, mask))

        def apart() -> None:
            for k, span in b.vectors(0, bins, kind):
                at, places = line.at(k * step), b.iota(I64, span.lanes) * step
                for part, plane in enumerate(wanted):
                    _put(at.at(part), scaled(plane, k, span), places, span.mask)

        b.branch(step.eq(len(wanted)), contiguous, apart)

    def together() -> None:
        places, lanes = _places_of(b, kind, first, OUT_GROUP), b.lanes(kind)
        mask = b.tail_mask(b.min(b.param(LINES) - first, lanes), lanes)
        with b.loop(0, bins) as k:
            for part, plane in enumerate(wanted):
                y.at(k * step + part).scatter(scaled(plane, k * side, Span(lanes)), places, mask)

    b.branch(side.eq(1), alone, together)


def _put(at: Pointer, value: Register, places: Register, mask: Register | None) -> None:
    if value.type.lanes == 1:
        at.store(value, places)
    else:
        at.scatter(value, places, mask)


# -- the transform


def _write_transform(module: Module, symbol: str, kind: Type) -> Kernel:
    """Write the part that makes some stages of a transform.

    It takes (work, table, where the first side begins, where in a side real and imaginary parts do, the first stage to make, and
    the one behind the last).
    """
    stages = {factor: _write_stage(module, f"{symbol}_{factor}", kind, factor) for factor in (*BUTTERFLIES, 0)}
    with module.part(f"{symbol}_transform", Address(kind, unique=False), Address(kind), *[I64] * 5) as b:
        work, table = b.addresses
        start, real, imaginary, begin, end = b.arguments
        sides = b.param(PADDED) * b.param(SIDE) * 2
        source, done = b.variable(start), b.variable(b.const(I64, 1))
        with b.loop(0, b.param(STAGES)) as stage:
            factor = b.param_at(stage + FACTORS)
            target = sides - source.value
            left = b.param(PADDED) // (done.value * factor)
            words = [source.value + real, source.value + imaginary, target + real, target + imaginary, left, done.value, factor]
            made = (stage >= begin) & (stage < end)
            with b.switch(b.select(made, b.select(factor <= max(BUTTERFLIES), factor, 0), -1)) as switch:
                for number, part in stages.items():
                    with switch.case(number):
                        b.call_part(part, work, table, *words)
            source.set(target)
            done.set(done.value * factor)
    return b


def _write_stage(module: Module, symbol: str, kind: Type, factor: int) -> Kernel:
    """Write the part of one stage, of the factor or, for 0, of any odd one; see `_write_transform` for what it takes."""
    with module.part(symbol, Address(kind, unique=False), Address(kind), *[I64] * 7) as b:
        work, table = b.addresses
        *places, left, done, radix = b.arguments
        stage = _Stage(b, kind, [work.at(place) for place in places], (left, done, radix), _planes(table, b.param(PADDED)))
        b.branch(stage.side < b.lanes(kind), lambda: stage.write_narrow(factor), lambda: stage.write_wide(factor))
    return b


class _Stage:
    """One stage as it is written: m = `left` butterflies of each of the s = `side` lines."""

    def __init__(self, b: Kernel, kind: Type, sides: Sequence[Pointer], words: Sequence[Register], roots: _Planes) -> None:
        self.b, self.kind, self.roots = b, kind, roots
        self.left, self.done, self.radix = words
        self.x, self.y = (sides[0], sides[1]), (sides[2], sides[3])
        self.side = self.done * b.param(SIDE)
        self.apart = self.left * self.side

    def write_wide(self, factor: int) -> None:
        """Go through the butterflies, and for each through the lines by vectors."""
        b = self.b
        with b.loop(0, self.left) as p:
            for q, span in b.vectors(0, self.side, self.kind):
                put = self._store(p * self.done, p * self.radix * self.side + q, span)
                self._transform(factor, p * self.side + q, span, put)

    def write_narrow(self, factor: int) -> None:
        """Go through all butterflies of all lines by vectors."""
        b = self.b
        reciprocal = 1.0 / self.side.to(F64)
        for j, span in b.vectors(0, self.apart, self.kind):
            number = b.iota(I32, span.lanes) + j.to(I32)
            p = ((number.to(F64) + 0.5) * reciprocal).to(I32)
            turn, first = p * self.done.to(I32), number + p * ((self.radix - 1) * self.side).to(I32)
            put = self._scatter(turn, first, span)
            self._transform(factor, j, span, put)

    def _store(self, turn: Register, first: Register, span: Span) -> Callable[[Register, Complex], None]:
        """Return what stores the results k of butterflies side by side, whose twiddles are powers of W(P)^turn."""

        def put(k: Register, found: Complex) -> None:
            root = self.roots[0].load(turn * k), self.roots[1].load(turn * k)
            _store_pair(self.y, multiply(self.b, found, root), first + k * self.side, span)

        return put

    def _scatter(self, turn: Register, first: Register, span: Span) -> Callable[[Register, Complex], None]:
        """Return what stores the results k of a vector of butterflies, whose twiddles are powers of W(P)^turn."""

        def put(k: Register, found: Complex) -> None:
            places = turn * k.to(I32)
            root = [_get(plane, places, span) for plane in self.roots]
            for plane, one in zip(self.y, multiply(self.b, found, (root[0], root[1])), strict=True):
                _put(plane.at(k * self.side), one, first, span.mask)

        return put

    def _transform(self, factor: int, place: Register, span: Span, put: Callable[[Register, Complex], None]) -> None:
        """Transform the elements at `place` and `apart` elements on, as far as there are, and let `put` store each result."""
        if factor == 0:
            self._transform_odd(place, span, put)
            return
        x = [_load_pair(self.x, place + self.apart * k, span) for k in range(factor)]
        for k, found in enumerate(BUTTERFLIES[factor](self.b, x)):
            put(self.b.const(I64, k), found)

    def _transform_odd(self, place: Register, span: Span, put: Callable[[Register, Complex], None]) -> None:
        """Transform any odd number r of elements: sums and differences of x[j] and x[r - j] give the results k and r - k."""
        b, radix, whole = self.b, self.radix, Span(span.lanes)
        pairs = [b.stack(self.kind, (MOST_FACTOR // 2 + 1) * b.lanes(self.kind), align=64) for _ in range(4)]
        sums, differences = (pairs[0], pairs[1]), (pairs[2], pairs[3])
        first = _load_pair(self.x, place, span)
        total = [b.variable(part) for part in first]
        with b.loop(1, radix // 2 + 1) as j:
            near, far = (_load_pair(self.x, place + self.apart * one, span) for one in (j, radix - j))
            both = add(near, far)
            _store_pair(sums, both, j * span.lanes, whole)
            _store_pair(differences, subtract(near, far), j * span.lanes, whole)
            for so_far, part in zip(total, both, strict=True):
                so_far.add(part)
        put(b.const(I64, 0), (total[0].value, total[1].value))
        with b.loop(1, radix // 2 + 1) as k:
            middle = [b.variable(part) for part in first]
            side = [b.variable(part.like(0.0)) for part in first]
            turns = b.variable(b.const(I64, 0))
            with b.loop(1, radix // 2 + 1) as j:
                turns.add(k)
                turns.set(b.select(turns.value >= radix, turns.value - radix, turns.value))
                cosine, sine = (plane.load(turns.value * self.left * self.done).splat(span.lanes) for plane in self.roots)
                for summed, totals, weights in ((sums, middle, cosine), (differences, side, sine)):
                    for plane, so_far in zip(summed, totals, strict=True):
                        so_far.set(b.fma(plane.load(j * span.lanes, whole), weights, so_far.value))
            even, odd = (middle[0].value, middle[1].value), (-side[1].value, side[0].value)
            put(k, add(even, odd))
            put(radix - k, subtract(even, odd))
