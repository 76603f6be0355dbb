"""By how much two correct computations of the same values may differ.

A tensor of b agrees with that of a where the largest difference is at most `limit`:

    unit  = the relative rounding error of the coarsest floating-point type on the way, times a factor for sums (32; 4 for 16 bits)
    limit = unit x sqrt(depth) x the largest magnitude of the tensor

since errors of independent roundings grow with the square root of their number. That is too little where numbers cancel, or where
a small difference decides (an argmax, a sort, a quantization). So what exceeds it is compared with what rounding alone does: a runs
again on inputs that are off by `unit`, relative to each, in random directions, with everything between inputs and outputs off by a
quarter of it; b may be off by four times as much as that. Whatever this changes in integers and shapes may differ as well. A result
is thus accepted if it is near the exact result of near inputs, which is what numerical analysis calls stable.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from sardonyx.diff.slices import Part
from sardonyx.diff.tensor_error import TensorError, measure_all
from sardonyx.dtypes import Array, DataType, OnnxValue, is_float
from sardonyx.errors import SardonyxError
from sardonyx.ir import Model, Node, Tensor
from sardonyx.optimize.edit import clone_model

__all__ = ["Again", "Tolerance", "off_by"]

_FACTOR, _HALF_FACTOR = 32.0, 4.0
_NOISE_FACTOR = 4.0
_TRIALS = 2
_UNITS = {DataType.DOUBLE: 2.0**-53, DataType.FLOAT: 2.0**-24, DataType.FLOAT16: 2.0**-11, DataType.BFLOAT16: 2.0**-8}
_COARSE_UNIT = 2.0**-3
_PRECISIONS = {"fp16": 2.0**-11, "f16": 2.0**-11, "float16": 2.0**-11, "bf16": 2.0**-8, "bfloat16": 2.0**-8}
_HALF_UNIT = 2.0**-11
_INNER = 0.25
"""By which part of a unit a value between inputs and outputs is off."""
_STEP = frozenset(["int8", "uint8", "int4", "uint4"])
"""Types that quantization makes: rounding may go either way, by one step."""

Again = Callable[[Model, Mapping[str, OnnxValue]], Sequence[OnnxValue]]
"""Runs a model by the engine of a, on a feed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tolerance:
    """The user's limits, or automatic ones."""

    rtol: float | None = None
    """Relative to each element of a; None with `atol` for automatic limits."""
    atol: float | None = None
    """Absolute."""
    precisions: tuple[str, ...] = ()
    """Types in which the two sides are asked to compute, as they are named by configurations."""

    def judge(
        self, part: Part, a: Sequence[OnnxValue], b: Sequence[OnnxValue], again: Again, base: Sequence[OnnxValue] | None = None
    ) -> list[TensorError]:
        """Return the errors of the outputs of a part, each with its limit and whether it is accepted.

        Args:
            part: what was run.
            a: the outputs of a.
            b: those of b.
            again: by which a runs a second time, where rounding has to be known.
            base: what `again` gives without rounding; None where that is `a`.
        """
        triples = zip(part.outputs, a, b, strict=True)
        if self.is_given:
            return [item for value, one, other in triples for item in self._judged_all(value.name, one, other)]
        limit = self.unit_of(part) * math.sqrt(part.depth)
        found = [_accepted(error, limit) for value, one, other in triples for error in measure_all(value.name, one, other)]
        return found if all(error.agrees for error in found) else self._excused(part, a if base is None else base, found, again)

    @property
    def is_given(self) -> bool:
        """Whether the user gave a limit."""
        return self.rtol is not None or self.atol is not None

    def unit_of(self, part: Part) -> float:
        """Return the relative error that one step of a part may make."""
        coarsest = max([_unit(dtype) for dtype in _floats_of(part)], default=_UNITS[DataType.FLOAT])
        coarsest = max([coarsest, *(_PRECISIONS.get(name.lower(), 0.0) for name in self.precisions)])
        return coarsest * (_HALF_FACTOR if coarsest >= _HALF_UNIT else _FACTOR)

    def _judged_all(self, name: str, a: OnnxValue, b: OnnxValue) -> list[TensorError]:
        errors = measure_all(name, a, b)
        return [self._judged(error, *pair) for error, pair in zip(errors, zip(_flat(a, b), _flat(b, a), strict=True), strict=True)]

    def _judged(self, error: TensorError, a: OnnxValue, b: OnnxValue) -> TensorError:
        """Judge by the user's limits: element by element."""
        atol, rtol = self.atol or 0.0, self.rtol or 0.0
        limit = atol + rtol * error.scale
        if error.problem or not isinstance(a, np.ndarray):
            return dataclasses.replace(error, limit=limit, agrees=not error.problem)
        if a.dtype.kind in "OUSb":
            return dataclasses.replace(error, limit=0.0, agrees=error.unequal == 0)
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            one, other = a.astype(wide), b.astype(wide)
            close = np.abs(one - other) <= atol + rtol * np.abs(one)
            close |= (one == other) | (np.isnan(one) & np.isnan(other))
        return dataclasses.replace(error, limit=limit, agrees=bool(close.all()))

    def _excused(self, part: Part, a: Sequence[OnnxValue], found: list[TensorError], again: Again) -> list[TensorError]:
        """Accept what rounding alone does to a."""
        unit = self.unit_of(part)
        for seed in range(_TRIALS):
            try:
                model, feed = off_by(part, unit, np.random.default_rng(seed))
                noisy = again(model, feed)
            except SardonyxError:
                return found
            noise = [
                error
                for value, one, other in zip(part.outputs, a, noisy, strict=True)
                for error in measure_all(value.name, one, other)
            ]
            if len(noise) != len(found):
                return found
            found = [_weighed(error, other) for error, other in zip(found, noise, strict=True)]
        return found


def off_by(part: Part, unit: float, rng: np.random.Generator) -> tuple[Model, dict[str, OnnxValue]]:
    """Return a part whose numbers are off: inputs by `unit`, relative to each element, in random directions.

    What nodes make for other nodes is multiplied by 1 + unit / 4 or 1 - unit / 4.
    """
    model = clone_model(part.model)
    graph = model.graph
    version = model.opset_imports.get("", 0)
    for node in list(graph):
        for value in node.outputs if version else ():
            dtype = value.dtype
            if dtype not in _UNITS or value.is_graph_output or not value.use_count:
                continue
            factor = np.asarray(1 + _INNER * unit * (1 if rng.integers(2) else -1), np.float64).astype(dtype.numpy)
            constant = graph.add_initializer(Tensor.from_array(factor), f"{value.name}/off")
            scaled = Node("Mul", [value, constant], version=version)
            for user, index in value.uses:
                if isinstance(user, Node) and user is not scaled:
                    user.replace_input(index, scaled.output)
            scaled.output.type, scaled.output.name = value.type, f"{value.name}/moved"
            graph.insert_after(node, scaled)
    return model, {name: _moved(value, unit, rng) for name, value in part.feed.items()}


def _moved(value: OnnxValue, unit: float, rng: np.random.Generator) -> OnnxValue:
    if not isinstance(value, np.ndarray) or value.dtype.hasobject or not value.size or not _is_real(value):
        return value
    signs = rng.integers(0, 2, value.shape, dtype=np.int8) * 2 - 1
    with np.errstate(all="ignore"):
        wide = value.astype(np.float64)
        moved = (wide * (1 + unit * signs)).astype(value.dtype)
    kept: Array = np.where(np.isfinite(wide), moved, value)
    return np.asarray(kept, dtype=value.dtype)


def _is_real(value: Array) -> bool:
    return is_float(DataType.from_numpy(value.dtype))


def _weighed(error: TensorError, noise: TensorError) -> TensorError:
    """Return an error with the limit that the effect of rounding gives it."""
    if error.agrees:
        return error
    if error.problem:
        return dataclasses.replace(error, agrees=bool(noise.problem))
    if not _is_float_name(error.type):
        return dataclasses.replace(error, agrees=error.unequal <= _NOISE_FACTOR * noise.unequal)
    limit = max(error.limit, _NOISE_FACTOR * noise.max_abs)
    return dataclasses.replace(error, limit=limit, agrees=error.max_abs <= limit)


def _accepted(error: TensorError, unit: float) -> TensorError:
    """Judge an error by the relative limit of rounding; integers that quantization makes may be one step off."""
    limit = unit * error.scale
    if not _is_float_name(error.type):
        limit = 1.0 if error.type in _STEP else 0.0
        return dataclasses.replace(error, limit=limit, agrees=not error.problem and (error.unequal == 0 or error.max_abs <= limit))
    return dataclasses.replace(error, limit=limit, agrees=not error.problem and error.max_abs <= limit)


def _is_float_name(name: str) -> bool:
    return name.startswith(("float", "double", "bfloat", "complex"))


def _unit(dtype: DataType) -> float:
    return _UNITS.get(dtype, _COARSE_UNIT)


def _floats_of(part: Part) -> Iterable[DataType]:
    """Return the floating-point types of what nodes of a part read and make; narrow constants are exact."""
    for node in part.nodes:
        for value in (*node.outputs, *node.inputs):
            dtype = None if value is None else value.dtype
            if value is not None and dtype is not None and is_float(dtype) and value.constant is None:
                yield dtype


def _flat(value: OnnxValue, other: OnnxValue) -> list[OnnxValue]:
    """Return the tensors of a value in the order of `measure_all`."""
    if isinstance(value, (list, tuple)) and isinstance(other, (list, tuple)) and len(value) == len(other):
        return [item for one, two in zip(value, other, strict=True) for item in _flat(one, two)]
    if isinstance(value, Mapping) and isinstance(other, Mapping) and value.keys() == other.keys():
        return [item for key in value for item in _flat(np.asarray(value[key]), np.asarray(other[key]))]
    return [value]
