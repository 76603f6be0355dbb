"""Models to measure: those of a zoo where one is given, else three that are made here, with random weights of a fixed seed.

    python benchmarks/models.py                       mlp, resnet and encoder, made here
    python benchmarks/models.py --zoo FOLDER          those of FOLDER/materialize.py

FOLDER has `materialize.py` with `materialize(name, cache) -> path` and `inputs(name, seed) -> {case: feed}`. The models that are
made here:

    mlp         3 products of 256 with biases and Relus
    resnet      a convolution of 7 x 7 and 8 residual blocks of 64 to 256 channels on images of 112 x 112
    encoder     4 layers of a transformer of 256 features and 4 heads over token ids
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["OWN", "Zoo", "add_options", "files"]

_OPSET = 17


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --zoo and --cache."""
    parser.add_argument("--zoo", default="", help="a folder with materialize.py; without it models are made here")
    cache = os.environ.get("SARDONYX_ZOO", str(Path(tempfile.gettempdir()) / "sardonyx-zoo"))
    parser.add_argument("--cache", default=cache, help="the folder that models are made in")


def files(arguments: argparse.Namespace) -> list[Path]:
    """Return the files of `arguments.models`, which are paths or names of models; where there are none, all that are made here."""
    zoo, names = Zoo(arguments.zoo, arguments.cache), [str(name) for name in arguments.models]
    if arguments.zoo and not names:
        sys.exit("say which models of the zoo to measure")
    return [Path(name) if Path(name).is_file() else zoo.path(name) for name in names or OWN]


class Zoo:
    """Models by name, and feeds for them."""

    def __init__(self, folder: str, cache: str) -> None:
        """Use the zoo of `folder`, or the models made here where it is ""; models are written to `cache`."""
        self._module: Any = None
        self._cache = Path(cache)
        if folder:
            if not (Path(folder) / "materialize.py").is_file():
                sys.exit(f"there is no materialize.py in {folder!r}; without --zoo the models of benchmarks/zoo.py are measured")
            sys.path.insert(0, folder)
            self._module = importlib.import_module("materialize")

    def path(self, name: str) -> Path:
        """Return the file of a model, which is made where it is missing."""
        if self._module is not None:
            return Path(self._module.materialize(name, str(self._cache)))
        if name not in OWN:
            sys.exit(f"there is no model {name!r}; made here are {', '.join(OWN)}, and --zoo FOLDER has others")
        path = self._cache / f"own_{name}.onnx"
        if not path.is_file():
            self._cache.mkdir(parents=True, exist_ok=True)
            onnx.save(OWN[name](_Builder(name)), path)
        return path

    def feed(self, name: str) -> dict[str, Any]:
        """Return the inputs of a model."""
        if self._module is not None:
            return dict(next(iter(self._module.inputs(name, 0).values())))
        from sardonyx.session.draw.feeds import random_feeds

        return random_feeds(self.path(name), dims={"sequence": 128} if name == "encoder" else {})


class _Builder:
    """Writes nodes one after another."""

    def __init__(self, name: str) -> None:
        self._name, self._rng = name, np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def weight(self, *shape: int, scale: float | None = None) -> str:
        """Add a weight, scaled such that products keep the size of what they multiply."""
        scale = float(np.prod(shape[1:])) ** -0.5 if scale is None else scale
        return self.constant((self._rng.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, array: np.ndarray) -> str:
        self._weights.append(numpy_helper.from_array(array, f"w{len(self._weights)}"))
        return str(self._weights[-1].name)

    def __call__(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(op_type, inputs, [f"v{len(self._nodes)}"], f"n{len(self._nodes)}", **attributes))
        return str(self._nodes[-1].output[0])

    def model(self, name: str, dtype: int, shape: list[int | str], result: str) -> onnx.ModelProto:
        inputs = [helper.make_tensor_value_info(name, dtype, shape)]
        outputs = [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self._nodes, self._name, inputs, outputs, self._weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)


def _mlp(op: _Builder) -> onnx.ModelProto:
    value = "x"
    for _ in range(3):
        value = op("Relu", op("Gemm", value, op.weight(256, 256), op.weight(256, scale=0.1), transB=1))
    return op.model("x", TensorProto.FLOAT, ["batch", 256], value)


def _resnet(op: _Builder) -> onnx.ModelProto:
    value = op("Relu", op("Conv", "x", op.weight(64, 3, 7, 7), op.weight(64, scale=0.1), strides=[2, 2], pads=[3] * 4))
    channels = 64
    for block in range(8):
        wider = 64 << min(block // 3, 2)
        stride = 2 if wider != channels else 1
        straight = op("Conv", value, op.weight(wider, channels, 1, 1), strides=[stride] * 2) if wider != channels else value
        value = op("Relu", op("Conv", value, op.weight(wider, channels, 3, 3), strides=[stride] * 2, pads=[1] * 4))
        value = op("Relu", op("Add", op("Conv", value, op.weight(wider, wider, 3, 3), pads=[1] * 4), straight))
        channels = wider
    value = op("Flatten", op("GlobalAveragePool", value))
    return op.model("x", TensorProto.FLOAT, ["batch", 3, 112, 112], op("Gemm", value, op.weight(100, channels), transB=1))


def _encoder(op: _Builder) -> onnx.ModelProto:
    width, heads = 256, 4
    value = op("Gather", op.weight(1000, width, scale=1.0), "ids")
    split = op.constant(np.int64([0, 0, heads, width // heads]))
    merge = op.constant(np.int64([0, 0, width]))
    for _ in range(4):
        normal = op("LayerNormalization", value, op.constant(np.ones(width, np.float32)))
        query, key, values = (op("Reshape", op("MatMul", normal, op.weight(width, width)), split) for _ in range(3))
        scores = op("MatMul", op("Transpose", query, perm=[0, 2, 1, 3]), op("Transpose", key, perm=[0, 2, 3, 1]))
        scaled = op("Mul", scores, op.constant(np.float32((width // heads) ** -0.5)))
        mixed = op("MatMul", op("Softmax", scaled, axis=-1), op("Transpose", values, perm=[0, 2, 1, 3]))
        mixed = op("Reshape", op("Transpose", mixed, perm=[0, 2, 1, 3]), merge)
        value = op("Add", value, op("MatMul", mixed, op.weight(width, width)))
        normal = op("LayerNormalization", value, op.constant(np.ones(width, np.float32)))
        hidden = op("Relu", op("MatMul", normal, op.weight(width, 4 * width)))
        value = op("Add", value, op("MatMul", hidden, op.weight(4 * width, width)))
    return op.model("ids", TensorProto.INT64, ["batch", "sequence"], value)


OWN = {"mlp": _mlp, "resnet": _resnet, "encoder": _encoder}
"""The models that are made here."""
