"""Route tokens to experts: which are chosen, in which rows their tokens lie, and the sum of what comes back.

Dimension letters: T tokens, C hidden size, E experts, k chosen experts of a token; R = T k rows.

    choose    router rows (T, E)  ->  chosen (T, k), shares (T, k)
    group     chosen  ->  offsets (E + 1), places (T, k), owners (R): rows of one expert follow one another, tokens in order
    spread    x (T, C)  ->  rows (R, C)
    collect   rows (R, C)  ->  y (T, C), the sum over the chosen of share x (row + bias of the expert)

Whatever the router holds, what is chosen are k different experts of the E: NaN counts as less than all else.
"""

from __future__ import annotations

from sardonyx.codegen.emit.exponential import exp_below_zero
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, I32, I64
from sardonyx.codegen.emit.values import Pointer, Register

__all__ = ["write_choose", "write_collect", "write_group", "write_spread"]

_TAKEN = -(2**31)
_NAN = _TAKEN + 1
"""The keys of experts that are chosen already, and of NaN: less than those of all numbers."""


def write_choose(module: Module, symbol: str, *, is_normalized: bool, is_mixed: bool) -> None:
    """Write the kernel `symbol`: buffers router, chosen (int32), shares, keys (T, E of int32) and, where mixed, mixing (T, E).

    Parameters: E, k. A task is one token. Shares are the chosen elements of the softmax of the router's row, or of `mixing`,
    divided by their sum where they are normalized and that is not 0. Of equal elements the first is chosen.
    """
    with module.kernel(symbol) as b:
        experts, count = b.param(0), b.param(1)
        with b.loop(b.begin, b.end) as token:
            row, keys = b.buffer(0, F32).at(token * experts), b.buffer(3, I32).at(token * experts)
            chosen, shares = b.buffer(1, I32).at(token * count), b.buffer(2, F32).at(token * count)
            for i, span in b.vectors(0, experts, F32):
                keys.store(_key(b, row.load(i, span)), i, span)
            greatest = _greatest(b, row, experts)
            scale = None if is_mixed else _sum_of_exp(b, row, experts, greatest)
            total = b.variable(b.const(F32, 0.0))
            with b.loop(0, count) as place:
                best = _take_best(b, keys, experts)
                if scale is None:
                    share = b.buffer(4, F32).load(token * experts + best)
                else:
                    share = exp_below_zero(b, row.load(best) - greatest) / scale
                chosen.store(best.to(I32), place)
                shares.store(share, place)
                total.add(share)
            if is_normalized:
                divisor = b.select(total.value.eq(0.0), 1.0, total.value)
                with b.loop(0, count) as place:
                    shares.store(shares.load(place) / divisor, place)


def _key(b: Kernel, x: Register) -> Register:
    """Return int32 that are ordered as numbers are; both zeros are equal."""
    bits = (x + 0.0).bits_as(I32)
    return b.select(b.is_nan(x), _NAN, bits ^ ((bits >> 31) & 0x7FFFFFFF))


def _greatest(b: Kernel, row: Pointer, count: Register) -> Register:
    greatest = b.variable(b.const(F32, float("-inf")))
    with b.loop(0, count) as i:
        greatest.set(b.max(row.load(i), greatest.value))
    return greatest.value


def _sum_of_exp(b: Kernel, row: Pointer, count: Register, greatest: Register) -> Register:
    total = b.variable(b.const(F32, 0.0))
    with b.loop(0, count) as i:
        total.add(exp_below_zero(b, row.load(i) - greatest))
    return total.value


def _take_best(b: Kernel, keys: Pointer, count: Register) -> Register:
    """Return the place of the greatest key that is not taken, and take it."""
    best, place = b.variable(b.const(I32, _TAKEN)), b.variable(b.const(I64, 0))
    with b.loop(0, count) as i:
        key = keys.load(i)
        with b.when(key > best.value):
            best.set(key)
            place.set(i)
    keys.store(_TAKEN, place.value)
    return place.value


def write_group(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`, of one task: buffers chosen (int32), offsets, places (int64) and owners (int32).

    Parameters: R, E.
    """
    with module.kernel(symbol) as b:
        rows, experts = b.param(0), b.param(1)
        chosen, offsets = b.buffer(0, I32), b.buffer(1, I64)
        places, owners = b.buffer(2, I64), b.buffer(3, I32)
        with b.loop(0, experts + 1) as expert:
            offsets.store(0, expert)
        with b.loop(0, rows) as row:
            following = chosen.load(row).to(I64) + 1
            offsets.store(offsets.load(following) + 1, following)
        with b.loop(0, experts) as expert:
            offsets.store(offsets.load(expert + 1) + offsets.load(expert), expert + 1)
        with b.loop(0, rows) as row:
            owner = chosen.load(row)
            place = offsets.load(owner.to(I64))
            offsets.store(place + 1, owner.to(I64))
            places.store(place, row)
            owners.store(owner, place)
        with b.loop(0, experts) as done:
            offsets.store(offsets.load(experts - done - 1), experts - done)
        offsets.store(0, 0)


def write_spread(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers x, places and rows; parameters: C, k. A task is one token."""
    with module.kernel(symbol) as b:
        size, count = b.param(0), b.param(1)
        x, places, rows = b.buffer(0, F32), b.buffer(1, I64), b.buffer(2, F32)
        with b.loop(b.begin, b.end) as token, b.loop(token * count, (token + 1) * count) as choice:
            source, target = x.at(token * size), rows.at(places.load(choice) * size)
            for i, span in b.vectors(0, size, F32):
                target.store(source.load(i, span), i, span)


def write_collect(module: Module, symbol: str, *, has_bias: bool) -> None:
    """Write the kernel `symbol`: buffers rows, places, chosen, shares, y and biases (E, C), if any; parameters: C, k.

    A task is one token.
    """
    with module.kernel(symbol) as b:
        size, count = b.param(0), b.param(1)
        rows, places, chosen = b.buffer(0, F32), b.buffer(1, I64), b.buffer(2, I32)
        shares, y = b.buffer(3, F32), b.buffer(4, F32)
        with b.loop(b.begin, b.end) as token:
            for i, span in b.vectors(0, size, F32):
                total = b.variable(b.const(F32.vector(span.lanes), 0.0))
                with b.loop(token * count, (token + 1) * count) as choice:
                    found = rows.load(places.load(choice) * size + i, span)
                    if has_bias:
                        found = found + b.buffer(5, F32).load(chosen.load(choice).to(I64) * size + i, span)
                    total.set(b.fma(found, shares.load(choice).splat(span.lanes), total.value))
                y.store(total.value, token * size + i, span)
