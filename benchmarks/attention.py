"""How fast is attention, against ONNX Runtime running the same nodes?

    taskset -c 0 python benchmarks/attention.py [LEVEL]

Each model is attention as an exporter writes it, from (B, S, H x D) to the same: split, transpose, multiply, scale, mask, softmax,
multiply, transpose, join. Sardonyx finds the one operator in it. One thread each; medians over rounds in which the engines take
turns, of processor time, as others may use the machine. GFLOP/s count the two products alone.
"""

import functools
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime

import sardonyx
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import Array
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model
from sardonyx.providers.cpu.provider import CpuProvider

SHAPES = {
    "bert_base": (1, 12, 128, 128, 64, True),
    "bert_base, batch 8": (8, 12, 128, 128, 64, True),
    "bert_base, 37 tokens": (1, 12, 37, 37, 64, True),
    "vit_base": (1, 12, 197, 197, 64, False),
    "whisper_tiny encoder": (1, 6, 1500, 1500, 64, False),
    "diffusion, across": (1, 8, 1024, 77, 40, False),
    "decoder, one token": (1, 12, 1, 512, 64, False),
}
"""B, H, S, T, D, and whether there is a mask."""
ROUNDS = 15


def model(H: int, D: int, *, masked: bool) -> bytes:
    """Attention written out."""
    mask = ", m: bool[b, 1, s, t]" if masked else ""
    scores = "c = Mul(p, f) n = Where(m, zero, low) x = Add(c, n)" if masked else "x = Mul(p, f)"
    heads = "".join(f"{name}4 = Reshape({name}, split) " for name in "qkv")
    return to_bytes(
        parse_model(f"""ir_version 10
        opset 17
        graph main(q: float[b, s, {H * D}], k: float[b, t, {H * D}], v: float[b, t, {H * D}]{mask}) -> (y: float[b, s, {H * D}]) {{
            split: int64[4] = [0, 0, {H}, {D}] join: int64[3] = [0, 0, {H * D}] f: float[] = {D**-0.5}
            zero: float[] = 0.0 low: float[] = -3.4028234663852886e38
            {heads} qh = Transpose(q4) {{perm = [0, 2, 1, 3]}} kt = Transpose(k4) {{perm = [0, 2, 3, 1]}}
            vh = Transpose(v4) {{perm = [0, 2, 1, 3]}} p = MatMul(qh, kt) {scores} w = Softmax(x) {{axis = -1}} a = MatMul(w, vh)
            t4 = Transpose(a) {{perm = [0, 2, 1, 3]}} y = Reshape(t4, join) }}""")
    )


def feeds(B: int, H: int, S: int, T: int, D: int, *, masked: bool) -> dict[str, Array]:
    """Random inputs; the mask hides nothing, which makes no difference for the time."""
    rng = np.random.default_rng(0)
    given = {name: rng.standard_normal((B, n, H * D)).astype(np.float32) for name, n in (("q", S), ("k", T), ("v", T))}
    return given | ({"m": np.ones((B, 1, S, T), np.bool_)} if masked else {})


def ours(proto: bytes, level: str | None) -> Callable[[Mapping[str, Array]], list[Array]]:
    """A session of this package on its compiler alone."""
    session = sardonyx.InferenceSession(proto, providers=[CpuProvider(host_target(level), 1)])
    operators = {placement.op_type for placement in session.explain()}
    if "Attention" not in operators:
        raise SystemExit(f"attention was not found; the nodes are {sorted(operators)}")
    return lambda given: session.run(None, given)


def theirs(proto: bytes) -> Callable[[Mapping[str, Array]], list[Array]]:
    """A session of ONNX Runtime on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
    return lambda given: session.run(None, given)


def seconds(call: Callable[[], object]) -> float:
    """Processor time per call, over enough calls to last 5 ms."""
    calls, elapsed = 1, 0.0
    while elapsed < 5e-3:
        start = time.process_time()
        for _ in range(calls):
            call()
        elapsed = time.process_time() - start
        calls *= 2
    return elapsed / (calls // 2)


def report(level: str | None) -> None:
    """Print the table."""
    print(f"{host_target(level).isa:>24} {'sardonyx':>12} {'GFLOP/s':>9} {'onnxruntime':>12} {'ratio':>7} {'difference':>11}")
    for name, (B, H, S, T, D, masked) in SHAPES.items():
        proto, given = model(H, D, masked=masked), feeds(B, H, S, T, D, masked=masked)
        runs = [ours(proto, level), theirs(proto)]
        first, second = (run(given)[0] for run in runs)
        times: list[list[float]] = [[], []]
        for _ in range(ROUNDS):
            for run, found in zip(runs, times, strict=True):
                found.append(seconds(functools.partial(run, given)))
        one, other = (statistics.median(found) for found in times)
        ratio = statistics.median(mine / peer for mine, peer in zip(*times, strict=True))
        speed = 4 * B * H * S * T * D / one / 1e9
        difference = float(np.abs(first - second).max())
        print(f"{name:>24} {one * 1e6:9.0f} us {speed:9.0f} {other * 1e6:9.0f} us {ratio:7.2f} {difference:11.1e}")


if __name__ == "__main__":
    report(sys.argv[1] if len(sys.argv) > 1 else None)
