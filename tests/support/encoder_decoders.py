"""Small models of an encoder and decoders, in the files that Hugging Face's exporters write, and what they compute."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

VOCABULARY, WIDTH, START = 40, 8, 3

_HEAD = '<ir_version: 8, opset_import: ["" : 17]> model '
_ENCODER = "(int64[batch, source] input_ids) => (float[batch, source, 8] last_hidden_state) {\nlast_hidden_state = Gather(embed, input_ids)\n}"
_IDS, _STATES = "int64[batch, sequence] input_ids", "float[batch, source, 8] encoder_hidden_states"
_PASTS = "float[batch, 1, past, 8] past_key_values_0_decoder_key, float[batch, 1, source, 8] past_key_values_0_encoder_key"
_LOGITS, _OWN = "float[batch, sequence, 40] logits", "float[batch, 1, total, 8] present_0_decoder_key"
_CROSS = "float[batch, 1, source, 8] present_0_encoder_key"
_BEGIN = "one = Constant<value_ints = [1]>()\nx = Gather(embed, input_ids)\nown = Unsqueeze(x, one)\n"
_END = (
    "mean = ReduceMean<axes = [2], keepdims = 0>(keys)\nother = ReduceMean<axes = [2], keepdims = 0>(cross)\nsum = Sub(mean, x)\n"
    "whole = Add(sum, other)\nlogits = MatMul(whole, head)\npresent_0_decoder_key = Identity(keys)\n"
)
_FIRST = "keys = Identity(own)\ncross = Unsqueeze(encoder_hidden_states, one)\npresent_0_encoder_key = Identity(cross)\n"
_LATER = "keys = Concat<axis = 2>(past_key_values_0_decoder_key, own)\ncross = Identity(past_key_values_0_encoder_key)\n"
_MERGED = (
    "keys, cross, present_0_encoder_key = If(use_cache_branch) <\n"
    "then_branch = later () => (float[batch, 1, total, 8] k1, float[batch, 1, source, 8] c1, float[batch, 1, none, 8] p1) {\n"
    "k1 = Concat<axis = 2>(past_key_values_0_decoder_key, own)\nc1 = Identity(past_key_values_0_encoder_key)\n"
    "shape = Constant<value_ints = [0, 1, 1, 8]>()\np1 = ConstantOfShape(shape)\n},\n"
    "else_branch = first () => (float[batch, 1, total, 8] k2, float[batch, 1, source, 8] c2, float[batch, 1, none, 8] p2) {\n"
    "k2 = Identity(own)\naxis = Constant<value_ints = [1]>()\nc2 = Unsqueeze(encoder_hidden_states, axis)\np2 = Identity(c2)\n}>\n"
)


def weights() -> dict[str, np.ndarray]:
    """Return the weights of all graphs."""
    random = np.random.default_rng(0)
    return {
        "embed": random.standard_normal((VOCABULARY, WIDTH)).astype(np.float32),
        "head": random.standard_normal((WIDTH, VOCABULARY)).astype(np.float32),
    }


def expected_tokens(prompt: Sequence[int], count: int) -> list[int]:
    """Return the greedy tokens after a prompt, computed from the beginning for each."""
    embed, head = weights().values()
    ids = [START]
    for _ in range(count):
        logits = (embed[ids].mean(axis=0) - embed[ids[-1]] + embed[list(prompt)].mean(axis=0)) @ head
        ids.append(int(logits.argmax()))
    return ids[1:]


def write_encoder_decoder(folder: Path, *, merged: bool) -> Path:
    """Write an encoder with one merged decoder, or with two."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"encoder_model": _ENCODER}
    if merged:
        inputs = f"{_IDS}, {_STATES}, {_PASTS}, bool[1] use_cache_branch"
        files["decoder_model_merged"] = f"({inputs}) => ({_LOGITS}, {_OWN}, {_CROSS}) {{\n{_BEGIN}{_MERGED}{_END}}}"
    else:
        files["decoder_model"] = f"({_IDS}, {_STATES}) => ({_LOGITS}, {_OWN}, {_CROSS}) {{\n{_BEGIN}{_FIRST}{_END}}}"
        files["decoder_with_past_model"] = f"({_IDS}, {_PASTS}) => ({_LOGITS}, {_OWN}) {{\n{_BEGIN}{_LATER}{_END}}}"
    for name, text in files.items():
        model = parser.parse_model(_HEAD + text)
        wanted = ["embed"] if name == "encoder_model" else ["embed", "head"]
        model.graph.initializer.extend(numpy_helper.from_array(weights()[item], item) for item in wanted)
        onnx.save(model, str(folder / f"{name}.onnx"))
    (folder / "config.json").write_text(json.dumps({"decoder_start_token_id": START, "is_encoder_decoder": True}))
    return folder
