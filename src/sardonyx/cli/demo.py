"""`sardonyx demo`: real handwritten digits, classified by a small trained network that ships inside the package.

The digits are 450 held-out images of the UCI "Optical Recognition of Handwritten Digits" test set (Alpaydin and Kaynak, 1998),
8 x 8 pixels, as scikit-learn distributes them. The network has four convolutions and two dense layers.
"""

from __future__ import annotations

import collections
import io
import pkgutil
import statistics
import time
from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from sardonyx.cli.console import (
    json_option,
    open_session,
    print_json,
    print_pairs,
    progress,
    provider_option,
    readable_errors,
    terminal_width,
)
from sardonyx.dtypes import Array

_DATA = "demo_data"
_SHADES = " .:-=+*#%@"
_SHOWN = 6
_RUNS = 200
_GAP = "   "


@click.command()
@provider_option
@json_option
def demo(provider_names: Sequence[str], as_json: bool) -> None:
    """Classify handwritten digits with a small trained network."""
    with readable_errors():
        facts, pictures = _classify(provider_names)
    if as_json:
        print_json(facts)
        return
    _print(facts, pictures)


def _classify(provider_names: Sequence[str]) -> tuple[dict[str, object], list[Array]]:
    with np.load(io.BytesIO(_read("digits.npz"))) as data:
        images, labels = data["images"], data["labels"]
    session = open_session(_read("digits_cnn.onnx"), provider_names)
    (logits,) = session.run(None, {"image": images})
    answers = logits.argmax(axis=1)
    times_ms = []
    with progress("timing", _RUNS) as advance:
        for index in range(_RUNS):
            image = images[index : index + 1]
            start = time.perf_counter()
            session.run(None, {"image": image})
            times_ms.append(1e3 * (time.perf_counter() - start))
            advance("timing")
    wrong = np.flatnonzero(answers != labels)[:1]
    chosen = [*range(_SHOWN - len(wrong)), *wrong.tolist()]
    facts = {
        "images": len(images),
        "accuracy": float((answers == labels).mean()),
        "examples": [{"label": int(labels[index]), "answer": int(answers[index])} for index in chosen],
        "nodes_by_provider": dict(collections.Counter(placement.provider for placement in session.explain())),
        "operators": [placement.op_type.rpartition(".")[2] for placement in session.explain()],
        "median_latency_ms": statistics.median(times_ms),
    }
    return facts, [images[index, 0] for index in chosen]


def _read(name: str) -> bytes:
    """Return a file of this package, which may lie in an archive."""
    return pkgutil.get_data("sardonyx.cli", f"{_DATA}/{name}") or b""


def _print(facts: dict[str, Any], pictures: Sequence[Array]) -> None:
    drawn = [_draw(picture) for picture in pictures]
    width = len(drawn[0][0])
    blocks = [[*picture, _caption(example).center(width)] for picture, example in zip(drawn, facts["examples"], strict=True)]
    count = max((terminal_width() + len(_GAP)) // (width + len(_GAP)), 1)
    for begin in range(0, len(blocks), count):
        for lines in zip(*blocks[begin : begin + count], strict=True):
            click.echo(_GAP.join(lines).rstrip())
        click.echo()
    print_pairs(
        [
            ("accuracy", f"{facts['accuracy']:.2%} of {facts['images']} held-out digits"),
            ("runs on", ", ".join(f"{name}: {count} nodes" for name, count in facts["nodes_by_provider"].items())),
            ("nodes", " ".join(facts["operators"])),
            ("latency", f"{facts['median_latency_ms']:.3f} ms a digit (median of {_RUNS} runs)"),
        ]
    )


def _draw(picture: Array) -> list[str]:
    """Return a picture of (H, W) as H lines of 2 W characters, dark where the pen was."""
    low, high = float(picture.min()), float(picture.max())
    levels = ((picture - low) / (high - low or 1.0) * (len(_SHADES) - 1)).round().astype(int)
    return ["".join(_SHADES[level] * 2 for level in row) for row in levels]


def _caption(example: dict[str, int]) -> str:
    right = example["answer"] == example["label"]
    return f"{example['answer']}" if right else f"{example['answer']} (is {example['label']})"
