"""Pipelines as scikit-learn's converter writes them, one row and many, against onnxruntime where it is installed.

    taskset -c 0 python benchmarks/pipelines.py [--rows 4000] [NAME …]

One thread; the least time of rounds in which both take turns. Models are made here, of random numbers, in the operators that
skl2onnx uses: Scaler, Imputer, OneHotEncoder, LinearClassifier, SVMClassifier, ZipMap and others. Prints microseconds, their
ratios, and the nodes that no kernel is compiled for.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

import sardonyx

ROUNDS = 9
ROUND_S = 0.02
F, C, V = 20, 3, 500
ML = "ai.onnx.ml"
RNG = np.random.default_rng(1)
LABELS = {"classlabels_int64s": list(range(C))}
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def drawn(*shape: int) -> list[float]:
    """Random numbers of a shape, in a row."""
    values: list[float] = RNG.standard_normal(shape).astype(np.float32).reshape(-1).tolist()
    return values


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """A node of ai.onnx.ml."""
    return helper.make_node(op_type, inputs.split(), outputs.split(), domain=ML, **attributes)


def scaler(source: str = "x") -> NodeProto:
    """A StandardScaler."""
    return node("Scaler", source, "scaled", offset=drawn(F), scale=[0.5] * F)


def linear(source: str, **attributes: Any) -> NodeProto:
    """A LogisticRegression of three classes."""
    given = {"classlabels_ints": list(range(C)), "post_transform": "SOFTMAX"} | attributes
    features = F + 8 if source == "joined" else F
    return node("LinearClassifier", source, "label scores", coefficients=drawn(C, features), intercepts=drawn(C), **given)


def machine(kernel: str, *, probabilities: bool) -> NodeProto:
    """An SVC of three classes."""
    pairs = C * (C - 1) // 2
    given = {"prob_a": [-1.5] * pairs, "prob_b": drawn(pairs)} if probabilities else {}
    return node(
        "SVMClassifier",
        "scaled",
        "label scores",
        coefficients=drawn(C - 1, V),
        support_vectors=drawn(V, F),
        vectors_per_class=[V // C, V // C, V - 2 * (V // C)],
        rho=drawn(pairs),
        kernel_type=kernel,
        kernel_params=[0.05, 0.1, 3.0],
        classlabels_ints=list(range(C)),
        **given,
    )


def regressor(kernel: str) -> NodeProto:
    """An SVR."""
    return node(
        "SVMRegressor",
        "scaled",
        "y",
        coefficients=drawn(V),
        support_vectors=drawn(V, F),
        n_supports=V,
        rho=[0.5],
        kernel_type=kernel,
        kernel_params=[0.05, 0.1, 3.0],
    )


def zip_map(source: str = "scores", **labels: Any) -> NodeProto:
    """Scores as maps."""
    return node("ZipMap", source, "maps", **(labels or LABELS))


def normalizer(norm: str) -> NodeProto:
    """Rows of one length."""
    return node("Normalizer", "scores", "normal", norm=norm)


def tensor(name: str, kind: int = FLOAT, columns: int | None = None) -> ValueInfoProto:
    """An output of one row for each row of the input."""
    return helper.make_tensor_value_info(name, kind, [None] if columns is None else [None, columns])


def maps(kind: int = INT64) -> ValueInfoProto:
    """An output of a map for each row of the input."""
    element = helper.make_map_type_proto(kind, helper.make_tensor_type_proto(FLOAT, []))
    return helper.make_value_info("maps", helper.make_sequence_type_proto(element))


def mixed() -> list[NodeProto]:
    """A ColumnTransformer: numbers are imputed and scaled, categories encoded, and all joined."""
    places = {"numbers": list(range(F - 2)), "first": [F - 2], "second": [F - 1]}
    nodes = [helper.make_node("Constant", [], [f"{name} at"], value_ints=at) for name, at in places.items()]
    nodes += [helper.make_node("ArrayFeatureExtractor", ["x", f"{name} at"], [name], domain=ML) for name in places]
    nodes.append(node("Imputer", "numbers", "imputed", imputed_value_floats=drawn(F - 2), replaced_value_float=math.nan))
    nodes.append(node("Scaler", "imputed", "ready", offset=drawn(F - 2), scale=[0.5] * (F - 2)))
    for name in ("first", "second"):
        nodes.append(node("OneHotEncoder", name, f"{name}_hot", cats_int64s=[-2, -1, 0, 1, 2]))
        nodes.append(helper.make_node("Reshape", [f"{name}_hot", "shape"], [f"{name}_flat"]))
    nodes.append(helper.make_node("Constant", [], ["shape"], value_ints=[-1, 5]))
    nodes.append(node("FeatureVectorizer", "ready first_flat second_flat", "joined", inputdimensions=[F - 2, 5, 5]))
    nodes.append(linear("joined"))
    return sorted(nodes, key=lambda made: made.op_type != "Constant") + [zip_map()]


TEXTS = ["setosa", "versicolor", "virginica"]
PIPELINES: dict[str, tuple[Callable[[], list[NodeProto]], Sequence[ValueInfoProto]]] = {
    "linear regressor": (
        lambda: [scaler(), node("LinearRegressor", "scaled", "y", coefficients=drawn(F), intercepts=[0.5])],
        [tensor("y", columns=1)],
    ),
    "logistic regression": (lambda: [scaler(), linear("scaled")], [tensor("label", INT64), tensor("scores", columns=C)]),
    "logistic, ZipMap": (
        lambda: [scaler(), linear("scaled", post_transform="LOGISTIC"), normalizer("L1"), zip_map("normal")],
        [tensor("label", INT64), maps()],
    ),
    "logistic, labels of text": (
        lambda: [
            scaler(),
            linear("scaled", classlabels_ints=None, classlabels_strings=TEXTS),
            zip_map(classlabels_strings=TEXTS),
        ],
        [tensor("label", TensorProto.STRING), maps(TensorProto.STRING)],
    ),
    **{
        f"SVR {kernel}": (lambda kernel=kernel: [scaler(), regressor(kernel)], [tensor("y", columns=1)])
        for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")
    },
    "SVC RBF, ZipMap": (
        lambda: [scaler(), machine("RBF", probabilities=False), zip_map()],
        [tensor("label", INT64), maps()],
    ),
    "SVC RBF, probabilities, ZipMap": (
        lambda: [scaler(), machine("RBF", probabilities=True), zip_map()],
        [tensor("label", INT64), maps()],
    ),
    "mixed columns, ZipMap": (mixed, [tensor("label", INT64), maps()]),
    **{
        f"normalizer {norm}": (lambda norm=norm: [node("Normalizer", "x", "y", norm=norm)], [tensor("y", columns=F)])
        for norm in ("MAX", "L1", "L2")
    },
    "label encoder": (
        lambda: [node("LabelEncoder", "x", "y", keys_floats=sorted(drawn(50)), values_floats=drawn(50))],
        [tensor("y", columns=F)],
    ),
}
"""Name -> what makes the nodes, and the outputs."""


def model_of(name: str) -> ModelProto:
    """A pipeline as a model."""
    make, outputs = PIPELINES[name]
    source = [tensor("x", columns=F)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 2 if name == "label encoder" else 1)]
    return helper.make_model(helper.make_graph(make(), "pipeline", source, list(outputs)), opset_imports=opsets, ir_version=8)


def seconds(runs: Sequence[Callable[[], object]]) -> list[float]:
    """The least time of one call of each, of rounds in turns."""
    best = [math.inf] * len(runs)
    for run in runs:
        for _ in range(3):
            run()
    for _ in range(ROUNDS):
        for place, run in enumerate(runs):
            start = time.perf_counter()
            count = 0
            while (spent := time.perf_counter() - start) < ROUND_S:
                run()
                count += 1
            best[place] = min(best[place], spent / count)
    return best


def peer_of(content: bytes) -> Any:
    """A session of onnxruntime; None where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="pipelines whose names contain one of these; all by default")
    parser.add_argument("--rows", type=int, default=4000, help="how many rows are many")
    arguments = parser.parse_args()
    chosen = [name for name in PIPELINES if not arguments.names or any(part in name for part in arguments.names)]
    x = RNG.standard_normal((arguments.rows, F)).astype(np.float32)
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    ratios: dict[int, list[float]] = {1: [], arguments.rows: []}
    for name in chosen:
        content = model_of(name).SerializeToString()
        ours, peer = sardonyx.InferenceSession(content, options), peer_of(content)
        texts = []
        for rows in ratios:
            feed = {"x": x[:rows]}
            found = seconds([lambda feed=feed, run=held.run: run(None, feed) for held in (ours, peer) if held is not None])
            texts.append(" / ".join(f"{1e6 * time_s:9.1f}" for time_s in found))
            if len(found) == 2:
                ratios[rows].append(found[0] / found[1])
                texts[-1] += f" = {ratios[rows][-1]:5.2f}"
        left = [place.op_type for place in ours.explain() if place.provider != "CPUExecutionProvider"]
        print(f"{name:32}1 row {texts[0]}   {arguments.rows} rows {texts[1]}   {' '.join(left)}", flush=True)
    for rows, values in ratios.items():
        if values:
            mean = math.exp(sum(map(math.log, values)) / len(values))
            print(f"{rows} rows: geometric mean {mean:.2f}, worst {max(values):.2f} of onnxruntime's time")


if __name__ == "__main__":
    main()
