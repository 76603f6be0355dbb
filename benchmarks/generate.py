"""How much does generation cost besides the model, how fast is it beside onnxruntime-genai, and what do shared steps gain?

    taskset -c 0 python benchmarks/generate.py FOLDER [--tokens N] [--prompt N] [--threads N] [--rounds R] [--requests 8]

FOLDER is a model as Hugging Face's exporters or onnxruntime-genai write it; without one, a small decoder with GroupQueryAttention
is made. Printed are tokens per second, medians of rounds in which all take turns:

    bare step      session.run with the present fed as the past, and argmax: no layer at all
    generate       `sardonyx.generate`, greedy
    genai          onnxruntime-genai on the same folder, where it is installed and the folder has genai_config.json
    one by one     requests of different lengths, each alone
    batched        the same requests in one `generate.Batch`
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import sardonyx
from sardonyx import generate

VOCABULARY, HEADS, SIZE, LAYERS = 2000, 8, 64, 4
WIDTH = HEADS * SIZE


def made_folder(folder: Path) -> Path:
    """Write a decoder of four layers."""
    random = np.random.default_rng(0)
    arrays = {"embed": random.standard_normal((VOCABULARY, WIDTH)), "head": random.standard_normal((WIDTH, VOCABULARY)) / 8}
    kinds = {"input_ids": ("batch", "sequence"), "attention_mask": ("batch", "total")}
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name, shape in kinds.items()]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ("batch", "sequence", VOCABULARY))]
    nodes = [
        helper.make_node("Constant", [], ["one"], value_ints=[1]),
        helper.make_node("ReduceSum", ["attention_mask", "one"], ["sums"], keepdims=0),
        helper.make_node("Sub", ["sums", "one"], ["last"]),
        helper.make_node("Cast", ["last"], ["lengths"], to=TensorProto.INT32),
        helper.make_node("Shape", ["attention_mask"], ["width"], start=1),
        helper.make_node("Squeeze", ["width"], ["flat"]),
        helper.make_node("Cast", ["flat"], ["longest"], to=TensorProto.INT32),
        helper.make_node("Gather", ["embed", "input_ids"], ["x0"]),
    ]
    for layer in range(LAYERS):
        arrays |= {f"w{layer}{name}": random.standard_normal((WIDTH, WIDTH)) / 16 for name in "qkvo"}
        nodes += [helper.make_node("MatMul", [f"x{layer}", f"w{layer}{name}"], [f"{name}{layer}"]) for name in "qkv"]
        caches = [f"past_key_values.{layer}.{name}" for name in ("key", "value")]
        presents = [f"present.{layer}.{name}" for name in ("key", "value")]
        operands = [f"q{layer}", f"k{layer}", f"v{layer}", *caches, "lengths", "longest"]
        options = {"num_heads": HEADS, "kv_num_heads": HEADS, "domain": "com.microsoft"}
        nodes += [
            helper.make_node("GroupQueryAttention", operands, [f"a{layer}", *presents], **options),
            helper.make_node("MatMul", [f"a{layer}", f"w{layer}o"], [f"o{layer}"]),
            helper.make_node("Add", [f"x{layer}", f"o{layer}"], [f"x{layer + 1}"]),
        ]
        inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("batch", HEADS, "past", SIZE)) for name in caches]
        outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("batch", HEADS, "grown", SIZE)) for name in presents]
    nodes.append(helper.make_node("MatMul", [f"x{LAYERS}", "head"], ["logits"]))
    tensors = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, tensors)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(folder / "model.onnx"))
    return folder


def bare(model: generate.Generator, prompt: Sequence[int], count: int) -> Callable[[], float]:
    """Return a function that runs bare steps, and returns how many are made in a second."""
    session, signature = model.decoder.session, model.decoder.signature
    names = {role: value.name for role, value in signature.roles.items()}

    def run() -> float:
        past = {slot.past: np.zeros([1 if size is None else size for size in slot.shape], np.float32) for slot in signature.caches}
        past = {slot.past: np.delete(past[slot.past], 0, slot.length_axis) for slot in signature.caches}
        wanted, tokens, length = [names["logits"], *(slot.present for slot in signature.caches)], np.array([prompt]), 0
        start = 0.0
        for step in range(count):
            feed = {names["ids"]: tokens, **past}
            if "mask" in names:
                feed[names["mask"]] = np.ones((1, length + tokens.shape[1]), np.int64)
            if "positions" in names:
                feed[names["positions"]] = np.arange(length, length + tokens.shape[1])[None]
            logits, *presents = session.run(wanted, feed)
            length += tokens.shape[1]
            past = {slot.past: present for slot, present in zip(signature.caches, presents, strict=True)}
            tokens = np.argmax(logits[:, -1:], axis=-1)
            start = start if step else time.perf_counter()
        return (count - 1) / (time.perf_counter() - start)

    return run


def layered(model: generate.Generator, prompt: Sequence[int], count: int) -> Callable[[], float]:
    """Return a function that generates, and returns how many tokens after the first are made in a second."""

    def run() -> float:
        with model.stream(prompt, max_new_tokens=count, eos_token_id=()) as stream:
            next(stream)
            start, made = time.perf_counter(), sum(1 for _ in stream)
        return made / (time.perf_counter() - start)

    return run


def peer(folder: Path, prompt: Sequence[int], count: int) -> Callable[[], float] | None:
    """Return a function that generates with onnxruntime-genai; None where that cannot be."""
    try:
        import onnxruntime_genai as genai
    except ImportError:
        return None
    if not (folder / "genai_config.json").is_file():
        return None
    model = genai.Model(str(folder))

    def run() -> float:
        parameters = genai.GeneratorParams(model)
        parameters.set_search_options(max_length=len(prompt) + count, min_length=len(prompt) + count, do_sample=False)
        generator = genai.Generator(model, parameters)
        generator.append_tokens(np.array(prompt, np.int32))
        generator.generate_next_token()
        start = time.perf_counter()
        for _ in range(count - 1):
            generator.generate_next_token()
        return (count - 1) / (time.perf_counter() - start)

    return run


def requests(model: generate.Generator, prompts: Sequence[Sequence[int]], counts: Sequence[int], rows: int) -> Callable[[], float]:
    """Return a function that runs requests, so many rows at a time, and returns how many tokens are made in a second."""

    def run() -> float:
        start = time.perf_counter()
        with generate.Batch(model, rows) as batch:
            for prompt, count in zip(prompts, counts, strict=True):
                batch.submit(prompt, max_new_tokens=count, eos_token_id=())
            made = sum(1 for _ in batch)
        return made / (time.perf_counter() - start)

    return run


def main() -> None:
    """Measure, and print tokens per second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    for name, value in (("tokens", 64), ("prompt", 32), ("threads", 1), ("rounds", 3), ("requests", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.folder or made_folder(Path(folder))
        options = sardonyx.SessionOptions()
        options.intra_op_num_threads = given.threads
        model = generate.load(path, options=options)
    random = np.random.default_rng(0)
    vocabulary = model.decoder.vocabulary or 1000
    prompt = random.integers(3, vocabulary, given.prompt).tolist()
    prompts = [random.integers(3, vocabulary, given.prompt // 2 + 5 * place).tolist() for place in range(given.requests)]
    counts = [given.tokens // 2 + given.tokens * place // (2 * given.requests) for place in range(given.requests)]
    ways = {"bare step": bare(model, prompt, given.tokens), "generate": layered(model, prompt, given.tokens)}
    other = peer(path, prompt, given.tokens)
    if other is not None:
        ways["genai"] = other
    ways |= {"one by one": requests(model, prompts, counts, 1), "batched": requests(model, prompts, counts, given.requests)}
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(given.rounds):
        for name, run in ways.items():
            found[name].append(run())
    medians = {name: statistics.median(rates) for name, rates in found.items()}
    for name, rate in medians.items():
        print(f"{name:12}{rate:10.2f} tokens/s   {min(found[name]):.2f} to {max(found[name]):.2f}")
    print(f"generate / bare step  {medians['generate'] / medians['bare step']:.3f}")
    if other is not None:
        print(f"generate / genai      {medians['generate'] / medians['genai']:.3f}")
    print(f"batched / one by one  {medians['batched'] / medians['one by one']:.3f}")


if __name__ == "__main__":
    main()
