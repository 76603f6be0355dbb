"""What compiling ahead saves: time to make a session, and sizes of files.

    python benchmarks/context_models.py [MODEL.onnx ...] [--weightless] [--embed] [--provider NAME ...] [--dim batch=1 ...]

Without models it takes those that zoo.py makes.

For each model, each time in a process of its own that has imported everything: a session with an empty cache of kernels, one with a
full one, one that writes the compiled model, one that loads it, again with an empty cache, and one that compares all elements of
weights, too. Reported are milliseconds of the processor's time, which other programs disturb least, the least of a few rounds; what
is compiled while loading, which must be nothing; and whether all sessions compute the same bits. LLVM runs in the process itself.
Inputs are random, integers 0 or 1; `--dim` gives open dimensions their sizes, 1 by default.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from zoo import add_options, files

import sardonyx as ort
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Model
from sardonyx.ir.text import parse_graph
from sardonyx.trace import observe

ROUNDS = 3
_TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


def session_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """Make the session that `task` describes, and run it; what it took, and what came of it."""
    warm_up = Model(parse_graph("graph(x: float[n]) -> (y: int64[1, k]) { y = NonZero(x) }"), {"": 21})
    ort.InferenceSession(onnx_format.to_bytes(warm_up), providers=task["providers"])
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    for key, text in task["entries"].items():
        options.add_session_config_entry(key, text)
    names: list[str] = []
    with observe(lambda event: names.append(event.name)):
        begin = time.process_time()
        session = ort.InferenceSession(task["path"], options, providers=task["providers"])
        took_ms = (time.process_time() - begin) * 1e3
    digest = hashlib.sha256()
    for value in session.run(None, feed_of(session, task["dims"])):
        digest.update(np.ascontiguousarray(value).tobytes())
    return {"ms": took_ms, "compiled": names.count("codegen.compile"), "digest": digest.hexdigest()}


def feed_of(session: ort.InferenceSession, dims: Mapping[str, int]) -> dict[str, Any]:
    """Random inputs."""
    rng, feed = np.random.default_rng(0), {}
    for item in session.get_inputs():
        shape = [size if isinstance(size, int) else dims.get(str(size), 1) for size in item.shape]
        dtype = _TYPES[item.type]
        feed[item.name] = (rng.standard_normal(shape) if dtype is np.float32 else rng.integers(0, 2, shape)).astype(dtype)
    return feed


def in_a_process(task: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """`session_of` in a fresh process, with a cache folder of its own."""
    command = [sys.executable, __file__, "--task", json.dumps(task)]
    places = {**os.environ, "SARDONYX_CACHE_DIR": str(cache), "SARDONYX_COMPILE": "inline"}
    done = subprocess.run(command, env=places, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def report(path: Path, arguments: argparse.Namespace) -> bool:
    """Measure one model, print a line, and say whether nothing was compiled and all results are equal."""
    dims = {name: int(size) for name, size in (text.split("=") for text in arguments.dim)}
    task = {"path": str(path.resolve()), "entries": {}, "providers": arguments.provider or ["CPUExecutionProvider"], "dims": dims}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache, compiled = folder / "cache", folder / "model_ctx.onnx"
        writing = {"ep.context_enable": "1", "ep.context_file_path": str(compiled)}
        writing["ep.enable_weightless"] = str(int(arguments.weightless))
        writing["ep.context_embed_mode"] = str(int(arguments.embed))
        reading = {"session.disable_model_compile": "1", "ep.context_source_model_path": task["path"]}
        cold = [in_a_process(task, folder / f"empty_{number}") for number in range(ROUNDS)]
        warm = [in_a_process(task, folder / "empty_0") for _ in range(ROUNDS)]
        written = in_a_process({**task, "entries": writing}, cache)
        for item in cache.glob("*.sxo"):
            item.unlink()
        loads = [in_a_process({**task, "path": str(compiled), "entries": reading}, cache) for _ in range(ROUNDS)]
        checking = {**reading, "session.check_compiled_weights": "1"}
        checked = [in_a_process({**task, "path": str(compiled), "entries": checking}, cache) for _ in range(ROUNDS)]
        sizes = ", ".join(f"{item.name} {item.stat().st_size / 1e6:.1f} MB" for item in sorted(folder.glob("model_ctx*")))
    cold_ms, warm_ms, load_ms, checked_ms = (min(item["ms"] for item in rounds) for rounds in (cold, warm, loads, checked))
    compiles = sum(item["compiled"] for item in (*loads, *checked))
    is_equal = len({item["digest"] for item in (*cold, *warm, written, *loads, *checked)}) == 1
    print(
        f"{path.stem}: cold {cold_ms:.0f} ms, warm {warm_ms:.0f} ms, write {written['ms']:.0f} ms, load {load_ms:.1f} ms, "
        f"all weights compared {checked_ms:.0f} ms; "
        f"{path.stat().st_size / 1e6:.1f} MB -> {sizes}; compiled while loading: {compiles}; "
        f"results {'equal' if is_equal else 'DIFFER'}"
    )
    return is_equal and not compiles


def main() -> None:
    """Measure the models of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="files, or names of models of zoo.py; all that are made there by default")
    add_options(parser)
    parser.add_argument("--weightless", action="store_true")
    parser.add_argument("--embed", action="store_true")
    parser.add_argument("--provider", action="append", default=[])
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        print(json.dumps(session_of(json.loads(arguments.task))))
        return
    failed = [path.name for path in files(arguments) if not report(path, arguments)]
    sys.exit(f"not as it should be: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
