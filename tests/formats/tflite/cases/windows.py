"""Gathers, scatters and windows of StableHLO, some of which have a subgraph that combines two numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from formats.tflite.cases.case import Case, case, drawn
from support.flat_models import KINDS, Sketch

from sardonyx.dtypes import Array


def cases() -> Iterator[Case]:
    """Return the cases."""
    yield from _gathers()
    yield from _scatters()
    yield from _windows()
    yield from _plain_windows()


def combined(name: str, code: str, body: str, inputs: Sequence[Array], shape: Sequence[int], options: Any, **fields: Any) -> Case:
    """Return a case of an operator whose subgraph 1 is `body` of two numbers; "" for the second number."""
    sketch, kind = Sketch(), KINDS[inputs[0].dtype.name]
    indices = [sketch.input(array.shape, KINDS[array.dtype.name]) for array in inputs]
    made = sketch.tensor(shape, kind)
    sketch.operator(code, indices, [made], options)
    sketch.outputs(made)
    sketch.begin("body")
    left, right = sketch.input((), kind), sketch.input((), kind)
    if not body:
        return Case(name, sketch.model([right]), list(inputs), **fields)
    result = sketch.tensor((), kind)
    sketch.operator(body, [left, right], [result])
    return Case(name, sketch.model([result]), list(inputs), **fields)


def _gathers() -> Iterator[Case]:
    x = drawn((3, 4, 2), "FLOAT32")
    forms = {
        "windows": (
            np.array([[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]], np.int32),
            (2, 3, 2, 2),
            ([2, 3], [0], [1, 0], 2, [1, 2, 2]),
        ),
        "rows": (np.array([[2], [-1], [1]], np.int64), (3, 4, 2), ([1, 2], [0], [0], 1, [1, 4, 2])),
        "offsets first": (np.array([3, 1], np.int32), (3, 2, 2), ([0, 2], [1], [1], 1, [3, 1, 2])),
    }
    for name, (indices, shape, numbers) in forms.items():
        names = ("offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim", "slice_sizes")
        options = ("StablehloGatherOptions", dict(zip(names, numbers, strict=True)))
        # LiteRT reads where nothing is, where the indices have no axis of their numbers
        peer = "" if indices.ndim == 1 else "reference"
        yield case(f"STABLEHLO_GATHER {name}", "STABLEHLO_GATHER", [x, indices], [(shape,)], options, peer=peer)


def _scatters() -> Iterator[Case]:
    names = ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "index_vector_dim")
    windows = dict(zip(names, ([2, 3], [0], [1, 0], 2), strict=True))
    indices = np.array([[[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 9]]], np.int64)
    for body in ("", "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"):
        # where updates overlap and are not combined, their order decides
        places = indices if body else np.array([[[0, 2], [2, 0], [2, 1]], [[0, 1], [0, 0], [0, 9]]], np.int64)
        inputs = [drawn((3, 4, 2)), places, drawn((2, 3, 2, 2), seed=1)]
        options = ("StablehloScatterOptions", {**windows, "update_computation_subgraph_index": 1})
        yield combined(f"STABLEHLO_SCATTER {body or 'none'}", "STABLEHLO_SCATTER", body, inputs, (3, 4, 2), options)


def _windows() -> Iterator[Case]:
    forms = {
        "plain": ((4, 5), (2, 4), {"window_dimensions": [2, 2], "window_strides": [2, 1]}),
        "apart": (
            (4, 5),
            (3, 3),
            {
                "window_dimensions": [3, 2],
                "window_strides": [2, 2],
                "base_dilations": [2, 1],
                "window_dilations": [1, 2],
                "padding": [1, -1, 1, 2],
            },
        ),
    }
    for body in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM"):
        for name, (shape, made, numbers) in forms.items():
            whole = {
                "base_dilations": [1, 1],
                "window_dilations": [1, 1],
                "padding": [0, 0, 0, 0],
                **numbers,
                "body_subgraph_index": 1,
            }
            inputs = [drawn(shape), np.array(0.5, np.float32)]
            options = ("StablehloReduceWindowOptions", whole)
            yield combined(
                f"STABLEHLO_REDUCE_WINDOW {body} {name}", "STABLEHLO_REDUCE_WINDOW", f"STABLEHLO_{body}", inputs, made, options
            )


def _plain_windows() -> Iterator[Case]:
    """Return cases of the older operator, whose windows are inputs, and which has a function for a subgraph."""
    windows = [np.array(numbers, np.int64) for numbers in ((2, 2), (2, 1), (1, 2))]
    for number, function in enumerate(("add", "mul", "minimum", "maximum", "all", "any"), 1):
        for kind in ("FLOAT32", "INT32", "INT8", "BOOL"):
            x, start = drawn((5, 6), kind), drawn((), kind, seed=1)
            options = ("ReduceWindowOptions", {"reduce_function": number})
            name = f"REDUCE_WINDOW {function} {kind}"
            yield case(name, "REDUCE_WINDOW", [x, start, *windows], [((2, 4), kind)], options, constants=(2, 3, 4))
