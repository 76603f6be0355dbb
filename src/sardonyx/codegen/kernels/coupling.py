"""Class probabilities of support vector machines: pairwise ones of decisions, coupled to one for each class.

    p[i, j] = 1 - logistic(d[i, j] a[i, j] + b[i, j])           Platt's, kept 1e-7 from 0 and 1

They are coupled by the second method of Wu, Lin and Weng (2004), as in LIBSVM: each row is iterated until its error is below
0.005 / classes, at most 100 times. Each row stands for itself.
"""

from __future__ import annotations

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, I64
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["CouplingParams", "coupling_scratch", "logistic", "write_coupling"]

DECISIONS, PLATT_A, PLATT_B, SCRATCH, RESULT = range(5)
"""The buffers of the kernel."""

_MOST_ROUNDS = 100
_TINY = 1e-7
_ERROR = 0.005
_ERROR_PARAM = 5


@dataclass(frozen=True, slots=True)
class CouplingParams:
    """The integer parameters of the kernel, in their order; then, as `float_word`, the error at which a row is done."""

    rows: int
    classes: int
    block: int
    """Rows of one task."""
    together: int
    """The most tasks that run at a time."""
    scratch: int
    """Elements of the scratch memory of one task."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [getattr(self, name) for name in type(self).__dataclass_fields__]

    def tasks(self) -> int:
        """Return how many tasks it is."""
        return -(-self.rows // self.block)

    @property
    def error(self) -> float:
        """The error at which a row is done."""
        return _ERROR / self.classes


def coupling_scratch(classes: int) -> int:
    """Return how many float32 one task works in."""
    return 2 * classes * classes + classes


def write_coupling(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: decisions (N, pairs), a, b (pairs,), scratch memory, probabilities (N, classes): all float32."""
    with module.kernel(symbol) as b:
        classes, block = b.param(1), b.param(2)
        pairs = classes * (classes - 1) // 2
        with b.loop(b.begin, b.end) as task:
            scratch = b.buffer(SCRATCH, F32).at(task % b.param(3) * b.param(4))
            with b.loop(task * block, b.min((task + 1) * block, b.param(0))) as row:
                _write_pairwise(b, b.buffer(DECISIONS, F32).at(row * pairs), scratch, classes)
                _couple(b, scratch, b.buffer(RESULT, F32).at(row * classes), classes)


def logistic(b: Function, x: Register) -> Register:
    """Return 1 / (1 + e^-x) without overflow: the exponential is taken of -|x|. NaN stays NaN."""
    positive = 1.0 / (mathlib.exp(b, -b.abs(x)) + 1.0)
    return b.select(x < 0, 1.0 - positive, positive)


def _write_pairwise(b: Kernel, decisions: Pointer, pairwise: Pointer, classes: Register) -> None:
    """Write the probability that class i is right where it is i or j, for all i and j."""
    a, offsets = b.buffer(PLATT_A, F32), b.buffer(PLATT_B, F32)
    pair = b.variable(b.const(I64, 0))
    pair.set(b.const(I64, 0))
    with b.loop(0, classes) as i:
        pairwise.store(b.const(F32, 0), i * classes + i)
        with b.loop(i + 1, classes) as j:
            place = pair.value
            first = 1.0 - logistic(b, decisions.load(place) * a.load(place) + offsets.load(place))
            low, high = first.like(_TINY), first.like(1.0) - first.like(_TINY)
            clipped = b.select(first < low, low, b.select(first > high, high, first))
            pairwise.store(clipped, i * classes + j)
            pairwise.store(1.0 - clipped, j * classes + i)
            pair.add(1)


def _couple(b: Kernel, pairwise: Pointer, p: Pointer, classes: Register) -> None:
    """Iterate one row: behind `pairwise` is memory for Q and Qp."""
    Q, Qp = pairwise.at(classes * classes), pairwise.at(classes * classes * 2)
    with b.loop(0, classes) as i:
        diagonal = b.variable(b.const(F32, 0))
        diagonal.set(b.const(F32, 0))
        with b.loop(0, classes) as j:
            other = pairwise.load(j * classes + i)
            Q.store(-(other * pairwise.load(i * classes + j)), i * classes + j)
            diagonal.add(other * other)
        Q.store(diagonal.value, i * classes + i)
        p.store(1.0 / classes.to(F32), i)
    rounds = b.variable(b.const(I64, 0))
    rounds.set(b.const(I64, 0))
    with b.repeat() as again:
        again.stop_if(rounds.value >= _MOST_ROUNDS)
        rounds.add(1)
        total, error = _products(b, Q, Qp, p, classes)
        again.stop_if(~(error >= b.param_float(_ERROR_PARAM)))
        _step(b, Q, Qp, p, classes, total)


def _products(b: Kernel, Q: Pointer, Qp: Pointer, p: Pointer, classes: Register) -> tuple[Register, Register]:
    """Write Q p; returns p Q p, and the greatest difference of an element of Q p from it: NaN if there is one."""
    zero = b.const(F32, 0)
    total, error, sums = b.variable(zero), b.variable(zero), b.variable(zero)
    for variable in (total, error):
        variable.set(zero)
    with b.loop(0, classes) as i:
        sums.set(zero)
        with b.loop(0, classes) as j:
            sums.add(Q.load(i * classes + j) * p.load(j))
        Qp.store(sums.value, i)
        total.add(p.load(i) * sums.value)
    with b.loop(0, classes) as i:
        difference = b.abs(Qp.load(i) - total.value)
        error.set(b.select(b.is_nan(difference) | (difference > error.value), difference, error.value))
    return total.value, error.value


def _step(b: Kernel, Q: Pointer, Qp: Pointer, p: Pointer, classes: Register, total: Register) -> None:
    """Change each probability in turn."""
    pQp = b.variable(total)
    pQp.set(total)
    with b.loop(0, classes) as i:
        own = Q.load(i * classes + i)
        step = (pQp.value - Qp.load(i)) / own
        scale = step + 1.0
        p.store(p.load(i) + step, i)
        pQp.set((pQp.value + step * (step * own + Qp.load(i) * 2.0)) / scale / scale)
        with b.loop(0, classes) as j:
            Qp.store((Qp.load(j) + step * Q.load(i * classes + j)) / scale, j)
            p.store(p.load(j) / scale, j)
