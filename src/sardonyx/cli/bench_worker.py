"""One engine in a process of its own, for `sardonyx bench`: a program that is run by its path, and imports nothing but that engine.

    python bench_worker.py REQUEST.json      ──► {"ready": …} when the first result is there
    {"seconds": 0.5, "count": 0, "streams": 2} ──► {"latencies_ns": […], "elapsed_ns": …}, as often as asked
    (end of input)                             ──► {"peak_bytes": …}

So what one engine loads, allocates and spins is not counted for another, and a start is that of a process.
"""

from __future__ import annotations

import copy
import functools
import importlib
import json
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

__all__ = ["ENGINES", "main", "measure", "memory_bytes"]

Run = Callable[[], object]


def _sardonyx(request: Mapping[str, Any], feed: Mapping[str, Any]) -> Callable[[], Run]:
    sardonyx: Any = importlib.import_module("sardonyx")
    made = _loaded(sardonyx, request["loaded"])
    with open(request["options"], "rb") as file:
        options = _Unpickler(file).load()
    options.intra_op_num_threads = request["threads"]
    providers = [made.get(name, name) for name in request["providers"]]
    session = sardonyx.InferenceSession(request["model"], options, providers=providers or None)
    return lambda: functools.partial(session.run, None, feed)


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, key: Any) -> object:
        module, name = key
        return getattr(sys.modules[module], name)


def _loaded(sardonyx: Any, paths: list[str]) -> dict[str, Any]:
    """Run the files of `--load` as the modules by which pickled options know them; returns their providers by name."""
    if not paths:
        return {}
    load: Any = importlib.import_module("sardonyx.cli.load")
    return {provider.name: provider for provider in load.add_operators(sardonyx.SessionOptions(), paths)}


def _onnxruntime(request: Mapping[str, Any], feed: Mapping[str, Any]) -> Callable[[], Run]:
    onnxruntime: Any = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = request["threads"]
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(request["model"], options, providers=["CPUExecutionProvider"])
    return lambda: functools.partial(session.run, None, feed)


def _openvino(request: Mapping[str, Any], feed: Mapping[str, Any]) -> Callable[[], Run]:
    openvino: Any = importlib.import_module("openvino")
    hints = {"INFERENCE_NUM_THREADS": request["threads"] * request["streams"], "NUM_STREAMS": request["streams"]}
    compiled = openvino.Core().compile_model(request["model"], "CPU", {**hints, "INFERENCE_PRECISION_HINT": "f32"})

    def runner() -> Run:
        infer = compiled.create_infer_request()
        return functools.partial(infer.infer, feed)

    return runner


ENGINES: Mapping[str, Callable[[Mapping[str, object], Mapping[str, object]], Callable[[], Run]]] = {
    "sardonyx": _sardonyx,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
}
"""Engine -> what takes a request and a feed, and returns what makes a function that runs the model, for one thread."""


def measure(runners: list[Run], seconds: float, count: int) -> dict[str, object]:
    """Run a model on each of `runners` in a thread of its own, until it has run for so long, or so often where `count` is not 0.

    Returns:
        How long each run took, and all of them together, in nanoseconds.
    """
    latencies: list[list[int]] = [[] for _ in runners]
    errors: list[BaseException] = []
    shares = [count // len(runners) + (place < count % len(runners)) for place in range(len(runners))]
    begin = threading.Barrier(len(runners) + 1)

    def work(place: int) -> None:
        run, found, share, clock = runners[place], latencies[place], shares[place], time.perf_counter_ns
        begin.wait()
        end = clock() + int(seconds * 1e9)
        try:
            while len(found) < share if count else (not found or clock() < end):
                start = clock()
                run()
                found.append(clock() - start)
        except BaseException as error:  # noqa: BLE001  the thread that waits raises it
            errors.append(error)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(runners))]
    for thread in threads:
        thread.start()
    begin.wait()
    start = time.perf_counter_ns()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter_ns() - start
    if errors:
        raise errors[0]
    return {"latencies_ns": [latency for found in latencies for latency in found], "elapsed_ns": elapsed}


def memory_bytes() -> dict[str, int]:
    """Return what this process has in memory now and had at most; 0 where the system does not say."""
    found = {"VmRSS": 0, "VmHWM": 0}
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
            for line in lines:
                name, _, rest = line.partition(":")
                if name in found:
                    found[name] = 1024 * int(rest.split()[0])
    except OSError:
        try:
            resource: Any = importlib.import_module("resource")
        except ImportError:
            return {"memory_bytes": 0, "peak_bytes": 0}
        scale = 1 if sys.platform == "darwin" else 1024
        found["VmHWM"] = scale * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"memory_bytes": found["VmRSS"], "peak_bytes": found["VmHWM"]}


def main(path: str, replies: TextIO) -> None:
    """Serve the request in the file `path`: write JSON to `replies`, a line for the start and one for each of standard input."""
    with open(path, encoding="utf-8") as file:
        request = json.load(file)
    sys.path[:] = request["path"]

    def reply(**facts: object) -> None:
        replies.write(json.dumps(facts) + "\n")
        replies.flush()

    try:
        begun = time.perf_counter()
        engine = importlib.import_module(request["engine"])
        imported = time.perf_counter()
        with open(request["feed"], "rb") as pickled:
            feed = {name: copy.copy(value) for name, value in pickle.load(pickled).items()}  # into memory as NumPy aligns it
        runner = ENGINES[request["engine"]](request, feed)
        made = time.perf_counter()
        runners = [runner() for _ in range(request["streams"])]
        runners[0]()
        first = time.perf_counter()
        times = {"import_ms": imported - begun, "load_ms": made - imported, "first_run_ms": first - made}
        version = str(getattr(engine, "__version__", ""))
        reply(ready={name: 1e3 * value for name, value in times.items()}, version=version, **memory_bytes())
        for line in sys.stdin:
            wanted = json.loads(line)
            reply(**measure(runners, wanted["seconds"], wanted["count"]), **memory_bytes())
    except Exception as error:  # noqa: BLE001  whatever an engine raises is what the user wants to read
        reply(error=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # an engine may print; the pipe is for replies
    main(sys.argv[1], own)
    own.flush()
    os._exit(0)  # engines take long to take down, and some crash then
