"""How long does it take until a run or a load that is ended has returned, and is the next one right?

    python benchmarks/cancel.py [--zoo FOLDER] [--threads N …] [--tries N]

Ends each piece of work at several points of its length in three ways: by a flag that another thread sets
(`RunOptions.terminate`, `SessionOptions.set_load_cancellation_flag`), by a time (`timeout_ms`, `load_timeout_ms`), and by Ctrl-C.
Prints how long the work takes whole, and the longest and the median time from the end's cause to the return. Bar: 100 ms.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sardonyx
from sardonyx import InferenceSession, ModelLoadCanceled, RunOptions, RunTerminated, SessionOptions
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

BAR_MS = 100
WAYS = ("flag", "time", "Ctrl-C")


def model(body: str) -> bytes:
    """A model of a graph in text form."""
    return to_bytes(parse_model(f"ir_version 10\nopset 21\n{body}"))


def chain(count: int, *operators: str) -> bytes:
    """A model of nodes one behind another, with `operators` in turn."""
    lines = "x1 = Sin(x)\n" + "".join(f"x{n + 1} = {operators[n % len(operators)]}(x{n})\n" for n in range(1, count))
    return model(f"graph chain(x: float[4, 4]) -> (y: float[4, 4]) {{\n{lines}y = Identity(x{count})\n}}")


LARGE_PRODUCT = "graph product(a: float[4096, 4096]) -> (y: float[4096, 4096]) {\ny = MatMul(a, a)\n}"
LOOP = """graph loop(n: int64[], x: float[64]) -> (y: float[64]) {
go: bool[] = true
y = Loop(n, go, x) {body = graph body(i: int64[], c: bool[], a: float[64]) -> (c, b) {
b = Sin(a)
}}
}"""
LSTM = """graph lstm(x: float[4000, 8, 256], w: float[1, 1024, 256], r: float[1, 1024, 256]) -> (y: float[4000, 1, 8, 256]) {
y = LSTM(x, w, r) {hidden_size = 256}
}"""
REFERENCE = "graph reference(x: float[400, 400]) -> (y: float[400, 400]) {{\n{}y = Identity(x120)\n}}"


def feed_of(session: InferenceSession, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Random inputs; a symbolic dimension has the size that `sizes` gives, else 1."""
    rng = np.random.default_rng(0)
    feed: dict[str, Any] = {}
    for item in session.get_inputs():
        shape = [sizes.get(dim, 1) if isinstance(dim, str) else dim for dim in item.shape]
        feed[item.name] = (
            np.full(shape, 1, np.int64) if "int64" in item.type else (0.05 * rng.standard_normal(shape)).astype(np.float32)
        )
    return feed


def ended(work: Callable[[str, float], None], way: str, after: float, set_flag: Callable[[], None]) -> float | None:
    """Milliseconds from the cause to the return; None where the work was done before.

    `work` gets the way and the time in milliseconds.
    """
    causes: list[float] = []

    def cause() -> None:
        causes.append(time.perf_counter())
        if way == "flag":
            set_flag()
        elif way == "Ctrl-C":
            os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, cause)
    if way != "time":
        timer.start()
    start = time.perf_counter()
    try:
        work(way, after * 1e3)
        time.sleep(0 if way == "time" else max(0.0, start + after + 0.05 - time.perf_counter()))
    except (RunTerminated, ModelLoadCanceled, KeyboardInterrupt):
        end = time.perf_counter()
        return (end - (start + after if way == "time" else causes[0])) * 1e3
    finally:
        timer.cancel()
        timer.join() if way != "time" else None
    return None


def report(name: str, whole: float, tries: Sequence[tuple[str, float | None]], right: bool) -> None:
    """Print one line."""
    cells = []
    for way in WAYS:
        times = [found for kind, found in tries if kind == way and found is not None]
        cells.append(f"{max(times):6.1f} {statistics.median(times):6.1f}" if times else f"{'-':>6} {'-':>6}")
    worst = max((found for _, found in tries if found is not None), default=0.0)
    verdict = ("" if worst <= BAR_MS else "  over the bar") + ("" if right else "  THE NEXT ONE IS WRONG")
    print(f"{name:>34} {whole * 1e3:8.0f} ms | {' | '.join(cells)}{verdict}", flush=True)


def points(whole: float, tries: int) -> list[float]:
    """When to end work that takes `whole` seconds: spread over the first 85 % of it."""
    return [whole * 0.85 * (number + 0.5) / tries for number in range(tries)]


def runs(name: str, session: InferenceSession, feed: dict[str, Any], tries: int) -> None:
    """End runs."""
    session.run(None, feed)
    start = time.perf_counter()
    expected = session.run(None, feed)
    whole = time.perf_counter() - start
    found = []
    for way in WAYS:
        for after in points(whole, tries):
            options = RunOptions()

            def work(way: str, after_ms: float, options: RunOptions = options) -> None:
                options.timeout_ms = after_ms if way == "time" else 0
                session.run(None, feed, None if way == "Ctrl-C" else options)

            def set_flag(options: RunOptions = options) -> None:
                options.terminate = True

            found.append((way, ended(work, way, after, set_flag)))
    again = session.run(None, feed)
    right = all(np.array_equal(one, other, equal_nan=True) for one, other in zip(expected, again, strict=True))
    report(name, whole, found, right)


def loads(name: str, given: Any, threads: int, tries: int) -> None:
    """End the making of sessions."""

    def options() -> SessionOptions:
        made = SessionOptions()
        made.intra_op_num_threads = threads
        made.add_session_config_entry("session.share_programs", "0")
        return made

    start = time.perf_counter()
    session = InferenceSession(given, options())
    whole = time.perf_counter() - start
    found = []
    for way in WAYS:
        for after in points(whole, tries):
            chosen = options()

            def work(way: str, after_ms: float, chosen: SessionOptions = chosen) -> None:
                chosen.load_timeout_ms = after_ms if way == "time" else 0
                InferenceSession(given, chosen)

            def set_flag(chosen: SessionOptions = chosen) -> None:
                chosen.set_load_cancellation_flag(True)

            found.append((way, ended(work, way, after, set_flag)))
    again = InferenceSession(given, options())
    feed = feed_of(session, {})
    pairs = zip(session.run(None, feed), again.run(None, feed), strict=True)
    report(name, whole, found, all(np.array_equal(one, other, equal_nan=True) for one, other in pairs))


def first_loads(name: str, given: Any, tries: int) -> None:
    """End the making of the first session of a process and of a cache, in new processes."""
    whole, _ = _in_new_process(given, "whole", 0)
    found = [(way, _in_new_process(given, way, after)[1]) for way in WAYS for after in points(whole, tries)]
    report(name, whole, found, right=True)


def _in_new_process(given: Any, way: str, after: float) -> tuple[float, float | None]:
    """Return the seconds that a load took, and the milliseconds after which it returned when it was ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx" if isinstance(given, bytes) else given
        if isinstance(given, bytes):
            path.write_bytes(given)
        command = [sys.executable, __file__, "--first", str(path), way, str(after)]
        environment = os.environ | {"SARDONYX_CACHE_DIR": str(Path(folder) / "cache")}
        seconds, milliseconds = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), None if milliseconds == "None" else float(milliseconds)


def first_load(path: str, way: str, after: float) -> tuple[float, float | None]:
    """What `_in_new_process` returns, in this process; after a load that was ended, another must work."""
    options = SessionOptions()

    def work(way: str, after_ms: float) -> None:
        options.load_timeout_ms = after_ms if way == "time" else 0
        InferenceSession(path, options)

    start = time.perf_counter()
    found = None
    if way == "whole":
        work(way, 0)
    else:
        found = ended(work, way, after, lambda: options.set_load_cancellation_flag(True))
        InferenceSession(chain(3, "Neg"))
    return time.perf_counter() - start, found


def large_file(folder: Path) -> Path:
    """A model with half a GiB of weights beside it."""
    import onnx
    from onnx import TensorProto, helper

    weights = np.zeros((32, 4 << 20), np.float32)
    names = [f"w{number}" for number in range(len(weights))]
    nodes = [helper.make_node("Add", [f"x{number}", name], [f"x{number + 1}"]) for number, name in enumerate(names)]
    shape = [1, 4 << 20]
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(f"x{len(names)}", TensorProto.FLOAT, shape)],
        [onnx.numpy_helper.from_array(row.reshape(shape), name) for row, name in zip(weights, names, strict=True)],
    )
    path = folder / "large.onnx"
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(proto, path, save_as_external_data=True, location="large.bin")
    return path


def sessions(zoo: Path | None, threads: int) -> Iterator[tuple[str, InferenceSession, dict[str, Any]]]:
    """What is run."""
    options = SessionOptions()
    options.intra_op_num_threads = threads
    for body, sizes in ((LARGE_PRODUCT, {}), (LOOP, {}), (LSTM, {})):
        session = InferenceSession(model(body), options)
        feed = feed_of(session, sizes)
        if "n" in feed:
            feed["n"] = np.array(200_000, np.int64)
        yield body.split("(")[0].removeprefix("graph "), session, feed
    chain = "x1 = Sin(x)\n" + "".join(f"x{number + 1} = Sin(x{number})\n" for number in range(1, 120))
    session = InferenceSession(model(REFERENCE.format(chain)), options, ["ReferenceExecutionProvider"])
    yield "reference provider", session, feed_of(session, {})
    for name, sizes in (
        ("gpt2", {"batch": 1, "sequence": 512, "total_sequence": 512, "past_sequence": 0}),
        ("resnet50", {"batch": 32}),
    ):
        path = (
            None if zoo is None else next(iter(sorted(zoo.rglob(f"{name}*/model.onnx")) + sorted(zoo.rglob(f"{name}*.onnx"))), None)
        )
        if path is not None:
            session = InferenceSession(path, options)
            yield f"{name} {list(sizes.values())[:2]}", session, feed_of(session, sizes)


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--zoo", type=Path, help="a folder with gpt2 and resnet50")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--first", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell starts in the background
    if given.first:
        print(*first_load(given.first[0], given.first[1], float(given.first[2])))
        return
    print(f"sardonyx {sardonyx.__version__}; milliseconds to the return, longest and median of {given.tries}")
    with tempfile.TemporaryDirectory() as name:
        for threads in given.threads:
            head = " | ".join(f"{way:^13}" for way in WAYS)
            print(f"{f'{threads} threads':>34} {'whole':>11} | {head}")
            for label, session, feed in sessions(given.zoo, threads):
                runs(label, session, feed, given.tries)
        path = large_file(Path(name))
        loads("load: 512 MiB of weights", path, 1, given.tries)
        loads("load: 6000 nodes, known", chain(6000, "Sin", "Neg"), 1, given.tries)
        zoo_model = None if given.zoo is None else next(iter(sorted(given.zoo.rglob("resnet50*.onnx"))), None)
        first_loads("first load: 30000 nodes", chain(30_000, "Sin", "Neg"), given.tries)
        first_loads("first load: 10000 nodes", chain(10_000, "Softmax", "Transpose", "Exp"), given.tries)
        first_loads("first load: many kernels", zoo_model or model(LARGE_PRODUCT), given.tries)


if __name__ == "__main__":
    main()
