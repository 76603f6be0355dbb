"""How far sums lie from float64, beside onnxruntime: products, convolutions, reductions, normalization, attention.

    python benchmarks/sums.py [--least K] [--most K]

An error is the root mean square of the difference from float64, relative to that of the result: it grows with the length of chains
of additions. Operands are normal, or positive (uniform), where partial sums grow steadily. Bar: at most 1.2 times onnxruntime's,
and nothing where both are below half a unit in the last place (a ratio of two errors of rounding the result alone says nothing).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

BAR = 1.2
_ROUNDING = 2.0**-25
_CASES = dict[str, Callable[[np.random.Generator, int], tuple[str, dict[str, Any], Any]]]


def _draw(rng: np.random.Generator, positive: bool, *shape: int) -> Any:
    drawn = rng.random(shape) if positive else rng.standard_normal(shape)
    return drawn.astype(np.float32)


def _wide(array: Any) -> Any:
    return array.astype(np.float64)


def _product(rows: int, *, is_constant: bool) -> Callable[[np.random.Generator, bool, int], tuple[Any, dict[str, Any], Any]]:
    def case(rng: np.random.Generator, positive: bool, K: int) -> tuple[Any, dict[str, Any], Any]:
        a, b = _draw(rng, positive, rows, K), _draw(rng, positive, K, 64)
        feeds = {"a": a} if is_constant else {"a": a, "b": b}
        return _model("MatMul", ["a", "b"], {"a": a, "b": b}, [] if not is_constant else ["b"]), feeds, _wide(a) @ _wide(b)

    return case


def _conv(taps: int) -> Callable[[np.random.Generator, bool, int], tuple[Any, dict[str, Any], Any]]:
    def case(rng: np.random.Generator, positive: bool, K: int) -> tuple[Any, dict[str, Any], Any]:
        channels = max(K // (taps * taps), 1)
        x, w = _draw(rng, positive, 1, channels, 6, 6), _draw(rng, positive, 32, channels, taps, taps)
        windows = np.lib.stride_tricks.sliding_window_view(_wide(x), (taps, taps), (2, 3))
        exact = np.einsum("nchwij,ocij->nohw", windows, _wide(w), optimize=True)
        return _model("Conv", ["x", "w"], {"x": x, "w": w}, ["w"]), {"x": x}, exact

    return case


def _reduction(op_type: str, exact: Callable[[Any], Any], axis: int) -> Callable[..., tuple[Any, dict[str, Any], Any]]:
    def case(rng: np.random.Generator, positive: bool, K: int) -> tuple[Any, dict[str, Any], Any]:
        x = _draw(rng, positive, *((16, K) if axis else (K, 16)))
        axes = np.array([axis], np.int64)
        return _model(op_type, ["x", "axes"], {"x": x, "axes": axes}, ["axes"]), {"x": x}, exact(_wide(x), axis)

    return case


def _layer_norm(rng: np.random.Generator, positive: bool, K: int) -> tuple[Any, dict[str, Any], Any]:
    x = _draw(rng, positive, 16, K) + np.float32(4)
    wide, scale = _wide(x), np.ones(K, np.float32)
    centred = wide - wide.mean(1, keepdims=True)
    exact = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    return _model("LayerNormalization", ["x", "s"], {"x": x, "s": scale}, ["s"]), {"x": x}, exact


def _attention(rng: np.random.Generator, positive: bool, K: int) -> tuple[Any, dict[str, Any], Any]:
    q, k, v = (_draw(rng, positive, 1, 2, length, 64) for length in (4, K, K))
    q *= np.float32(0.1)
    scores = _wide(q) @ _wide(k).swapaxes(2, 3) / 8
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    exact = weights / weights.sum(-1, keepdims=True) @ _wide(v)
    return _model("Attention", ["q", "k", "v"], {"q": q, "k": k, "v": v}, []), {"q": q, "k": k, "v": v}, exact


CASES: dict[str, Callable[[np.random.Generator, bool, int], tuple[Any, dict[str, Any], Any]]] = {
    "MatMul 64 rows, constant": _product(64, is_constant=True),
    "MatMul 64 rows": _product(64, is_constant=False),
    "MatMul 1 row, constant": _product(1, is_constant=True),
    "MatMul 1 row": _product(1, is_constant=False),
    "Conv 1x1": _conv(1),
    "Conv 3x3": _conv(3),
    "ReduceSum last": _reduction("ReduceSum", lambda x, axis: x.sum(axis, keepdims=True), 1),
    "ReduceSum first": _reduction("ReduceSum", lambda x, axis: x.sum(axis, keepdims=True), 0),
    "ReduceMean last": _reduction("ReduceMean", lambda x, axis: x.mean(axis, keepdims=True), 1),
    "ReduceL2 last": _reduction("ReduceL2", lambda x, axis: np.sqrt((x * x).sum(axis, keepdims=True)), 1),
    "LayerNormalization": _layer_norm,
    "Attention, K keys": _attention,
}


def _model(op_type: str, names: list[str], arrays: dict[str, Any], constants: list[str]) -> bytes:
    from onnx import helper, numpy_helper

    fed = [name for name in names if name not in constants]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(arrays[name].dtype), arrays[name].shape) for name in fed
    ]
    outputs = [helper.make_tensor_value_info("y", 1, None)]
    weights = [numpy_helper.from_array(arrays[name], name) for name in constants]
    graph = helper.make_graph([helper.make_node(op_type, names, ["y"])], "sums", inputs, outputs, weights)
    made: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10).SerializeToString()
    return made


def _error(found: Any, exact: Any) -> float:
    difference = _wide(found) - exact
    return float(np.sqrt((difference**2).mean() / (exact**2).mean()))


def _outputs(model: bytes, feeds: dict[str, Any]) -> Iterator[Any]:
    import onnxruntime

    import sardonyx

    for engine in (sardonyx, onnxruntime):
        options = engine.SessionOptions()
        options.intra_op_num_threads = 1
        yield engine.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


def main() -> None:
    """Print a table, and how many of its rows are above the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--least", type=int, default=64)
    parser.add_argument("--most", type=int, default=16384)
    arguments = parser.parse_args()
    lengths = [1 << bits for bits in range(32) if arguments.least <= 1 << bits <= arguments.most]
    above = 0
    print(f"{'ratio to onnxruntime':>28}  " + "".join(f"{length:>7}" for length in lengths))
    for name, case in CASES.items():
        for positive in (False, True):
            ratios = []
            for length in lengths:
                model, feeds, exact = case(np.random.default_rng(length), positive, length)
                ours, theirs = (max(_error(found, exact), _ROUNDING) for found in _outputs(model, feeds))
                ratios.append(ours / theirs)
            above += sum(ratio > BAR for ratio in ratios)
            print(f"{name:>24}{'  +' if positive else '   '}   " + "".join(f"{ratio:7.2f}" for ratio in ratios), flush=True)
    print(f"{above} above {BAR}")


if __name__ == "__main__":
    main()
