"""Hashes of text and numbers, random bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from formats.tflite.cases.case import Case, case, drawn


def cases() -> Iterator[Case]:
    """Return the cases."""
    seeds = drawn((3, 7), seed=4)
    for kind, shape in (("INT32", (5,)), ("INT64", (4, 3)), ("FLOAT32", (6, 30)), ("BOOL", (9, 3)), ("FLOAT32", (2, 61))):
        x = drawn(shape, kind, -50, 50)
        for name, made in (("DENSE", 21), ("SPARSE", 3)):
            options = ("LSHProjectionOptions", {"type": name})
            for weights in ([], [drawn(shape[:1], seed=2)]):
                title = f"LSH_PROJECTION {name} {kind} {shape} {len(weights)}"
                yield case(title, "LSH_PROJECTION", [seeds, x, *weights], [((made,), "INT32")], options, constants=[0])
    texts = ["the quick brown fox jumps", "one", "", " begins with a space", "two  spaces\tand a tab ", "\u00e4 \u00f6 \u00fc"]
    for text in texts:
        for size, skip, every in ((1, 0, False), (2, 0, False), (2, 1, False), (3, 2, True), (3, 9, False)):
            options = ("SkipGramOptions", {"ngram_size": size, "max_skip_size": skip, "include_all_ngrams": every})
            title = f"SKIP_GRAM {text!r} {size} {skip} {every}"
            yield case(title, "SKIP_GRAM", [np.array([text], object)], [((1,), "STRING")], options, is_open=True)
    for algorithm, words in (("THREEFRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2)):
        state = np.array([(7 << 32) + 5, (1 << 64) - 2, 1 << 63], np.uint64)[:words]
        for kind in ("INT32", "UINT32", "INT64", "UINT64"):
            options = ("StablehloRngBitGeneratorOptions", {"algorithm": algorithm})
            outputs = [((words,), "UINT64"), ((3, 5), kind)]
            yield case(f"{algorithm} {words} {kind}", "STABLEHLO_RNG_BIT_GENERATOR", [state], outputs, options)
