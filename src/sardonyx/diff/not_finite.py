"""Where NaN and infinities of a model's outputs come from: the nodes that make them of finite numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import ml_dtypes
import numpy as np

from sardonyx.diff.engines import Engine
from sardonyx.diff.report import FoundNode, NotFinite
from sardonyx.diff.slices import Slices
from sardonyx.dtypes import DataType, OnnxValue, is_float
from sardonyx.errors import SardonyxError
from sardonyx.ir import Model, Value

__all__ = ["origins"]


_Origins = tuple[NotFinite | None, NotFinite | None]
"""Where the NaN and where the infinities of a value come from."""
_NONE: _Origins = (None, None)


def origins(
    slices: Slices,
    start: Mapping[Value, OnnxValue],
    engines: Sequence[Engine],
    window: int,
    on_step: Callable[[str], None] = lambda label: None,
) -> list[NotFinite]:
    """Return the nodes that make the NaN and infinities in a model's outputs, each once; [] where the feed or weights have them.

    The model runs in parts of `window` nodes, all of whose values are looked at.

    Args:
        slices: of the model.
        start: the values before the first node.
        engines: what runs a part; the next one where one cannot.
        window: nodes of a part.
        on_step: called before each part, with what is run.
    """
    values: Mapping[Value, OnnxValue] = start
    found: dict[Value, _Origins] = {}
    for low in range(0, len(slices.nodes), window):
        nodes = slices.nodes[low : low + window]
        part = slices.part(nodes, values, gives_all=True)
        if not part.outputs:
            continue
        on_step(f"nodes {low} to {low + len(nodes)}, for NaN")
        results = _run(engines, part.model, part.feed)
        known = {**values, **dict(zip(part.outputs, results, strict=True))}
        for index, node in enumerate(nodes, low):
            for value in [value for value in node.outputs if value in known]:
                found[value] = _origins_of(FoundNode.of(node, index), value, slices.reads(node), known, found)
        values = slices.advance(values, known, low + len(nodes))
    made = [item for value in slices.model.graph.outputs for item in found.get(value, _NONE) if item is not None]
    return list(dict.fromkeys(made))


def _run(engines: Sequence[Engine], model: Model, feed: Mapping[str, OnnxValue]) -> Sequence[OnnxValue]:
    for engine in engines[:-1]:
        try:
            return engine.load(model).run(feed)
        except SardonyxError:
            continue
    return engines[-1].load(model).run(feed)


def _origins_of(
    node: FoundNode, value: Value, reads: Sequence[Value], known: Mapping[Value, OnnxValue], found: Mapping[Value, _Origins]
) -> _Origins:
    nans, infinities, elements = _count(known[value])
    if not nans and not infinities:
        return _NONE
    inputs = [(item, *_count(_held(item, known))) for item in reads]
    with_nan = next((item for item, count, _, _ in inputs if count), None)
    with_infinity = next((item for item, _, count, _ in inputs if count), None)
    inherited = _NONE if with_infinity is None else found.get(with_infinity, _NONE)
    largest = max((_largest(_held(item, known)) for item in reads), default=0.0)
    greatest = _greatest(value)
    nan, infinite = found.get(with_nan, _NONE)[0] if with_nan is not None else None, inherited[1]
    if nans and with_nan is None:
        nan = NotFinite("NaN", value.name, node, nans, elements, largest, greatest, with_infinity is not None, inherited[1])
    if infinities and with_nan is None and with_infinity is None:
        infinite = NotFinite("infinities", value.name, node, infinities, elements, largest, greatest, False, None)
    return (nan if nans else None), (infinite if infinities else None)


def _held(value: Value, known: Mapping[Value, OnnxValue]) -> OnnxValue:
    return known.get(value) if value.constant is None else value.constant.numpy()


def _is_float(item: OnnxValue) -> bool:
    return isinstance(item, np.ndarray) and item.dtype.kind not in "OUSTc" and is_float(DataType.from_numpy(item.dtype))


def _count(item: OnnxValue) -> tuple[int, int, int]:
    """Return how many elements are NaN and how many infinite, and how many there are; no array of floats has none."""
    if not _is_float(item):
        return 0, 0, 0
    wide = item if item.dtype.kind == "f" else item.astype(np.float32)
    return int(np.isnan(wide).sum()), int(np.isinf(wide).sum()), item.size


def _largest(item: OnnxValue) -> float:
    if not _is_float(item):
        return 0.0
    wide = item.astype(np.float64)
    return float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))


def _greatest(value: Value) -> float:
    """Return the largest number of a value's element type; infinity where that is not known."""
    dtype = value.dtype
    if dtype is None or not is_float(dtype):
        return float("inf")
    return float(ml_dtypes.finfo(dtype.numpy).max)
