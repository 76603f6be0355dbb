"""Transforms of two to five complex numbers, each a real and an imaginary part: W(r)^k = exp(-2 pi i k / r)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.values import Register

__all__ = ["BUTTERFLIES", "Complex", "add", "multiply", "subtract"]

Complex: TypeAlias = tuple[Register, Register]
"""A real and an imaginary part."""


def add(left: Complex, right: Complex) -> Complex:
    """Return the sum."""
    return left[0] + right[0], left[1] + right[1]


def subtract(left: Complex, right: Complex) -> Complex:
    """Return the difference."""
    return left[0] - right[0], left[1] - right[1]


def multiply(b: Function, left: Complex, right: Complex) -> Complex:
    """Return the product; its parts are rounded twice each where the target has fused multiply-adds."""
    return b.fma(left[0], right[0], -(left[1] * right[1])), b.fma(left[0], right[1], left[1] * right[0])


def _quarter_back(x: Complex) -> Complex:
    """Return -i x."""
    return x[1], -x[0]


def _scaled(x: Complex, factor: float) -> Complex:
    return x[0] * factor, x[1] * factor


def _plus_scaled(b: Function, x: Complex, y: Complex, factor: float) -> Complex:
    """Return x + y * factor."""
    return b.fma(y[0], factor, x[0]), b.fma(y[1], factor, x[1])


def _of_two(b: Function, x: Sequence[Complex]) -> list[Complex]:
    return [add(x[0], x[1]), subtract(x[0], x[1])]


def _of_three(b: Function, x: Sequence[Complex]) -> list[Complex]:
    both = add(x[1], x[2])
    middle = _plus_scaled(b, x[0], both, -0.5)
    side = _quarter_back(_scaled(subtract(x[1], x[2]), math.sqrt(0.75)))
    return [add(x[0], both), add(middle, side), subtract(middle, side)]


def _of_four(b: Function, x: Sequence[Complex]) -> list[Complex]:
    even, even_side = _of_two(b, (x[0], x[2]))
    odd, odd_side = _of_two(b, (x[1], x[3]))
    turned = _quarter_back(odd_side)
    return [add(even, odd), add(even_side, turned), subtract(even, odd), subtract(even_side, turned)]


def _of_five(b: Function, x: Sequence[Complex]) -> list[Complex]:
    near, near_side = _of_two(b, (x[1], x[4]))
    far, far_side = _of_two(b, (x[2], x[3]))
    (cos1, sin1), (cos2, sin2) = ((math.cos(2 * math.pi * k / 5), math.sin(2 * math.pi * k / 5)) for k in (1, 2))
    found: dict[int, Complex] = {0: add(x[0], add(near, far))}
    for k, (c_near, c_far, s_near, s_far) in {1: (cos1, cos2, sin1, sin2), 2: (cos2, cos1, sin2, -sin1)}.items():
        middle = _plus_scaled(b, _plus_scaled(b, x[0], near, c_near), far, c_far)
        side = _quarter_back(_plus_scaled(b, _scaled(near_side, s_near), far_side, s_far))
        found[k], found[5 - k] = add(middle, side), subtract(middle, side)
    return [found[k] for k in range(5)]


BUTTERFLIES: Mapping[int, Callable[[Function, Sequence[Complex]], list[Complex]]] = {
    2: _of_two,
    3: _of_three,
    4: _of_four,
    5: _of_five,
}
"""How many numbers -> their transform."""
