"""Push the transposes of a model in text form, and see that it computes the same bits."""

from __future__ import annotations

import numpy as np
from support.evaluate import evaluate_model
from support.models import model

from sardonyx.dtypes import DataType
from sardonyx.ir import Model, Tensor
from sardonyx.ir.verify import verify
from sardonyx.ops.infer import infer_graph
from sardonyx.optimize.transposes.push import push_transposes

__all__ = ["operators", "pushed"]


def pushed(body: str, *, inputs: str = "x: float[2, 3, 4, 6]", opset: int = 21) -> Model:
    """The model `body` of t, which is x in NHWC, after pushing; `y` is its output, and inputs other than x are int64 or float.

    Weights written as `...` become small whole numbers, so that sums are exact in any order. Fails where its outputs or their
    declared shapes change.
    """
    text = f"graph({inputs}) -> (y) {{\n t = Transpose(x) {{perm = [0, 2, 3, 1]}}\n {body}\n}}"
    before, after = model(text, opset=opset), model(text, opset=opset)
    _make_whole(before)
    _make_whole(after)
    infer_graph(after)
    declared = [value.shape for value in after.graph.outputs]
    push_transposes(after.graph, set(after.graph))
    verify(after)
    feeds = {value.name: _array(value.dtype, [int(str(dim)) for dim in value.shape or ()]) for value in before.graph.inputs}
    for ours, theirs, shape in zip(evaluate_model(after, feeds), evaluate_model(before, feeds), declared, strict=True):
        assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())
        assert all(not isinstance(dim, int) or dim == size for dim, size in zip(shape or (), ours.shape, strict=False))
    return after


def operators(held: Model) -> list[str]:
    """The operators in order."""
    return [node.op_type for node in held.graph]


def _make_whole(held: Model) -> None:
    for value in held.graph.initializers.values():
        numbers = value.constant.numpy() if value.constant is not None else np.empty(0)
        if numbers.dtype == np.float32 and (numbers * 1024 % 1).any():
            value.constant = Tensor.from_array(np.rint(4 * numbers))


def _array(dtype: DataType | None, shape: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    generator = np.random.default_rng(0)
    if dtype is DataType.INT64:
        return generator.integers(1, 3, shape)
    return generator.integers(-9, 10, shape).astype(np.float32)
