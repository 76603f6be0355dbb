"""Hold what is inferred about every value of a model against what runs.

    python benchmarks/shapes.py MODEL.onnx ...
    python benchmarks/shapes.py MODEL.onnx --sizes past=7 total=14     where sizes hang together; any other is 7, of a batch 1

Each dimension that a model leaves open gets a size, the same for the same name; inputs are random, integers 0 or 1. Every value of
the main graph is given out, without optimization. Prints, for each model, for how many values type and shape were inferred, how
many of them have symbols, and what is not true of the values that run. The exit status is 1 where anything is not.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import sardonyx
from sardonyx.dtypes import DataType, is_float
from sardonyx.errors import SardonyxError
from sardonyx.formats.onnx import load
from sardonyx.ir import Dim, Expr, Model, Value
from sardonyx.ir.shape import evaluate, is_anonymous
from sardonyx.ops.fact import Fact
from sardonyx.ops.infer import infer_graph

SIZE = 7
BATCH = 64
"""Values given out in one run: all at a time would keep every intermediate tensor of a large model."""


def sizes_of(model: Model, given: dict[str, int]) -> dict[str, int]:
    """A size for each symbol of the inputs; a dimension whose name speaks of a batch gets 1."""
    dims = [dim for value in model.graph.inputs for dim in value.shape or ()]
    symbols = {str(dim) for dim in dims if isinstance(dim, Expr) and not is_anonymous(dim)}
    return {name: given.get(name, 1 if "batch" in name.lower() else SIZE) for name in symbols}


def feed_of(model: Model, sizes: dict[str, int]) -> dict[str, Any]:
    """Random inputs; Any as NumPy's arrays of many types are."""
    generator = np.random.default_rng(0)
    feed = {}
    for value in model.graph.inputs:
        if value.constant is not None or value.dtype is None:
            continue
        shape = [dim if isinstance(dim, int) else sizes.get(str(dim), 1) for dim in value.shape or ()]
        numbers = generator.random(shape) if is_float(value.dtype) else generator.integers(0, 2, shape)
        feed[value.name] = numbers.astype(value.dtype.numpy)
    return feed


def untruth(fact: Fact, array: Any, sizes: dict[str, int]) -> str | None:
    """In which way a fact is not true of a value that was computed."""
    if not isinstance(array, np.ndarray) or fact.dtype is None:
        return None
    if fact.dtype is not DataType.from_numpy(array.dtype):
        return f"inferred {fact.dtype}, computed {array.dtype}"
    if fact.shape is None:
        return None
    shape = tuple(_size(dim, sizes, size) for dim, size in itertools.zip_longest(fact.shape, array.shape, fillvalue=-1))
    if len(fact.shape) != array.ndim or shape != array.shape:
        return f"inferred {list(map(str, fact.shape))}, computed {array.shape} with {sizes}"
    if fact.constant is not None and not np.array_equal(fact.constant, array, equal_nan=array.dtype.kind == "f"):
        return f"inferred {fact.constant.tolist()}, computed {array.tolist()}"
    return None


def _size(dim: Dim, sizes: dict[str, int], otherwise: int) -> int:
    return otherwise if isinstance(dim, Expr) and is_anonymous(dim) else evaluate(dim, sizes)


def executed(path: Path, names: list[str], feed: dict[str, Any]) -> dict[str, Any]:
    """What the named values are, a batch of them at a time."""
    found: dict[str, Any] = {}
    options = sardonyx.SessionOptions()
    options.graph_optimization_level = sardonyx.GraphOptimizationLevel.ORT_DISABLE_ALL
    for start in range(0, len(names), BATCH):
        wanted = set(names[start : start + BATCH])
        model = load(path)
        for node in model.graph:
            for value in node.outputs:
                if value.name in wanted and value not in model.graph.outputs:
                    model.graph.add_output(value)
        session = sardonyx.InferenceSession(model, options)
        given = [item.name for item in session.get_outputs() if item.name in wanted]
        found |= dict(zip(given, session.run(given, feed), strict=True))
    return found


def check(path: Path, given: dict[str, int]) -> tuple[str, list[str]]:
    """A line about a model, and what is not true of it."""
    model = load(path)
    values: list[Value] = [value for node in model.graph for value in node.outputs if value.name]
    for value in values:
        value.type = None
    sizes = sizes_of(model, given)
    facts = {value.name: fact for value, fact in infer_graph(model).items()}
    counts: Counter[str] = Counter()
    wrong = []
    for name, array in executed(path, [value.name for value in values], feed_of(load(path), sizes)).items():
        fact = facts.get(name, Fact(None))
        counts["values"] += 1
        counts["typed"] += fact.dtype is not None
        counts["shaped"] += fact.shape is not None and not any(isinstance(dim, Expr) and is_anonymous(dim) for dim in fact.shape)
        counts["symbolic"] += any(isinstance(dim, Expr) for dim in fact.shape or ())
        text = untruth(fact, array, sizes)
        wrong += [] if text is None else [f"  {name}: {text}"]
    shown = ", ".join(f"{counts[key]} {key}" for key in ("values", "typed", "shaped", "symbolic"))
    return f"{path.stem}: {shown}, {len(wrong)} untrue", wrong


def main() -> int:
    """Check what the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--sizes", nargs="*", default=[])
    arguments = parser.parse_args()
    given = {name: int(size) for name, _, size in (text.partition("=") for text in arguments.sizes)}
    failed = False
    for path in arguments.models:
        try:
            line, wrong = check(path, given)
        except SardonyxError as error:
            line, wrong = f"{path.stem}: does not run with these sizes: {error}", []
        print(line, *wrong, sep="\n", flush=True)
        failed |= bool(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main())
