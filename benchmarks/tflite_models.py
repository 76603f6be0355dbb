"""Makes TensorFlow Lite models of the usual kinds, with random weights, for `tflite.py`; needs tensorflow.

    python benchmarks/tflite_models.py FOLDER [--forms float int8 …] [NAME …]

A file is NAME.FORM.tflite. Forms: float; float16 (weights); dynamic (int8 weights, float activations); int8 (full, per
channel); int16x8. A file that is there already is left alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

FORMS = ("float", "float16", "dynamic", "int8", "int16x8")
layers = tf.keras.layers


def settled(model: Any) -> Any:
    """Return a network whose normalizations have statistics as of training, so that numbers neither fade nor explode."""
    rng = np.random.default_rng(0)
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            gamma, beta, mean, variance = layer.get_weights()
            layer.set_weights(
                [
                    rng.uniform(0.7, 1.3, gamma.shape).astype(np.float32),
                    rng.normal(0, 0.2, beta.shape).astype(np.float32),
                    rng.normal(0, 0.1, mean.shape).astype(np.float32),
                    rng.uniform(0.3, 0.8, variance.shape).astype(np.float32),
                ]
            )
    return model


def mobilenet_v1() -> Any:
    """Return MobileNet of 2017."""
    return settled(tf.keras.applications.MobileNet(weights=None))


def mobilenet_v2() -> Any:
    """Return MobileNetV2."""
    return settled(tf.keras.applications.MobileNetV2(weights=None))


def mobilenet_v3() -> Any:
    """Return MobileNetV3, the small one."""
    return settled(tf.keras.applications.MobileNetV3Small((224, 224, 3), weights=None))


def efficientnet_lite() -> Any:
    """Return EfficientNet-lite0: B0 without squeeze-and-excitation, with ReLU6."""
    value = entry = tf.keras.Input((224, 224, 3))

    def normalized(value: Any, *, active: bool = True) -> Any:
        value = layers.BatchNormalization()(value)
        return layers.ReLU(6.0)(value) if active else value

    value = normalized(layers.Conv2D(32, 3, 2, "same", use_bias=False)(value))
    stages = (
        (1, 16, 1, 1, 3),
        (6, 24, 2, 2, 3),
        (6, 40, 2, 2, 5),
        (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    )
    for wide, channels, count, stride, kernel in stages:
        for number in range(count):
            before = value
            if wide > 1:
                value = normalized(layers.Conv2D(value.shape[-1] * wide, 1, use_bias=False)(value))
            value = normalized(layers.DepthwiseConv2D(kernel, 1 if number else stride, "same", use_bias=False)(value))
            value = normalized(layers.Conv2D(channels, 1, use_bias=False)(value), active=False)
            value = layers.Add()([before, value]) if number else value
    value = normalized(layers.Conv2D(1280, 1, use_bias=False)(value))
    value = layers.Dense(1000, "softmax")(layers.GlobalAveragePooling2D()(value))
    return settled(tf.keras.Model(entry, value))


def segmentation() -> Any:
    """Return a DeepLab: MobileNetV2 to a stride of 16, windows apart from one another, resized masks."""
    trunk = tf.keras.applications.MobileNetV2((224, 224, 3), weights=None, include_top=False, alpha=0.5)
    value = trunk.get_layer("block_13_expand_relu").output
    parts = [layers.Conv2D(64, 1, activation="relu")(value)]
    parts += [layers.Conv2D(64, 3, padding="same", dilation_rate=rate, activation="relu")(value) for rate in (3, 6)]
    pooled = layers.GlobalAveragePooling2D(keepdims=True)(value)
    parts.append(layers.Resizing(14, 14)(layers.Conv2D(64, 1, activation="relu")(pooled)))
    value = layers.Conv2D(64, 1, activation="relu")(layers.Concatenate()(parts))
    value = layers.Conv2DTranspose(32, 3, 2, "same", activation="relu")(value)
    value = layers.Resizing(224, 224)(layers.Conv2D(21, 1)(value))
    return settled(tf.keras.Model(trunk.input, value))


def detector() -> Any:
    """Return an SSD on MobileNetV2, with its boxes decoded and sifted."""
    trunk = tf.keras.applications.MobileNetV2((224, 224, 3), weights=None, include_top=False, alpha=0.5)
    maps = [trunk.get_layer("block_13_expand_relu").output, trunk.output]
    boxes, scores, count = [], [], 0
    for value in maps:
        size = value.shape[1] * value.shape[2] * 3
        boxes.append(layers.Reshape((size, 4))(layers.Conv2D(12, 3, padding="same")(value)))
        scores.append(layers.Reshape((size, 21))(layers.Conv2D(63, 3, padding="same")(value)))
        count += size
    joined = layers.Activation("sigmoid")(layers.Concatenate(axis=1)(scores))
    network = settled(tf.keras.Model(trunk.input, [layers.Concatenate(axis=1)(boxes), joined]))
    anchors = tf.constant(np.random.default_rng(0).uniform(0.2, 0.8, (count, 4)).astype(np.float32))
    frozen = constant(network)
    options = (
        'name: "TFLite_Detection_PostProcess" '
        'attr { key: "max_detections" value { i: 10 } } attr { key: "max_classes_per_detection" value { i: 1 } } '
        'attr { key: "use_regular_nms" value { b: false } } attr { key: "nms_score_threshold" value { f: 0.3 } } '
        'attr { key: "nms_iou_threshold" value { f: 0.6 } } attr { key: "y_scale" value { f: 10.0 } } '
        'attr { key: "x_scale" value { f: 10.0 } } attr { key: "h_scale" value { f: 5.0 } } '
        'attr { key: "w_scale" value { f: 5.0 } } attr { key: "num_classes" value { i: 20 } }'
    )

    @tf.function(experimental_implements=options)
    def sift(boxes: Any, scores: Any, anchors: Any) -> Any:
        return tf.zeros((1, 10, 4)), tf.zeros((1, 10)), tf.zeros((1, 10)), tf.zeros((1,))

    class Detector(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((1, 224, 224, 3), tf.float32)])
        def __call__(self, image: Any) -> Any:
            return sift(*frozen(image), anchors)

    return Detector()


class Keywords(tf.Module):
    """A streaming keyword spotter: each run takes one frame, and the layers keep the frames before."""

    def __init__(self) -> None:
        """Make weights and states."""
        super().__init__()
        rng = np.random.default_rng(0)
        self.filters = [tf.Variable(rng.normal(0, 0.2, (8, 1, size, 64)).astype(np.float32)) for size in (40, 64, 64)]
        self.past = [tf.Variable(tf.zeros((1, 7, 1, size)), trainable=False) for size in (40, 64, 64)]
        self.classes = tf.Variable(rng.normal(0, 0.2, (64, 12)).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec((1, 1, 1, 40), tf.float32)])
    def __call__(self, frame: Any) -> Any:
        """Return the logits of 12 words behind one more frame of 40 features."""
        value = frame
        for filters, past in zip(self.filters, self.past, strict=True):
            window = tf.concat([past, value], 1)
            past.assign(window[:, 1:])
            value = tf.nn.relu(tf.nn.conv2d(window, filters, 1, "VALID"))
        return tf.matmul(tf.reshape(value, (1, 64)), self.classes)


def lstm() -> Any:
    """Return two LSTMs over 32 steps of 64 features."""
    entry = tf.keras.Input((32, 64), batch_size=1)
    value = layers.LSTM(128, return_sequences=True)(entry)
    return tf.keras.Model(entry, layers.Dense(16)(layers.LSTM(128)(value)))


def _attended(value: Any, heads: int, size: int, mask: Any = None) -> Any:
    shape = (1, -1, heads, size // heads)
    parts = [tf.keras.ops.reshape(layers.Dense(size)(value), shape) for _ in range(3)]
    query, key, content = (tf.keras.ops.transpose(part, (0, 2, 1, 3)) for part in parts)
    scores = tf.keras.ops.matmul(query, tf.keras.ops.transpose(key, (0, 1, 3, 2))) * (size // heads) ** -0.5
    scores = scores if mask is None else scores + mask
    mixed = tf.keras.ops.matmul(tf.keras.ops.softmax(scores), content)
    return layers.Dense(size)(tf.keras.ops.reshape(tf.keras.ops.transpose(mixed, (0, 2, 1, 3)), (1, -1, size)))


def _transformer(tokens: int, depth: int, mask: Any, vocabulary: int) -> Any:
    size = 256
    entry = tf.keras.Input((tokens,), batch_size=1, dtype=tf.int32)
    value = layers.Embedding(1000, size)(entry)
    for _ in range(depth):
        value = layers.LayerNormalization()(value + _attended(value, 4, size, mask))
        value = layers.LayerNormalization()(value + layers.Dense(size)(layers.Dense(4 * size, "gelu")(value)))
    return tf.keras.Model(entry, layers.Dense(vocabulary)(value))


def bert() -> Any:
    """Return a BERT of four layers over 64 tokens."""
    return _transformer(64, 4, None, 2)


def decoder() -> Any:
    """Return a decoder of two layers over 32 tokens, each of which attends to those before it."""
    mask = np.triu(np.full((32, 32), -1e4, np.float32), 1)
    return _transformer(32, 2, mask, 1000)


MODELS: dict[str, Callable[[], Any]] = {
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v3": mobilenet_v3,
    "efficientnet_lite": efficientnet_lite,
    "segmentation": segmentation,
    "detector": detector,
    "keywords": Keywords,
    "lstm": lstm,
    "bert": bert,
    "decoder": decoder,
}


def constant(model: Any) -> Any:
    """Return a network as a function of one image, or of one list of tokens, whose weights are constants."""
    batch = tf.TensorSpec((1, *model.inputs[0].shape[1:]), model.inputs[0].dtype)
    function = tf.function(lambda value: model(value, training=False), input_signature=[batch]).get_concrete_function()
    return convert_variables_to_constants_v2(function)


def converted(model: Any, form: str) -> bytes:
    """Return a model as a file of a form."""
    is_network = isinstance(model, tf.keras.Model)
    function = constant(model) if is_network else model.__call__.get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], None if is_network else model)
    converter.allow_custom_ops = True
    if form != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if form == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if form in ("int8", "int16x8"):
        spec = function.inputs[0]
        converter.representative_dataset = lambda: _drawn(spec)
    if form == "int8":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8, tf.lite.OpsSet.TFLITE_BUILTINS]
        converter.inference_input_type = converter.inference_output_type = tf.float32 if isinstance(model, tf.Module) else tf.int8
    if form == "int16x8":
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8,
            tf.lite.OpsSet.TFLITE_BUILTINS,
        ]
    return bytes(converter.convert())


def _drawn(spec: Any) -> Iterator[list[Any]]:
    rng = np.random.default_rng(1)
    for _ in range(3):
        shape = tuple(spec.shape)
        yield [
            rng.integers(0, 1000, shape).astype(np.int32) if spec.dtype == tf.int32 else rng.normal(0, 1, shape).astype(np.float32)
        ]


def main() -> int:
    """Make the files; the exit status is the number of those that the converter refuses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--forms", nargs="*", default=FORMS)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    refused = 0
    for name in arguments.names or MODELS:
        missing = [form for form in arguments.forms if not (arguments.folder / f"{name}.{form}.tflite").exists()]
        if not missing:
            continue
        tf.keras.utils.set_random_seed(0)
        model = MODELS[name]()
        for form in missing:
            try:
                data = converted(model, form)
            except Exception as reason:  # noqa: BLE001  the converter raises anything
                print(f"{name}.{form}: {type(reason).__name__}: {reason!s:.300}", file=sys.stderr)
                refused += 1
                continue
            (arguments.folder / f"{name}.{form}.tflite").write_bytes(data)
            print(f"{name}.{form}: {len(data)} bytes", flush=True)
    return min(refused, 100)


if __name__ == "__main__":
    raise SystemExit(main())
