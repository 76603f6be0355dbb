"""Programs of real_packages.py for packages whose models come from a hub: each makes a folder of its form, with drawn weights.

The networks are small and have the operators, inputs and outputs of the real ones. Both environments draw the same weights.
"""

from __future__ import annotations

__all__ = ["LOCAL_PROBES"]

_MAKE = """
import json, os, tempfile
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
rng, folder = np.random.default_rng(0), tempfile.mkdtemp()
nodes, weights = [], []
def put(name, text):
    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
def weight(*shape, scale=None):
    name = f"w{len(weights)}"
    drawn = rng.standard_normal(shape) * (scale or 1 / np.sqrt(shape[0]))
    weights.append(numpy_helper.from_array(drawn.astype(np.float32), name))
    return name
def number(values, kind):
    weights.append(numpy_helper.from_array(np.array(values, kind), f"w{len(weights)}"))
    return weights[-1].name
def node(kind, *inputs, out=None, **attributes):
    made = out or f"v{len(nodes)}"
    nodes.append(helper.make_node(kind, list(inputs), [made], **attributes))
    return made
def linear(x, size, to, out=None):
    return node("Add", node("MatMul", x, weight(size, to)), weight(to, scale=0.1), out=out)
def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape)
def write(path, inputs, outputs):
    graph = helper.make_graph(nodes, "drawn", inputs, outputs, weights)
    os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), os.path.join(folder, path))
def norm(x, size):
    return node("LayerNormalization", x, weight(size, scale=1.0), weight(size, scale=0.1), axis=-1)
def encoder(x, size, heads, layers, bias=None):
    for _ in range(layers):
        split = number([0, 0, heads, size // heads], np.int64)
        q, k, v = (node("Transpose", node("Reshape", linear(x, size, size), split), perm=[0, 2, 1, 3]) for _ in range(3))
        products = node("MatMul", q, node("Transpose", k, perm=[0, 1, 3, 2]))
        scores = node("Div", products, number(np.sqrt(size // heads), np.float32))
        shares = node("Softmax", scores if bias is None else node("Add", scores, bias), axis=-1)
        seen = node("Transpose", node("MatMul", shares, v), perm=[0, 2, 1, 3])
        x = norm(node("Add", x, linear(node("Reshape", seen, number([0, 0, size], np.int64)), size, size)), size)
        wide = linear(x, size, 4 * size)
        erf = node("Erf", node("Div", wide, number(2**0.5, np.float32)))
        gelu = node("Mul", node("Mul", wide, number(0.5, np.float32)), node("Add", erf, number(1, np.float32)))
        x = norm(node("Add", x, linear(gelu, 4 * size, size)), size)
    return x
"""
_SPEECH = """
def cmvn(size):
    row = " ".join(["0.1"] * size)
    parts = [f"<{kind}> {size} {size}\\n<LearnRateCoef> 0 [ {row} ]" for kind in ("AddShift", "Rescale")]
    put("am.mvn", "\\n".join(["<Nnet>", *parts, "</Nnet>", ""]))
front = {"fs": 16000, "window": "hamming", "n_mels": 80, "frame_length": 25, "frame_shift": 10, "dither": 0.0}
time = np.arange(4 * 16000) / 16000
wave = np.sin(2 * np.pi * 200 * time) * (np.sin(2 * np.pi * 0.5 * time) > 0) * 0.5 + rng.standard_normal(len(time)) * 0.001
wave = wave.astype(np.float32)
"""
LOCAL_PROBES = {
    "fastembed": _MAKE
    + """
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"the quick brown fox jumps over lazy dog and runs".split()]
from tokenizers import Tokenizer, models, pre_tokenizers, processors
tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
tokenizer.save(os.path.join(folder, "tokenizer.json"))
put("config.json", json.dumps({"pad_token_id": 0}))
put("tokenizer_config.json", json.dumps({"model_max_length": 64, "max_length": 64, "pad_token": "[PAD]"}))
put("special_tokens_map.json", json.dumps({f"{name}_token": f"[{name.upper()}]" for name in ("unk", "pad", "cls", "sep")}))
kept = node("Cast", "attention_mask", to=TensorProto.FLOAT)
bias = node("Mul", node("Sub", number(1, np.float32), node("Unsqueeze", kept, number([1, 2], np.int64))), number(-1e4, np.float32))
kinds = node("Gather", weight(2, 64, scale=1.0), "token_type_ids")
x = node("Add", node("Gather", weight(len(words), 64, scale=1.0), "input_ids"), kinds)
node("Identity", encoder(norm(x, 64), 64, 4, 3, bias), out="last_hidden_state")
names = "input_ids", "attention_mask", "token_type_ids"
inputs = [value(name, "INT64", "batch", "length") for name in names]
write("model.onnx", inputs, [value("last_hidden_state", "FLOAT", "batch", "length", 64)])
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
found = []
for pooling in (PoolingType.MEAN, PoolingType.CLS):
    name = f"drawn/{pooling.value}"
    source = ModelSource(hf="drawn/model")
    TextEmbedding.add_custom_model(name, pooling, normalization=True, sources=source, dim=64, model_file="model.onnx")
    model = TextEmbedding(name, specific_model_path=folder, threads=1)
    texts = ["the quick brown fox", "the lazy dog jumps over the fox and runs", "unknown things"]
    found.append([vector.astype(float).tolist() for vector in model.embed(texts, batch_size=2)])
answer(found)
""",
    "funasr-onnx": _MAKE
    + _SPEECH
    + """
found = []
# punctuation
write_names = ["<blank>", "<s>", "</s>", *"hello world how are you today fine thanks".split(), "<unk>"]
put("tokens.json", json.dumps(write_names))
put("config.yaml", json.dumps({"model_conf": {"punc_list": ["<unk>", "_", ",", "。", "?", "、"]}}))
x = encoder(node("Gather", weight(len(write_names), 32, scale=1.0), "inputs"), 32, 2, 2)
linear(x, 32, 6, out="logits")
write("model.onnx", [value("inputs", "INT32", 1, "n"), value("text_lengths", "INT32", 1)], [value("logits", "FLOAT", 1, "n", 6)])
from funasr_onnx import CT_Transformer, Fsmn_vad, Paraformer
text, marks = CT_Transformer(folder, intra_op_num_threads=1)("hello world how are you today fine thanks hello you")[:2]
found += [text, [int(mark) for mark in marks]]
# voice activity
folder, nodes, weights = tempfile.mkdtemp(), [], []
cmvn(400)
layers, inner, order = 4, 128, 20
shape = {"fsmn_layers": layers, "proj_dim": inner, "lorder": order}
silence = {"max_end_silence_time": 800, "sil_pdf_ids": [0]}
frames = {**front, "lfr_m": 5, "lfr_n": 1}
put("config.yaml", json.dumps({"frontend_conf": frames, "model_conf": silence, "encoder_conf": shape}))
x = node("Relu", linear(linear("speech", 400, 140), 140, 250))
caches = []
for layer in range(layers):
    turned = node("Unsqueeze", node("Transpose", node("MatMul", x, weight(250, inner)), perm=[0, 2, 1]), number([3], np.int64))
    long = node("Concat", f"in_cache{layer}", turned, axis=2)
    bounds = (number([place], np.int64) for place in (-(order - 1), 2**31, 2))
    caches.append(node("Slice", long, *bounds, out=f"out_cache{layer}"))
    seen = node("Add", turned, node("Conv", long, weight(inner, 1, order, 1, scale=0.1), group=inner))
    x = node("Relu", linear(node("Transpose", node("Squeeze", seen, number([3], np.int64)), perm=[0, 2, 1]), inner, 250))
node("Softmax", linear(linear(x, 250, 140), 140, 248), axis=-1, out="logits")
cache = [value(f"in_cache{layer}", "FLOAT", 1, inner, order - 1, 1) for layer in range(layers)]
kept = [value(name, "FLOAT", 1, inner, "m", 1) for name in caches]
write("model.onnx", [value("speech", "FLOAT", 1, "n", 400), *cache], [value("logits", "FLOAT", 1, "n", 248), *kept])
vad = Fsmn_vad(folder, intra_op_num_threads=1)
found.append(vad(wave))
feats, lengths = vad.extract_feat([wave])
found.append(vad.infer([feats, *vad.prepare_cache([])])[0].mean(axis=1).astype(float).tolist())
# recognition
folder, nodes, weights = tempfile.mkdtemp(), [], []
cmvn(560)
tokens = ["<blank>", "<s>", "</s>", *"abcdefghijklmnop", "<unk>"]
put("tokens.json", json.dumps(tokens))
put("config.yaml", json.dumps({"frontend_conf": {**front, "lfr_m": 7, "lfr_n": 6}, "model_conf": {"predictor_bias": 1}}))
x = encoder(linear("speech", 560, 64), 64, 4, 2)
linear(encoder(x, 64, 4, 1), 64, len(tokens), out="logits")
node("Cast", "speech_lengths", to=TensorProto.INT32, out="token_num")
inputs = [value("speech", "FLOAT", "b", "n", 560), value("speech_lengths", "INT32", "b")]
write("model.onnx", inputs, [value("logits", "FLOAT", "b", "n", len(tokens)), value("token_num", "INT32", "b")])
asr = Paraformer(folder, batch_size=2, intra_op_num_threads=1)
import wave as sound
paths = []
for length in (64000, 32000):
    paths.append(os.path.join(folder, f"{length}.wav"))
    with sound.open(paths[-1], "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(16000)
        file.writeframes((wave[:length] * 32767).astype(np.int16).tobytes())
found.append([item["preds"] for item in asr(paths)])
found.append(asr.infer(*asr.extract_feat([wave]))[0].mean(axis=1).astype(float).tolist())
answer(json.loads(json.dumps(found, default=float)))
""",
}
"""Distribution -> a program as in `real_packages.PROBES`."""
