"""Small decoders with random weights, in the shapes that exporters write: with caches, with shared ones, without; and a tokenizer of bytes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

VOCABULARY, HEADS, SIZE, POSITIONS = 260, 2, 8, 64
WIDTH = HEADS * SIZE
BEGIN, END = 256, 257

_HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> decoder '
_EMBED = "tokens = Gather(embed, input_ids)\nplaces = Gather(place, position_ids)\nx = Add(tokens, places)\n"
_PRODUCTS = "q = MatMul(x, wq)\nk = MatMul(x, wk)\nv = MatMul(x, wv)\n"
_LOGITS = "seen = MatMul(attended, wo)\ny = Add(x, seen)\nlogits = MatMul(y, head)\n"
_SPLIT = """
    split = Constant<value_ints = [0, 0, 2, 8]>()
    q4 = Reshape(q, split)
    k4 = Reshape(k, split)
    v4 = Reshape(v, split)
    qt = Transpose<perm = [0, 2, 1, 3]>(q4)
    kt = Transpose<perm = [0, 2, 1, 3]>(k4)
    vt = Transpose<perm = [0, 2, 1, 3]>(v4)
"""
_ATTEND = """
    one = Constant<value_int = 1>()
    zero = Constant<value_int = 0>()
    axes = Constant<value_ints = [1, 2]>()
    first = Constant<value_ints = [1]>()
    joined = Constant<value_ints = [0, 0, 16]>()
    low = Constant<value_float = -1e9>()
    nought = Constant<value_float = 0.0>()
    total = Shape<start = 2, end = 3>(keys)
    fresh = Shape<start = 1, end = 2>(input_ids)
    totals = Squeeze(total)
    news = Squeeze(fresh)
    start = Sub(totals, news)
    columns = Range(zero, totals, one)
    lines = Range(start, totals, one)
    upright = Unsqueeze(lines, first)
    causal = LessOrEqual(columns, upright)
    real = Cast<to = 9>(attention_mask)
    wide = Unsqueeze(real, axes)
    allowed = And(causal, wide)
    bias = Where(allowed, nought, low)
    turned = Transpose<perm = [0, 1, 3, 2]>(keys)
    products = MatMul(qt, turned)
    masked = Add(products, bias)
    weights = Softmax<axis = -1>(masked)
    mixed = MatMul(weights, values)
    back = Transpose<perm = [0, 2, 1, 3]>(mixed)
    attended = Reshape(back, joined)
"""
_INPUTS = "int64[batch, sequence] input_ids, int64[batch, total] attention_mask, int64[batch, sequence] position_ids"
_PASTS = ", ".join(f"float[batch, {HEADS}, past, {SIZE}] past_key_values_0_{name}" for name in ("key", "value"))
_PRESENTS = ", ".join(f"float[batch, {HEADS}, total, {SIZE}] present_0_{name}" for name in ("key", "value"))
_OUTPUT = f"float[batch, sequence, {VOCABULARY}] logits"
_CACHE = "keys = Concat<axis = 2>({past}key, kt)\nvalues = Concat<axis = 2>({past}value, vt)\n{present}key = Identity(keys)\n{present}value = Identity(values)\n"


def weights(seed: int = 0) -> dict[str, np.ndarray]:
    """Return the weights of a seed, with which every kind computes the same."""
    random = np.random.default_rng(seed)
    shapes = {"embed": (VOCABULARY, WIDTH), "place": (POSITIONS, WIDTH), "head": (WIDTH, VOCABULARY)}
    shapes |= dict.fromkeys(("wq", "wk", "wv", "wo"), (WIDTH, WIDTH))
    return {
        name: random.standard_normal(shape).astype(np.float32) / (4 if name[0] in "wh" else 1) for name, shape in shapes.items()
    }


def write_decoder(path: Path, kind: str = "growing", seed: int = 0) -> Path:
    """Write a decoder: "growing" caches, "shared" ones (GroupQueryAttention), or "none"."""
    cached = f"({_INPUTS}, {_PASTS}) => ({_OUTPUT}, {_PRESENTS})"
    if kind == "growing":
        cache = _CACHE.format(past="past_key_values_0_", present="present_0_")
        text = f"{cached} {{\n{_EMBED}{_PRODUCTS}{_SPLIT}{cache}{_ATTEND}{_LOGITS}}}"
    elif kind == "none":
        text = f"({_INPUTS}) => ({_OUTPUT}) {{\n{_EMBED}{_PRODUCTS}{_SPLIT}keys = Identity(kt)\nvalues = Identity(vt)\n{_ATTEND}{_LOGITS}}}"
    else:
        lengths = (
            "sums = ReduceSum<keepdims = 0>(attention_mask, ones)\nlast = Sub(sums, ones)\nseqlens = Cast<to = 6>(last)\n"
            "ones = Constant<value_ints = [1]>()\nwidth = Shape<start = 1>(attention_mask)\nflat = Squeeze(width)\nlongest = Cast<to = 6>(flat)\n"
        )
        lines = lengths.splitlines()
        ordered = "\n".join([lines[3], *lines[:3], *lines[4:]]) + "\n"
        attend = (
            f"attended, present_0_key, present_0_value = com.microsoft.GroupQueryAttention<num_heads = {HEADS}, kv_num_heads = {HEADS}, "
            "scale = 1.0>(q, k, v, past_key_values_0_key, past_key_values_0_value, seqlens, longest)\n"
        )
        text = f"{cached} {{\n{_EMBED}{_PRODUCTS}{ordered}{attend}{_LOGITS}}}"
    model = parser.parse_model(_HEAD + text)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights(seed).items())
    onnx.save(model, str(path))
    return path


def write_folder(folder: Path, kind: str = "growing", **generation: object) -> Path:
    """Write a decoder with the configuration files of Hugging Face, and a tokenizer of bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    write_decoder(folder / "model.onnx", kind)
    config = {"max_position_embeddings": POSITIONS, "eos_token_id": END, "vocab_size": VOCABULARY, "model_type": "tiny"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps(generation))
    write_tokenizer(folder / "tokenizer.json")
    template = "{% for message in messages %}{{ bos_token }}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    texts = {
        "bos_token": {"content": "<s>"},
        "eos_token": "</s>",
        "chat_template": template + "{% if add_generation_prompt %}> {% endif %}",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(texts))
    return folder


def write_tokenizer(path: Path) -> Path:
    """Write a tokenizer whose tokens are bytes, as GPT-2 spells them, and two special ones."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelt = dict(zip([*kept, *(byte for byte in range(256) if byte not in kept)], map(chr, [*kept, *range(256, 324)]), strict=True))
    special = [
        {"id": token, "content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        for token, text in ((BEGIN, "<s>"), (END, "</s>"))
    ]
    bytewise = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "vocab": {spelt[byte]: byte for byte in range(256)}, "merges": []}
    whole = {"version": "1.0", "added_tokens": special, "pre_tokenizer": bytewise, "decoder": bytewise, "model": model}
    path.write_text(json.dumps(whole))
    return path
