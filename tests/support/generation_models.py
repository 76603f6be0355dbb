"""Tiny models of the form that the generation loops of com.microsoft run, as their graph attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

__all__ = [
    "HEADS",
    "SIZE",
    "VOCABULARY",
    "cross_encoder_decoder",
    "encoder_decoder",
    "language_model",
    "loop_model",
    "whisper",
    "whisper_with_products",
]

VOCABULARY, HEADS, SIZE = 24, 2, 4
_HIDDEN = HEADS * SIZE
_MICROSOFT = "com.microsoft"
_INT, _FLOAT = TensorProto.INT32, TensorProto.FLOAT


def _weights(seed: int, **shapes: Sequence[int]) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [numpy_helper.from_array(generator.standard_normal(shape).astype(np.float32), name) for name, shape in shapes.items()]


def _node(op_type: str, inputs: str, outputs: str, domain: str = "", **attributes: Any) -> Any:
    names = ["" if name == "_" else name for name in inputs.split()]
    return helper.make_node(op_type, names, outputs.split(), domain=domain, **attributes)


def _value(name: str, kind: int, *shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def _past(name: str, keys: str) -> Any:
    return _value(name, _FLOAT, 2, "rows", HEADS, keys, SIZE)


def language_model(seed: int = 0, name: str = "decoder") -> Any:
    """A decoder of one layer: embeddings, attention with a past, and the embeddings again for the logits; Any is a GraphProto."""
    nodes = [
        _node("Gather", "words input_ids", "word"),
        _node("Gather", "places position_ids", "place"),
        _node("Add", "word place", "x"),
        _node("Attention", "x weights bias attention_mask past_0", "y present_0", _MICROSOFT, num_heads=HEADS, unidirectional=1),
        _node("Add", "x y", "z"),
        _node("Transpose", "words", "turned", perm=[1, 0]),
        _node("MatMul", "z turned", "logits"),
    ]
    inputs = [
        _value("input_ids", _INT, "rows", "length"),
        _value("position_ids", _INT, "rows", "length"),
        _value("attention_mask", _INT, "rows", "total"),
        _past("past_0", "past"),
    ]
    outputs = [_value("logits", _FLOAT, "rows", "length", VOCABULARY), _past("present_0", "total")]
    shapes = {"words": (VOCABULARY, _HIDDEN), "places": (32, _HIDDEN), "weights": (_HIDDEN, 3 * _HIDDEN), "bias": (3 * _HIDDEN,)}
    return helper.make_graph(nodes, name, inputs, outputs, _weights(seed, **shapes))


def _state(name: str, keys: str) -> Any:
    return _value(name, _FLOAT, "rows", HEADS, keys, SIZE)


def _heads(name: str, made: str) -> list[Any]:
    """(rows, length, hidden) as (rows, heads, length, size)."""
    return [_node("Reshape", f"{name} apart", f"{made}_split"), _node("Transpose", f"{made}_split", made, perm=[0, 2, 1, 3])]


def _decode(past: str, cross: str, mask: str) -> list[Any]:
    return [
        _node("Gather", "words input_ids", "x"),
        _node("MatMul", "x to_query", "query"),
        _node("MatMul", "x to_key", "key"),
        _node(
            "MultiHeadAttention",
            f"query key x _ _ _ {past}",
            "self present_key_self_0 present_value_self_0",
            _MICROSOFT,
            num_heads=HEADS,
        ),
        _node("Add", "x self", "y"),
        _node("MultiHeadAttention", f"y {cross} _ {mask}", "crossed", _MICROSOFT, num_heads=HEADS),
        _node("Add", "y crossed", "z"),
        _node("Transpose", "words", "turned", perm=[1, 0]),
        _node("MatMul", "z turned", "logits"),
    ]


_HEAD_STATES = ("present_key_self_0", "present_value_self_0")
_CROSS = ("present_key_cross_0", "present_value_cross_0")
_SHAPES = {"words": (VOCABULARY, _HIDDEN), **dict.fromkeys(["to_query", "to_key", "to_value"], (_HIDDEN, _HIDDEN))}


def _encode(source: Any) -> list[Any]:
    """Keys and values of cross attention from what `source` makes of the input: the hidden states."""
    return [
        source,
        _node("MatMul", "encoder_hidden_states to_key", "cross_key"),
        _node("MatMul", "encoder_hidden_states to_value", "cross_value"),
        *_heads("cross_key", _CROSS[0]),
        *_heads("cross_value", _CROSS[1]),
    ]


def _states(names: Sequence[str], keys: str) -> list[Any]:
    return [_state(name, keys) for name in names]


def _decoder(seed: int, *before: Any) -> Any:
    """The decoder; inputs `before` come behind its input_ids."""
    mask = "encoder_attention_mask" if any(value.name == "encoder_attention_mask" for value in before) else "_"
    pasts = [name.replace("present", "past") for name in (*_HEAD_STATES, *_CROSS)]
    return helper.make_graph(
        _decode(" ".join(pasts[:2]), " ".join(pasts[2:]), mask),
        "decoder",
        [_value("input_ids", _INT, "rows", 1), *before, *_states(pasts[:2], "past"), *_states(pasts[2:], "source")],
        [_value("logits", _FLOAT, "rows", 1, VOCABULARY), *_states(_HEAD_STATES, "total")],
        _weights(seed, **_SHAPES)[:3],
    )


def _encoder(nodes: Sequence[Any], inputs: Sequence[Any], length: Any, seed: int) -> Any:
    """An encoder that also runs the decoder on the prompt."""
    apart = numpy_helper.from_array(np.array([0, 0, HEADS, SIZE]), "apart")
    heads = [
        _value("logits", _FLOAT, "rows", length, VOCABULARY),
        _value("encoder_hidden_states", _FLOAT, "rows", "source", _HIDDEN),
    ]
    outputs = [*heads, *_states(_HEAD_STATES, "prompt"), *_states(_CROSS, "source")]
    return helper.make_graph(nodes, "encoder", inputs, outputs, [*_weights(seed, **_SHAPES), apart])


_MASK = _value("encoder_attention_mask", _INT, "rows", "source")
_HIDDEN_STATES = _value("encoder_hidden_states", _FLOAT, "rows", "source", _HIDDEN)
_TOKENS = _value("encoder_input_ids", _INT, "rows", "source")
_EMBED = _node("Gather", "words encoder_input_ids", "encoder_hidden_states")
_PROMPT = _node("Identity", "decoder_input_ids", "input_ids")


def encoder_decoder(seed: int = 0) -> tuple[Any, Any]:
    """Encoder and decoder as of T5, the encoder with the first step of the decoder; Any is a GraphProto."""
    nodes = [*_encode(_EMBED), _PROMPT, *_decode("", " ".join(_CROSS), _MASK.name)]
    inputs = [_TOKENS, _MASK, _value("decoder_input_ids", _INT, "rows", 1)]
    return _encoder(nodes, inputs, 1, seed), _decoder(seed, _MASK, _HIDDEN_STATES)


def cross_encoder_decoder(seed: int = 0) -> tuple[Any, Any]:
    """The same model, its encoder without the first step: the decoder makes it."""
    apart = numpy_helper.from_array(np.array([0, 0, HEADS, SIZE]), "apart")
    encoder = helper.make_graph(
        _encode(_EMBED), "encoder", [_TOKENS, _MASK], _states(_CROSS, "source"), [*_weights(seed, **_SHAPES), apart]
    )
    return encoder, _decoder(seed, _MASK)


def whisper(seed: int = 0) -> tuple[Any, Any]:
    """Encoder and decoder as of Whisper: features (batch, hidden, frames) in, and no mask; Any is a GraphProto."""
    turned = _node("Transpose", "encoder_input_ids", "encoder_hidden_states", perm=[0, 2, 1])
    nodes = [*_encode(turned), _PROMPT, *_decode("", " ".join(_CROSS), "_")]
    inputs = [_value("encoder_input_ids", _FLOAT, "rows", _HIDDEN, "source"), _value("decoder_input_ids", _INT, "rows", "prompt")]
    return _encoder(nodes, inputs, "prompt", seed), _decoder(seed)


def whisper_with_products(seed: int = 0) -> tuple[Any, Any]:
    """The same, the decoder with the products of queries and keys of cross attention as its last output; Any is a GraphProto."""
    encoder, decoder = whisper(seed)
    crossed = next(node for node in decoder.node if node.output[0] == "crossed")
    crossed.output.extend(["", "", "products"])
    decoder.output.append(_value("products", _FLOAT, "rows", HEADS, 1, "source"))
    return encoder, decoder


def loop_model(op_type: str, inputs: Sequence[tuple[str, Any]], outputs: int, **attributes: Any) -> Any:
    """A model of one generation node on inputs with these names and arrays, "" for one left out; Any is a ModelProto."""
    names = [name for name, _ in inputs]
    node = helper.make_node(op_type, names, [f"y{index}" for index in range(outputs)], "loop", domain=_MICROSOFT, **attributes)
    declared = [_value(name, helper.np_dtype_to_tensor_dtype(array.dtype), *array.shape) for name, array in inputs if name]
    results = [_value("y0", _INT, *(["batch"] * (3 if "Beam" in op_type else 2)))]
    results += [_value(f"y{index}", _FLOAT, *(None,) * rank) for index, rank in enumerate([2, 4][: outputs - 1], start=1)]
    graph = helper.make_graph([node], "loop", declared, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(_MICROSOFT, 1)], ir_version=8)
