"""Changes bytes of compiled models, one at a time: what is loaded then must be refused or compute what it did.

    python tests/fuzz/tamper_contexts.py [--every 1] [--seed 0] [--kind file] [--trust] [--repair] [--check] [--folder FOLDER]

Small models are compiled ahead: one with its programs in a file, one with a loop and a branch that holds them itself, and one that
leaves its weights in the model that was compiled. Each byte of the compiled model and of its file of programs is replaced by another
one, and each is cut short at every byte. Sessions are made and run in child processes, so that a crash or a hang is counted and not
suffered. `--trust` loads without the seal, `--check` with all elements of weights compared. `--repair` writes the digests anew after
each change, as somebody could who knows the format but not the key. Only what is "refused" (by an error of sardonyx), or "right", is
as it should be.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sardonyx as ort
from sardonyx.errors import SardonyxError
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir.text import parse_model

__all__ = ["KINDS", "OUTCOMES", "Change", "changes_of", "compile_small_model", "outcomes_of", "repaired"]

OUTCOMES = ("refused", "right", "wrong", "untyped", "crashed", "hung")
"""What comes of a change; all but the first two are failures."""
_SECONDS = 20
_PADDED = """ir_version 10
opset 21
graph main(x: float[n, 12, 16]) -> (y: float[n, 9], k: float[n, 4, 16]) {
    w: float[16, 24] = ... 1
    b: float[24] = ... 2
    pads: int64[6] = [0, 1, 2, 0, 1, 2]
    starts: int64[2] = [1, 2]
    ends: int64[2] = [13, 20]
    axes: int64[2] = [1, 2]
    steps: int64[2] = [1, 2]
    rows: int64[4] = [3, 0, 11, 7]
    last: int64[1] = [2]
    shape: int64[2] = [-1, 9]
    m = MatMul(x, w)
    a = Add(m, b)
    r = Relu(a)
    p = Pad(r, pads)
    s = Slice(p, starts, ends, axes, steps)
    g = Gather(s, rows) {axis = 1}
    t = ReduceSum(s, last) {keepdims = 0}
    c = Slice(t, starts_1, ends_1, axes_1)
    y = Reshape(c, shape)
    k = Gather(x, rows) {axis = 1}
    starts_1: int64[1] = [3]
    ends_1: int64[1] = [12]
    axes_1: int64[1] = [1]
}"""
_LOOPED = """ir_version 10
opset 21
graph main(x: float[n, 12, 16]) -> (y: float[n, 12, 16]) {
    half: float[] = 0.5
    turns: int64[] = 3
    go: bool[] = true
    none: float[] = 0.0
    looped = Loop(turns, go, x) {body = graph(i: int64[], more: bool[], state: float[n, 12, 16]) -> (again, next) {
        again = Identity(more)
        next = Mul(state, half)
    }}
    total = ReduceSum(looped) {keepdims = 0}
    is_positive = Greater(total, none)
    y = If(is_positive) {then_branch = graph() -> (kept) {
        kept = Relu(looped)
    }, else_branch = graph() -> (negated) {
        negated = Neg(looped)
    }}
}"""
_TABLE = """ir_version 10
opset 21
graph main(x: float[n, 12, 16]) -> (y: float[n, 12, 16]) {
    w: float[40, 12, 16] = ... 1
    rows: int64[1] = [7]
    g = Gather(w, rows)
    y = Add(x, g)
}"""
KINDS = {
    "file": (_PADDED, {}),
    "embedded": (_LOOPED, {"ep.context_embed_mode": "1"}),
    "weightless": (_TABLE, {"ep.enable_weightless": "1"}),
}
"""Models in the text form, by how they are compiled, with config entries that say so."""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One byte that is replaced, or at which a file ends."""

    name: str
    """The file's suffix: ".onnx" or ".bin"."""
    place: int
    """Which byte."""
    mask: int
    """What it is combined with by exclusive or, 1 to 255; 0 where the file ends before it."""

    def of(self, content: bytes) -> bytes:
        """Return the content changed so."""
        if not self.mask:
            return content[: self.place]
        return content[: self.place] + bytes([content[self.place] ^ self.mask]) + content[self.place + 1 :]


def compile_small_model(folder: Path, kind: str = "file") -> Path:
    """Write a small model into `folder`, and compile it ahead in a child process; returns the path of the compiled one."""
    source, path = folder / "model.onnx", folder / "model_ctx.onnx"
    text, entries = KINDS[kind]
    onnx_format.save(parse_model(text), source)

    def work() -> None:
        options = _options({"ep.context_enable": "1", "ep.context_file_path": str(path), **entries})
        ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])

    child = os.fork()
    if not child:
        _then_exit(work)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("the model cannot be compiled")
    return path


def changes_of(path: Path, every: int, seed: int) -> list[Change]:
    """Return changes by random masks, and ends, at each byte of a compiled model and its file, of one in `every`, beginning anywhere."""
    draw, found = random.Random(seed), []
    for name in _files_of(path):
        size = path.with_suffix(name).stat().st_size
        found += [Change(name, place, draw.randrange(1, 256)) for place in range(draw.randrange(every), size, every)]
        found += [Change(name, place, 0) for place in range(draw.randrange(every), size, every)]
    return found


def _files_of(path: Path) -> list[str]:
    """Return the suffixes of a compiled model and of its file of programs, if there is one."""
    return [name for name in (".onnx", ".bin") if path.with_suffix(name).exists()]


def outcomes_of(
    path: Path,
    changes: Sequence[Change],
    entries: Mapping[str, str] | None = None,
    repair: Callable[[bytes, bytes], tuple[bytes, bytes]] | None = None,
) -> Iterator[tuple[Change, str]]:
    """Yield what comes of each change.

    Args:
        path: the compiled model, beside which its file lies.
        changes: the changes, each made to the files as they are.
        entries: config entries to load it with.
        repair: what somebody does to the model and its file after a change.
    """
    position = 0
    while position < len(changes):
        answers, status = _in_a_child(path, changes[position:], entries or {}, repair)
        yield from zip(changes[position:], answers, strict=False)
        position += len(answers)
        if position < len(changes):
            if not os.WIFSIGNALED(status):
                raise RuntimeError("a child ended by itself: files cannot be written, or what is written above")
            yield changes[position], "hung" if os.WTERMSIG(status) == signal.SIGALRM else "crashed"
            position += 1


def repaired(model: bytes, programs: bytes) -> tuple[bytes, bytes]:
    """Return both with the digest of the program written anew, where the header can still be read; the seal stays as it was."""
    tail = 32 + 8 + len(b"SXPROGRAM 4")
    end = len(programs.rstrip(b"\0")) - tail
    length = int.from_bytes(programs[end + 32 : end + 40], "little")
    text = programs[max(end - length, 0) : end]
    digest = hashlib.sha256(text)
    try:
        header = json.loads(text)
        entries = [*header["objects"].values(), *(entry[2:] for entry in header["arrays"] if len(entry) == 4)]
        for begin, size in entries:
            digest.update(programs[begin : begin + size])
    except (AttributeError, KeyError, TypeError, ValueError):
        return model, programs
    old, new = programs[end : end + 32], digest.digest()
    return model.replace(old.hex().encode(), new.hex().encode()), programs[:end] + new + programs[end + 32 :]


def _in_a_child(
    path: Path, changes: Sequence[Change], entries: Mapping[str, str], repair: Callable[[bytes, bytes], tuple[bytes, bytes]] | None
) -> tuple[list[str], int]:
    """Return the outcomes of changes until the child died, and how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _then_exit(lambda: _try_all(path, changes, entries, repair, writing))
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        answers = [OUTCOMES[code] for code in stream.read()]
    return answers, os.waitpid(child, 0)[1]


def _then_exit(work: Callable[[], None]) -> None:
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001  the parent says that there was one
        traceback.print_exc()
    finally:
        os._exit(status)


def _try_all(
    path: Path,
    changes: Sequence[Change],
    entries: Mapping[str, str],
    repair: Callable[[bytes, bytes], tuple[bytes, bytes]] | None,
    writing: int,
) -> None:
    whole = {name: path.with_suffix(name).read_bytes() for name in _files_of(path)}
    expected = _results(path, entries)
    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        copy = Path(name) / path.name
        shutil.copy(path.with_name("model.onnx"), name)
        for change in changes:
            held = {**whole, change.name: change.of(whole[change.name])}
            if repair is not None:
                held = dict(zip(held, repair(*held.values()), strict=True))
            for suffix, content in held.items():
                copy.with_suffix(suffix).write_bytes(content)
            signal.alarm(_SECONDS)
            os.write(writing, bytes([OUTCOMES.index(_outcome(copy, entries, expected))]))
            signal.alarm(0)


def _outcome(path: Path, entries: Mapping[str, str], expected: Sequence[Any]) -> str:
    try:
        found = _results(path, entries)
    except SardonyxError:
        return "refused"
    except Exception:  # noqa: BLE001  whatever it is, it is counted
        return "untyped"
    is_right = len(found) == len(expected) and all(map(np.array_equal, found, expected))
    return "right" if is_right else "wrong"


def _results(path: Path, entries: Mapping[str, str]) -> list[Any]:
    session = ort.InferenceSession(str(path), _options(entries), providers=["CPUExecutionProvider"])
    feed = np.random.default_rng(0).standard_normal((3, 12, 16), dtype=np.float32)
    return session.run(None, {item.name: feed for item in session.get_inputs()})


def _options(entries: Mapping[str, str]) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.share_programs", "0")  # what an earlier session made of the files is not to be used
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    return options


def main() -> int:
    """Change what the command line says; return 1 where anything but "refused" and "right" came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS), help="one of the models only")
    parser.add_argument("--trust", action="store_true")
    parser.add_argument("--repair", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    entries = {
        "session.trust_compiled_context": str(int(arguments.trust)),
        "session.check_compiled_weights": str(int(arguments.check)),
    }
    kinds = [arguments.kind] if arguments.kind else ["file"] if arguments.repair else list(KINDS)
    return max(_tamper(kind, arguments, entries) for kind in kinds)


def _tamper(kind: str, arguments: argparse.Namespace, entries: Mapping[str, str]) -> int:
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        os.environ["SARDONYX_CACHE_DIR"] = str(Path(name) / "cache")
        path = compile_small_model(Path(name), kind)
        changes = changes_of(path, arguments.every, arguments.seed)
        for change, outcome in outcomes_of(path, changes, entries, repaired if arguments.repair else None):
            counts[change.name][outcome] += 1
            if outcome not in OUTCOMES[:2]:
                sys.stdout.write(f"{kind} {change} {outcome}\n")
    for suffix, counter in counts.items():
        outcomes = ", ".join(f"{name} {counter[name]}" for name in OUTCOMES)
        sys.stdout.write(f"{kind} {suffix}: {counter.total()} changes, {outcomes}\n")
    return int(any(counter[outcome] for counter in counts.values() for outcome in OUTCOMES[2:]))


if __name__ == "__main__":
    sys.exit(main())
