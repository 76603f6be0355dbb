"""Placement by measured times beside one provider for all and beside the order of the providers.

    python benchmarks/placement.py                              a pretended slow device, CPU and reference, OpenVINO and CPU
    python benchmarks/placement.py --pair openvino resnet50     one pair, models of the zoo

A line says what a run takes, in milliseconds: with each provider first (the others run what it does not), with them asked in
their order, which is what greedy placement does, and as measured. All sessions of a line take turns, one thread each.

A session that runs each node where a single provider's does counts as it.

Bars: never more than 1.03 times the best single provider; less than greedy where greedy is not the best.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from zoo import Zoo, add_options

ROUNDS, ROUND_SECONDS = 15, 0.2
CPU, OPENVINO, REFERENCE = "CPUExecutionProvider", "OpenVINOExecutionProvider", "ReferenceExecutionProvider"


def cpu() -> tuple[str, dict[str, str]]:
    """The CPU provider on one thread."""
    return CPU, {"intra_op_num_threads": "1"}


def slow_device() -> Any:
    """A device of 50 us a node and 100 us a copy: worth neither."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from support.slow_device import TimedDevice

    return TimedDevice({"Relu", "Neg", "Add", "Mul", "Sigmoid", "Tanh"}, node_us=50, copy_us=100)


PAIRS: dict[str, Callable[[], list[Any]]] = {
    "slow device": lambda: [slow_device(), cpu()],
    "cpu, reference": lambda: [cpu(), REFERENCE],
    "reference, cpu": lambda: [REFERENCE, cpu()],
    "openvino, cpu": lambda: [(OPENVINO, {"num_of_threads": "1"}), cpu()],
    "cpu, openvino": lambda: [cpu(), (OPENVINO, {"num_of_threads": "1"})],
}
"""Pair -> its providers, in the order in which greedy placement asks them; new ones each time."""


def chain() -> tuple[bytes, dict[str, Any]]:
    """Products and activations in turn."""
    from sardonyx.formats.onnx import to_bytes
    from sardonyx.ir.text import parse_model

    lines = ["ir_version 10", "opset 21", "graph chain(x: float[64, 256]) -> (y: float[64, 256]) {"]
    value = "x"
    for layer in range(8):
        lines += [f"w{layer}: float[256, 256] = ... {layer}", f"p{layer} = MatMul({value}, w{layer})", f"n{layer} = Tanh(p{layer})"]
        value = f"n{layer}"
    text = "\n".join([*lines, f"y = Neg({value})", "}"])
    return to_bytes(parse_model(text)), {"x": np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)}


def branches() -> tuple[bytes, dict[str, Any]]:
    """Small element-wise branches between convolutions."""
    from sardonyx.formats.onnx import to_bytes
    from sardonyx.ir.text import parse_model

    lines = ["ir_version 10", "opset 21", "graph branches(x: float[1, 32, 28, 28]) -> (y: float[1, 32, 28, 28]) {"]
    value = "x"
    for layer in range(4):
        lines += [
            f"w{layer}: float[32, 32, 3, 3] = ... {layer}",
            f"c{layer} = Conv({value}, w{layer}) {{pads = [1, 1, 1, 1]}}",
            f"s{layer} = Sigmoid(c{layer})",
            f"t{layer} = Tanh({value})",
            f"v{layer} = Mul(s{layer}, t{layer})",
        ]
        value = f"v{layer}"
    text = "\n".join([*lines, f"y = Relu({value})", "}"])
    return to_bytes(parse_model(text)), {"x": np.random.default_rng(0).standard_normal((1, 32, 28, 28)).astype(np.float32)}


def sorting() -> tuple[bytes, dict[str, Any]]:
    """Products and long chains of functions in turn, with a sort between."""
    from sardonyx.formats.onnx import to_bytes
    from sardonyx.ir.text import parse_model

    lines = ["ir_version 10", "opset 21", "graph sorting(x: float[256, 256]) -> (y: float[256, 256]) {", "k: int64[1] = [256]"]
    value = "x"
    for layer in range(3):
        lines += [
            f"w{layer}: float[256, 256] = ... {layer}",
            f"p{layer} = MatMul({value}, w{layer})",
            f"r{layer} = Relu(p{layer})",
            f"s{layer}, i{layer} = TopK(r{layer}, k)",
        ]
        value = f"s{layer}"
        for step in range(4):
            lines += [f"t{layer}_{step} = Tanh({value})", f"e{layer}_{step} = Neg(t{layer}_{step})"]
            value = f"e{layer}_{step}"
    text = "\n".join([*lines, f"y = Neg({value})", "}"])
    return to_bytes(parse_model(text)), {"x": np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)}


def in_turns(sessions: dict[str, Any], feed: dict[str, Any]) -> dict[str, float]:
    """The median over rounds of the fastest run of a round, in seconds."""
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(ROUNDS):
        for name, session in sessions.items():
            best, end = 1e9, time.perf_counter() + ROUND_SECONDS
            while best == 1e9 or time.perf_counter() < end:
                start = time.perf_counter()
                session.run(None, feed)
                best = min(best, time.perf_counter() - start)
            times[name].append(best)
    return {name: statistics.median(found) for name, found in times.items()}


def compare(label: str, pair: str, model: Any, feed: dict[str, Any]) -> bool:
    """Print a line; whether the bars hold."""
    import sardonyx
    from sardonyx.partition.profile import save_profile
    from sardonyx.session.placement.profile import profile_placement
    from sardonyx.session.providers import make_providers, requested

    start = time.perf_counter()
    found = profile_placement(model, sardonyx.SessionOptions(), make_providers(requested(PAIRS[pair](), None, ())), feed)
    took = time.perf_counter() - start
    options = sardonyx.SessionOptions()
    options.placement = "measured"
    with tempfile.TemporaryDirectory() as folder:
        options.placement_profile = str(Path(folder) / "profile.json")
        save_profile(found, options.placement_profile)
        measured = sardonyx.InferenceSession(model, options, providers=PAIRS[pair]())
    count = len(PAIRS[pair]())
    sessions = {"greedy": sardonyx.InferenceSession(model, providers=PAIRS[pair]()), "measured": measured}
    for index in range(1, count):
        chosen = PAIRS[pair]()
        session = sardonyx.InferenceSession(model, providers=[chosen[index], *chosen[:index], *chosen[index + 1 :]])
        sessions[session.get_providers()[0]] = session
    times = in_turns(sessions, feed)
    best = min(seconds for name, seconds in times.items() if name != "measured")
    gain = times["greedy"] / times["measured"]
    same = [name for name in times if name != "measured" and alike(sessions[name], measured)]
    ratio = 1.0 if any(times[name] == best for name in same) else times["measured"] / best
    shown = ", ".join(f"{name.removesuffix('ExecutionProvider')} {1e3 * seconds:.3f}" for name, seconds in times.items())
    print(
        f"{label:16s} {pair:15s} {shown}: x{ratio:.3f} of the best single, greedy x{gain:.2f}; {shares(measured)}, "
        f"{f'the same as {same[-1]}' if same else 'a mixture'}; profiled in {took:.0f} s",
        flush=True,
    )
    return ratio <= 1.03


def alike(one: Any, other: Any) -> bool:
    """Whether two sessions run each node in the same place, so that only chance tells their times apart."""
    first, second = ([(placement.node, placement.provider) for placement in session.explain()] for session in (one, other))
    return sorted(first) == sorted(second)


def shares(session: Any) -> str:
    """How many nodes each provider got."""
    names = [placement.provider.removesuffix("ExecutionProvider") for placement in session.explain()]
    return ", ".join(f"{names.count(name)} on {name}" for name in dict.fromkeys(names))


def main() -> None:
    """Print a line for each model and pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="models of zoo.py, or of --zoo; the three built here where none is named")
    parser.add_argument("--pair", choices=list(PAIRS), action="append")
    add_options(parser)
    arguments = parser.parse_args()
    cases: list[tuple[str, Any, dict[str, Any]]] = []
    if not arguments.models:
        cases += [("chain", *chain()), ("branches", *branches()), ("sorting", *sorting())]
    else:
        zoo = Zoo(arguments.zoo, arguments.cache)
        cases += [(name, str(zoo.path(name)), zoo.feed(name)) for name in arguments.models]
    held: Sequence[bool] = [compare(label, pair, model, feed) for label, model, feed in cases for pair in arguments.pair or PAIRS]
    print(f"{sum(held)} of {len(held)} within 1.03 of the best single provider")


if __name__ == "__main__":
    main()
