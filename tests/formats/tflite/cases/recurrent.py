"""Recurrent cells, run twice: the second run goes on where the first ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from formats.tflite.cases.case import Case, drawn
from support.flat_models import Sketch

from sardonyx.dtypes import Array

BATCH, TIME, INPUTS, UNITS = 2, 4, 3, 5


@dataclasses.dataclass(frozen=True)
class Fed:
    """A part that is fed."""

    array: Array


Part = Array | tuple[int, ...] | Fed | None


def cases() -> Iterator[Case]:
    """Return the cases."""
    yield from _lstm()
    yield from _others()
    yield from _auxiliary()
    yield from _rounded()
    yield _integers()


def _stateful(
    name: str,
    code: str,
    feed: Array,
    parts: Sequence[Part],
    outputs: Sequence[Sequence[int]],
    options: tuple[str, Mapping[str, Any]],
    *,
    rounds: bool = False,
) -> Case:
    """Return a case of a cell; a part that is a shape is a variable, and one of two axes integers of 8 bits where it `rounds`."""
    sketch = Sketch()
    indices, feeds = [sketch.input(feed.shape)], [feed]
    for part in parts:
        if isinstance(part, Fed):
            indices.append(sketch.input(part.array.shape))
            feeds.append(part.array)
        elif part is None:
            indices.append(-1)
        elif isinstance(part, tuple):
            indices.append(sketch.tensor(part, is_variable=True))
        elif rounds and part.ndim > 1:
            scale = np.float32(np.abs(part).max() / 127)
            indices.append(sketch.constant(np.rint(part / scale).astype(np.int8), (scale, 0)))
        else:
            indices.append(sketch.constant(part))
    made = [sketch.tensor(shape) for shape in outputs]
    mutating = [False, *(isinstance(part, tuple) for part in parts)]
    sketch.operator(code, indices, made, options, mutating_variable_inputs=mutating)
    return Case(name, sketch.model(made), feeds, runs=2)


def _gates(columns: int, *, coupled: bool = False, rows: int = UNITS, seed: int = 0) -> list[Part]:
    found: list[Part] = [drawn((rows, columns), low=-0.5, high=0.5, seed=seed + gate) for gate in range(4)]
    return [None, *found[1:]] if coupled else found


def _vectors(count: int, seed: int, *, absent: bool = False) -> list[Part]:
    return [None if absent else drawn((UNITS,), low=-0.5, high=0.5, seed=seed + index) for index in range(count)]


def _parts(kind: str, seed: int = 0) -> list[Part]:
    """Return weights to biases and the projection of a cell."""
    coupled, projected = kind == "coupled", kind == "projection"
    hidden = 2 if projected else UNITS
    peepholes = _vectors(3, 20 + seed, absent=kind not in ("peepholes", "coupled"))
    biases = _vectors(4, 30 + seed)
    if coupled:
        peepholes[0] = biases[0] = None
    projection: list[Part] = [drawn((hidden, UNITS), seed=40), drawn((hidden,), seed=41)] if projected else [None, None]
    return [
        *_gates(INPUTS, coupled=coupled, seed=seed),
        *_gates(hidden, coupled=coupled, seed=10 + seed),
        *peepholes,
        *biases,
        *projection,
    ]


def _lstm() -> Iterator[Case]:
    options = {"fused_activation_function": "TANH"}
    for kind in ("plain", "peepholes", "coupled", "projection", "norms", "clip"):
        hidden = 2 if kind == "projection" else UNITS
        clips = {"cell_clip": 0.3} if kind == "clip" else {"proj_clip": 0.4} if kind == "projection" else {}
        states: list[Part] = [(BATCH, hidden), (BATCH, UNITS)]
        norms = _vectors(4, 50) if kind == "norms" else []
        parts = [*_parts(kind), *states, *norms]
        yield _stateful(f"LSTM {kind}", "LSTM", drawn((BATCH, INPUTS)), parts, [(BATCH, hidden)], ("LSTMOptions", options | clips))
        for major in (False, True):
            outer = (TIME, BATCH) if major else (BATCH, TIME)
            table = ("UnidirectionalSequenceLSTMOptions", options | clips | {"time_major": major})
            name = f"UNIDIRECTIONAL_SEQUENCE_LSTM {kind} {major}"
            yield _stateful(name, "UNIDIRECTIONAL_SEQUENCE_LSTM", drawn((*outer, INPUTS)), parts, [(*outer, hidden)], table)
    both: list[Part] = [*_parts("plain"), *_parts("plain", 7), *[(BATCH, UNITS)] * 4, *[None] * 9]
    for merges in (False, True):
        outer = (BATCH, TIME)
        shapes = [(*outer, 2 * UNITS)] if merges else [(*outer, UNITS)] * 2
        table = ("BidirectionalSequenceLSTMOptions", options | {"merge_outputs": merges, "time_major": False})
        found = _stateful(
            f"BIDIRECTIONAL_SEQUENCE_LSTM {merges}",
            "BIDIRECTIONAL_SEQUENCE_LSTM",
            drawn((*outer, INPUTS)),
            both,
            shapes,
            table,
        )
        # LiteRT merges into memory that it has not cleared: what it gives changes with what was there
        yield dataclasses.replace(found, peer="" if merges else "reference")


def _auxiliary() -> Iterator[Case]:
    """Return two cells with an auxiliary input: the backward one's own, or both cells' with weights of its own."""
    for crossed, major in ((False, False), (False, True), (True, False), (True, True)):
        outer, extra = (TIME, BATCH) if major else (BATCH, TIME), 2 if crossed else INPUTS
        feed, fed = drawn((*outer, INPUTS)), Fed(drawn((*outer, extra), seed=60))
        options = {"fused_activation_function": "TANH", "merge_outputs": False, "time_major": major}
        shapes = [(*outer, UNITS)] * 2
        for kind in ("plain", "coupled", "clip"):
            table = ("BidirectionalSequenceLSTMOptions", options | ({"cell_clip": 0.3} if kind == "clip" else {}))
            weights = [part for seed in (61, 65) for part in _gates(extra, coupled=kind == "coupled", seed=seed)]
            parts = [*_parts(kind), *_parts(kind, 7), *[(BATCH, UNITS)] * 4, fed, *(weights if crossed else [None] * 8)]
            name = f"BIDIRECTIONAL_SEQUENCE_LSTM auxiliary {kind} {crossed} {major}"
            yield _stateful(name, "BIDIRECTIONAL_SEQUENCE_LSTM", feed, parts, shapes, table)
        cells: list[Part] = []
        for seed in (0, 3):
            cells += [drawn((UNITS, INPUTS), seed=seed), drawn((UNITS, UNITS), seed=seed + 1), drawn((UNITS,), seed=seed)]
            cells.append((BATCH, UNITS))
        # LiteRT's RNN steps through a time-major auxiliary input by the width of the other input
        width = INPUTS if major else extra
        fed = Fed(drawn((*outer, width), seed=62))
        columns: list[Part] = [drawn((UNITS, width), seed=seed) if crossed else None for seed in (70, 71)]
        table = ("BidirectionalSequenceRNNOptions", options)
        name = f"BIDIRECTIONAL_SEQUENCE_RNN auxiliary {crossed} {major}"
        yield _stateful(name, "BIDIRECTIONAL_SEQUENCE_RNN", feed, [*cells, fed, *columns], shapes, table)


def _others() -> Iterator[Case]:
    cell: list[Part] = [drawn((UNITS, INPUTS)), drawn((UNITS, UNITS), seed=1), drawn((UNITS,)), (BATCH, UNITS)]
    for activation in ("TANH", "RELU"):
        option = {"fused_activation_function": activation}
        yield _stateful(f"RNN {activation}", "RNN", drawn((BATCH, INPUTS)), cell, [(BATCH, UNITS)], ("RNNOptions", option))
        for major in (False, True):
            outer = (TIME, BATCH) if major else (BATCH, TIME)
            table = ("SequenceRNNOptions", option | {"time_major": major})
            name = f"UNIDIRECTIONAL_SEQUENCE_RNN {activation} {major}"
            yield _stateful(name, "UNIDIRECTIONAL_SEQUENCE_RNN", drawn((*outer, INPUTS)), cell, [(*outer, UNITS)], table)
    both = [*cell, *cell[:2], drawn((UNITS,), seed=3), cell[3], None, None, None]
    table = ("BidirectionalSequenceRNNOptions", {"fused_activation_function": "TANH", "merge_outputs": False})
    outer = (BATCH, TIME)
    yield _stateful(
        "BIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN", drawn((*outer, INPUTS)), both, [(*outer, UNITS)] * 2, table
    )
    for rank, with_bias in ((1, True), (2, False)):
        filters, memory = 6, 4
        weights: list[Part] = [drawn((filters, INPUTS)), drawn((filters, memory), seed=1)]
        parts: list[Part] = [*weights, drawn((filters // rank,)) if with_bias else None, (BATCH, filters * memory)]
        table = ("SVDFOptions", {"rank": rank, "fused_activation_function": "RELU"})
        yield _stateful(f"SVDF {rank}", "SVDF", drawn((BATCH, INPUTS)), parts, [(BATCH, filters // rank)], table)
    shape = (1, UNITS)
    joined = INPUTS + UNITS
    sketch = Sketch()
    feeds = [drawn((1, INPUTS)), drawn(shape, seed=1), drawn(shape, seed=2)]
    x, hidden, state = (sketch.input(feed.shape) for feed in feeds)
    w, b = sketch.constant(drawn((4 * UNITS, joined), low=-0.5, high=0.5)), sketch.constant(drawn((4 * UNITS,)))
    made = [sketch.tensor(size) for size in (shape, shape, (1, joined), (1, 4 * UNITS))]
    options = ("LSTMOptions", {"kernel_type": "BASIC", "fused_activation_function": "TANH"})
    sketch.operator("LSTM", [x, hidden, w, b, state], made, options, version=2)
    yield Case("LSTM basic", sketch.model(made[:2]), feeds)


def _rounded() -> Iterator[Case]:
    """Return cells whose weights have 8 bits, and whose inputs and states are rounded in each step."""
    for asymmetric in (False, True):
        how = {"asymmetric_quantize_inputs": asymmetric}
        options = {"fused_activation_function": "TANH", **how}
        for kind in ("plain", "coupled", "projection", "norms"):
            hidden = 2 if kind == "projection" else UNITS
            states: list[Part] = [(BATCH, hidden), (BATCH, UNITS)]
            parts = [*_parts(kind), *states, *(_vectors(4, 50) if kind == "norms" else [])]
            if kind == "coupled":
                parts[8:11] = [None] * 3
            name, feed = f"LSTM {kind} rounded {asymmetric}", drawn((BATCH, INPUTS))
            yield _stateful(name, "LSTM", feed, parts, [(BATCH, hidden)], ("LSTMOptions", options), rounds=True)
            name, code = f"UNIDIRECTIONAL_SEQUENCE_LSTM {kind} rounded {asymmetric}", "UNIDIRECTIONAL_SEQUENCE_LSTM"
            table, feed = ("UnidirectionalSequenceLSTMOptions", options), drawn((BATCH, TIME, INPUTS))
            yield _stateful(name, code, feed, parts, [(BATCH, TIME, hidden)], table, rounds=True)
        weights: list[Part] = [drawn((UNITS, INPUTS)), drawn((UNITS, UNITS), seed=1), drawn((UNITS,)), (BATCH, UNITS)]
        name, feed = f"RNN rounded {asymmetric}", drawn((BATCH, INPUTS))
        yield _stateful(name, "RNN", feed, weights, [(BATCH, UNITS)], ("RNNOptions", options), rounds=True)
        name, code = f"UNIDIRECTIONAL_SEQUENCE_RNN rounded {asymmetric}", "UNIDIRECTIONAL_SEQUENCE_RNN"
        table, feed = ("SequenceRNNOptions", options), drawn((BATCH, TIME, INPUTS))
        yield _stateful(name, code, feed, weights, [(BATCH, TIME, UNITS)], table, rounds=True)
        parts = [drawn((2 * UNITS, INPUTS)), drawn((2 * UNITS, TIME), seed=1), drawn((UNITS,)), (BATCH, 2 * UNITS * TIME)]
        table, feed = ("SVDFOptions", {"rank": 2, "fused_activation_function": "NONE", **how}), drawn((BATCH, INPUTS))
        yield _stateful(f"SVDF rounded {asymmetric}", "SVDF", feed, parts, [(BATCH, UNITS)], table, rounds=True)


def _integers() -> Case:
    """Return a sequence of a cell of integers, whose states are rounded to 8 and to 16 bits in each step."""
    sketch, rng, units, steps = Sketch(), np.random.default_rng(0), 8, 12
    scales = {name: np.float32(scale) for name, scale in {"x": 0.02, "w": 0.008, "hidden": 1 / 128, "cell": 2**-11}.items()}
    feed = drawn((BATCH, steps, 6), "INT8")
    indices = [sketch.input(feed.shape, "INT8", (scales["x"], 3))]
    for columns in (6,) * 4 + (units,) * 4:
        indices.append(sketch.constant(rng.integers(-90, 91, (units, columns)).astype(np.int8), (scales["w"], 0)))  # noqa: PERF401  a list that has the inputs too
    biases = [sketch.constant(rng.integers(-2000, 2000, units).astype(np.int32), (scales["x"] * scales["w"], 0)) for _ in range(4)]
    hidden = sketch.tensor((BATCH, units), "INT8", (scales["hidden"], 0), is_variable=True)
    cell = sketch.tensor((BATCH, units), "INT16", (scales["cell"], 0), is_variable=True)
    made = sketch.tensor((BATCH, steps, units), "INT8", (scales["hidden"], 0))
    between = [sketch.tensor((1,), "INT16", (np.float32(2**-12), 0)) for _ in range(4)]
    between.append(sketch.tensor((1,), "INT8", (scales["hidden"], 0)))
    sketch.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [*indices, -1, -1, -1, *biases, -1, -1, hidden, cell, -1, -1, -1, -1],
        [made],
        ("UnidirectionalSequenceLSTMOptions", {"fused_activation_function": "TANH", "cell_clip": 10.0}),
        intermediates=np.array(between, np.int32),
    )
    return Case("UNIDIRECTIONAL_SEQUENCE_LSTM integers", sketch.model([made]), [feed], steps=1)
