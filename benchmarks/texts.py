"""Pipelines that read text, as skl2onnx writes them: 1, 100 and 1,000 texts, against onnxruntime where it is installed.

    taskset -c 0 python benchmarks/texts.py [NAME …]

Texts of 4 to 30 words of a vocabulary of 2,000 are made lower case, cut into words, pairs of words or characters, counted and
classified. One thread; the least processor time of rounds in which both take turns. Prints microseconds and their ratios.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper
from pipelines import ML, peer_of

import sardonyx

ROUNDS = 15
COUNTS = 1, 100, 1000
WORDS = [f"word{number}" for number in range(2000)]
SIGNS = "abcdeorw0123456789 "
RNG = np.random.default_rng(1)
PIPELINES: dict[str, tuple[str, Sequence[Sequence[str]]]] = {
    "words": ("[a-zA-Z0-9_]+", [[*WORDS]]),
    "words of two letters and more": (r"\b\w\w+\b", [[*WORDS]]),
    "words and pairs": ("[a-zA-Z0-9_]+", [[*WORDS], [token for pair in pairwise(WORDS) for token in pair]]),
    "one to three characters": (".", [[*SIGNS], *([*"".join(map("".join, product(SIGNS[:9], repeat=n)))] for n in (2, 3))]),
}
"""Name -> the expression of a token, and the n-grams of each length in a row."""


def model_of(name: str) -> ModelProto:
    """A TfidfVectorizer and a LogisticRegression as a model."""
    expression, levels = PIPELINES[name]
    pool = [token for level in levels for token in level]
    grams = sum(len(level) // length for length, level in enumerate(levels, 1))
    counting = {
        "mode": "TF",
        "min_gram_length": 1,
        "max_gram_length": len(levels),
        "max_skip_count": 0,
        "ngram_counts": [sum(map(len, levels[:place])) for place in range(len(levels))],
        "ngram_indexes": list(range(grams)),
        "pool_strings": pool,
    }
    cutting: dict[str, Any] = {"mark": 0, "mincharnum": 1, "pad_value": "#", "tokenexp": expression}
    weights = RNG.standard_normal(grams).astype(np.float32)
    nodes = [
        helper.make_node("Reshape", ["text", "flat"], ["texts"]),
        helper.make_node("StringNormalizer", ["texts"], ["low"], case_change_action="LOWER", locale="C"),
        helper.make_node("Tokenizer", ["low"], ["tokens"], domain="com.microsoft", **cutting),
        helper.make_node("Flatten", ["tokens"], ["rows"]),
        helper.make_node("TfIdfVectorizer", ["rows"], ["counts"], **counting),
        helper.make_node("Mul", ["counts", "idf"], ["weighted"]),
        helper.make_node("Normalizer", ["weighted"], ["normal"], domain=ML, norm="L2"),
        helper.make_node(
            "LinearClassifier",
            ["normal"],
            ["label", "scores"],
            domain=ML,
            coefficients=[*-weights, *weights],
            intercepts=[0.1, -0.1],
            classlabels_strings=["no", "yes"],
            post_transform="SOFTMAX",
        ),
    ]
    outputs = [
        helper.make_tensor_value_info("label", TensorProto.STRING, [None]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, 2]),
    ]
    constants = [
        helper.make_tensor("flat", TensorProto.INT64, [1], [-1]),
        helper.make_tensor("idf", TensorProto.FLOAT, [grams], np.abs(weights) + 1),
    ]
    text = helper.make_tensor_value_info("text", TensorProto.STRING, [None, 1])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 1), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph(nodes, "texts", [text], outputs, constants), opset_imports=opsets, ir_version=8)


def texts_of(count: int) -> np.ndarray[Any, Any]:
    """Texts as a column."""
    made = [" ".join(RNG.choice(WORDS, RNG.integers(4, 31))).capitalize() for _ in range(count)]
    return np.array([[text] for text in made], object)


def seconds(runs: Sequence[Callable[[], object]]) -> list[float]:
    """The least processor time of one call of each, of rounds in turns."""
    best = [math.inf] * len(runs)
    for _ in range(ROUNDS):
        for place, run in enumerate(runs):
            run()
            start, count = time.thread_time(), 0
            while count < 3 or time.thread_time() - start < 0.01:
                run()
                count += 1
            best[place] = min(best[place], (time.thread_time() - start) / count)
    return best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="pipelines whose names contain one of these; all by default")
    arguments = parser.parse_args()
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    for name in PIPELINES:
        if arguments.names and not any(part in name for part in arguments.names):
            continue
        content = model_of(name).SerializeToString()
        ours, peer = sardonyx.InferenceSession(content, options), peer_of(content)
        print(name)
        for count in COUNTS:
            feed = {"text": texts_of(count)}
            found = seconds([lambda feed=feed, run=held.run: run(None, feed) for held in (ours, peer) if held is not None])
            ratio = f" = {found[0] / found[1]:5.2f}" if len(found) == 2 else ""
            print(f"  {count:5} texts {' / '.join(f'{1e6 * time_s:9.1f}' for time_s in found)}{ratio}", flush=True)


if __name__ == "__main__":
    main()
