"""Files of the formats beside ONNX, changed at random: loading one is a model or a typed error, in bounded time.

    PYTHONPATH=src:tests python -m fuzz.formats 20000 --seed 1

Seeds are models of ORT, TFLite, Circle, and NN packages as archives and folders. Bytes change anywhere, numbers and offsets of flat
buffers too, and texts of manifests and configurations. Every eighth file is made a session, and run. Cases run in children
of 500, each with a limit of time and memory; a child that ends otherwise is a finding.
"""

from __future__ import annotations

import argparse
import json
import resource
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fuzz.draw import Draw
from fuzz.mutate import mutate_bytes
from support.flat_models import Sketch
from support.packages import SQRT_AND_NEG, archive_of, make_package

import sardonyx as ort
from sardonyx.formats import models
from sardonyx.formats.flat.schema_circle import CIRCLE
from sardonyx.formats.ort.write import to_bytes
from sardonyx.ir.text import parse_model
from sardonyx.session.draw.feeds import random_feeds

__all__ = ["damaged", "judge", "seeds"]

_BATCH = 500
_SECONDS, _BYTES = 120, 6 << 30
_SLOW_SECONDS = 5.0
"""The longest load, on a machine that others use too."""
_RUNS = 8
"""How many files there are to one that is run, which may compile kernels."""
_EDGES = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
_TEXTS = (b"..", b"/", b"0:0:0", b"1:0:9", b'""', b"[]", b"{}", b"null", b"-1", b"1e999", b"\\", b"\0", b"onnx", b"circle")

_BRANCH = """opset 17
graph g(x: float[n, 4], c: bool[]) -> (y: float[n, 4]) {
w: float[4] = [1, 2, 3, 4]
big: float[400] = ...
k: string[2] = ["a", "b"]
a: float[n, 4] = Add(x, w)
y = If(c) {then_branch = graph() -> (t: float[n, 4]) {
t = Mul(a, x)
}, else_branch = graph() -> (e: float[n, 4]) {
e = Identity(a)
}}
}"""


def seeds() -> dict[str, bytes]:
    """The files that are changed, by what they are."""
    found = {"ort": to_bytes(parse_model(_BRANCH))[0]}
    for name, sketch in (("tflite", Sketch()), ("circle", Sketch(CIRCLE))):
        x, w, y = sketch.input((1, 4)), sketch.constant(np.ones((3, 4), np.float32)), sketch.tensor((1, 3))
        sketch.operator("FULLY_CONNECTED", [x, w], [y])
        found[name] = sketch.model([y])
    with tempfile.TemporaryDirectory() as folder:
        config = "BACKENDS=cpu\nOP_BACKEND_Neg=reference\nOP_BACKEND_MAP=0=cpu\nNUM_THREADS=2\n"
        package = make_package(Path(folder) / "p", {**SQRT_AND_NEG, "configs": ["a.cfg"]}, a_cfg=config)
        for compression in (0, 8):
            found[f"zip {compression}"] = archive_of(package, Path(folder) / "z", compression).read_bytes()
        found["manifest"] = (package / "metadata" / "MANIFEST").read_bytes()
        found["config"] = (package / "metadata" / "a.cfg").read_bytes()
    return found


def damaged(draw: Draw, content: bytes) -> bytes:
    """The file with one to four changes of bytes, numbers or texts."""
    data = bytearray(content)
    for _ in range(1 + draw.below(4)):
        way = draw.below(4)
        place = draw.below(max(len(data), 1))
        if way == 0:
            window = mutate_bytes(draw, bytes(data[place : place + 256]))
            data[place : place + 256] = window
        elif way == 1:
            place -= place % 4
            data[place : place + 4] = struct.pack("<I", draw.pick(_EDGES))
        elif way == 2:
            place -= place % 4
            old = struct.unpack("<I", bytes(data[place : place + 4]).ljust(4, b"\0"))[0]
            data[place : place + 4] = struct.pack("<I", (old + draw.below(33) - 16) % 2**32)
        else:
            data[place : place + draw.below(4)] = draw.pick(_TEXTS)
    return bytes(data)


def judge(content: bytes, kind: str, *, runs: bool) -> str:
    """Load a changed file and say what it came to: "loaded", or the name of a typed error; anything else passes."""
    if kind in ("manifest", "config"):
        with tempfile.TemporaryDirectory() as folder:
            package = make_package(Path(folder) / "p", {**SQRT_AND_NEG, "configs": ["a.cfg"]}, a_cfg="")
            (package / "metadata" / ("MANIFEST" if kind == "manifest" else "a.cfg")).write_bytes(content)
            return _judged(package, runs=runs)
    return _judged(content, runs=runs)


def _judged(given: Any, *, runs: bool) -> str:
    try:
        model = models.load(given)
        if not runs:
            model.dismantle()
            return "loaded"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session = ort.InferenceSession(given)
            session.run(None, random_feeds(session))
        return "ran"
    except ort.SardonyxError as error:
        return type(error).__name__ if str(error) else "an error without a message"


def _child(seed: int, first: int, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    files = seeds()
    names = list(files)
    found: Counter[str] = Counter()
    for number in range(first, first + count):
        kind = names[number % len(names)]
        content = damaged(Draw.seeded(seed * 1_000_003 + number), files[kind])
        begun = time.perf_counter()
        try:
            found[f"{kind}: {judge(content, kind, runs=number % _RUNS == 0)}"] += 1
        except BaseException:
            sys.stderr.write(f"case {number} ({kind}): {content.hex()}\n")
            raise
        if number % _RUNS and time.perf_counter() - begun > _SLOW_SECONDS:
            raise TimeoutError(f"case {number} ({kind}) took {time.perf_counter() - begun:.1f} s: {content.hex()}")
    _say(json.dumps(found))


def main(arguments: list[str] | None = None) -> int:
    """Run the search; the number of findings is the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", type=int, default=-1)
    given = parser.parse_args(arguments)
    if given.child >= 0:
        _child(given.seed, given.child, given.cases)
        return 0
    total: Counter[str] = Counter()
    findings = 0
    for first in range(0, given.cases, _BATCH):
        cases = str(min(_BATCH, given.cases - first))
        command = [sys.executable, "-m", "fuzz.formats", cases, "--seed", str(given.seed), "--child", str(first)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            findings += 1
            _say(f"cases {first} on: no end within {_SECONDS} s")
            continue
        if done.returncode:
            findings += 1
            _say(f"cases {first} on: exit status {done.returncode}\n{done.stderr[-3000:]}")
        else:
            total.update(json.loads(done.stdout.splitlines()[-1]))
    _report(total, findings)
    return min(findings, 100)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _report(total: Mapping[str, int], findings: int) -> None:
    for name, count in sorted(total.items()):
        _say(f"{count:8} {name}")
    _say(f"{sum(total.values())} cases, {findings} findings")


if __name__ == "__main__":
    sys.exit(main())
