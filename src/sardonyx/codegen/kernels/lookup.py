"""Look numbers up among keys in ascending order, by halving the range that may hold them, for all lanes of a vector at once.

Whole keys that follow one another are not searched: a number's place is how far it is from the first.

    write_lookup      result[i] = values[k] for keys[k] == x[i]; the value behind them for others, the one behind that for NaN
    write_encoder     result[i, :] = 1 at columns[k] for keys[k] == x[i], 0 elsewhere

The encoder reports a number that is no key in the status word as its place plus 1.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["LookupParams", "write_encoder", "write_lookup"]

X, KEYS, VALUES, RESULT, STATUS = range(5)
"""The buffers of the kernels: values, or the columns of keys; the status of the encoder alone."""

_TASK_ELEMENTS = 1 << 12


@dataclass(frozen=True, slots=True)
class LookupParams:
    """The integer parameters of both kernels, in their order."""

    count: int
    """How many numbers are looked up."""
    keys: int
    """How many keys there are, at least one."""
    width: int = 1
    """Elements of the result for each number: 1, or the columns of the encoder."""

    def words(self) -> list[int]:
        """Return the parameters as the kernels read them."""
        return [self.count, self.keys, self.width, self._block]

    def tasks(self) -> int:
        """Return how many tasks it is."""
        return -(-self.count // self._block)

    @property
    def _block(self) -> int:
        return max(_TASK_ELEMENTS // max(self.width, 1), 1)


def write_lookup(module: Module, symbol: str, key: Type, element: Type) -> None:
    """Write the kernel `symbol` for keys of type `key`, none of them NaN, and values moved as integers of type `element`."""
    with module.kernel(symbol) as b:
        count, size, block = b.param(0), b.param(1), b.param(3)
        x, keys, values, result = b.buffer(X, key), b.buffer(KEYS, key), b.buffer(VALUES, element), b.buffer(RESULT, element)

        def look_up(find: Callable[[Register], tuple[Register, Register]]) -> None:
            with b.loop(b.begin, b.end) as task:
                first = task * block
                for i, span in b.vectors(first, b.min(first + block, count), key, lanes=b.lanes(I64)):
                    number = x.load(i, span)
                    place, found = find(number)
                    place = b.select(found, place, size.splat(span.lanes))
                    if key.is_float:
                        place = b.select(b.is_nan(number), (size + 1).splat(span.lanes), place)
                    result.store(_at(values, place), i, span)

        if key.is_float:
            look_up(lambda number: _search(b, keys, size, number))
            return
        least = keys.load(0).to(I64)
        follows = (keys.load(size - 1).to(I64) - least).eq(size - 1)
        with b.when(follows):
            look_up(lambda number: _counted(number.to(I64) - least, size))
        with b.when(~follows):
            look_up(lambda number: _search(b, keys, size, number))


def _counted(place: Register, count: Register) -> tuple[Register, Register]:
    return place, (place >= 0) & (place < count)


def write_encoder(module: Module, symbol: str, key: Type) -> None:
    """Write the kernel `symbol` for keys of type `key`, columns of int64 and a result of float32."""
    with module.kernel(symbol) as b:
        count, size, width, block = (b.param(place) for place in range(4))
        keys, columns = b.buffer(KEYS, key), b.buffer(VALUES, I64)
        with b.loop(b.begin, b.end) as task, b.loop(task * block, b.min((task + 1) * block, count)) as i:
            row = b.buffer(RESULT, F32).at(i * width)
            for column, span in b.vectors(0, width, F32):
                row.store(b.const(F32.vector(span.lanes), 0), column, span)
            place, found = _search(b, keys, size, b.buffer(X, key).load(i))
            with b.when(found):
                row.store(b.const(F32, 1), columns.load(place))
            with b.when(~found):
                b.buffer(STATUS, I64).store(i + 1)


def _search(b: Function, keys: Pointer, count: Register, x: Register) -> tuple[Register, Register]:
    """Return the last key that is not above x, the first one where all are, and whether it is x."""
    base, left = b.variable(b.const(I64.vector(x.type.lanes), 0)), b.variable(count)
    base.set(base.value.like(0))
    left.set(count)
    with b.repeat() as again:
        again.stop_if(left.value <= 1)
        half = left.value // 2
        probe = base.value + half.splat(x.type.lanes)
        base.set(b.select(_at(keys, probe) <= x, probe, base.value))
        left.set(left.value - half)
    return base.value, _at(keys, base.value).eq(x)


def _at(pointer: Pointer, places: Register) -> Register:
    return pointer.load(places) if places.type.lanes == 1 else pointer.gather(places)
