"""The CPU provider against ONNX Runtime, operator by operator, at about a million elements and at one row.

    taskset -c 0 python benchmarks/compiled_operators.py [OPERATOR ...]

One node each, of `operator_instances.py`, on one thread each; medians of processor time over rounds in which the engines take
turns. At one row the dimension that drawn inputs have first in common is 1, or images are small. Without onnxruntime our times are
printed alone. Nodes of which anything is left to another provider are listed, and not measured. The bar: a median of 0.7, and
none above 1.5.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

from operator_draws import Draw, Instance
from operator_instances import INSTANCES, LOOPS_AROUND_MODELS
from operators import ROUNDS, name_of, seconds

import sardonyx
from sardonyx.session.providers import CPU

MEDIAN_BAR, WORST_BAR = 0.7, 1.5
_SMALL = 8


def ours(instance: Instance) -> Callable[[], Any] | str:
    """A run on the CPU provider, or why that leaves something to others."""
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    session = sardonyx.InferenceSession(instance.model().SerializeToString(), options, providers=[CPU])
    left = [place.declined.get(CPU, "") for place in session.explain() if place.provider != CPU]
    if left:
        return left[0]
    feed = instance.feed()
    return lambda: session.run(None, feed)


def theirs(instance: Instance) -> Callable[[], Any] | None:
    """A run on ONNX Runtime; None where it is not installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    model = instance.model().SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = instance.feed()
    return lambda: session.run(None, feed)


def small(instance: Instance) -> Iterator[Instance]:
    """Ways to make an instance small, the likeliest first; which of them are valid shows when they run."""
    drawn = [item for item in instance.inputs if isinstance(item, Draw) and item.shape]
    if not drawn:
        return
    first = drawn[0].shape[0]
    if first > 1:
        yield _resized(instance, lambda shape: (1, *shape[1:]) if shape[0] == first else shape)
        yield _resized(instance, lambda shape: tuple(1 if dim == first else dim for dim in shape))
    largest = max(max(item.shape) for item in drawn)
    yield _resized(instance, lambda shape: tuple(_SMALL if dim == largest else dim for dim in shape))


def _resized(instance: Instance, resize: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Instance:
    inputs = (
        dataclasses.replace(item, shape=resize(item.shape)) if isinstance(item, Draw) and item.shape else item
        for item in instance.inputs
    )
    return dataclasses.replace(instance, inputs=tuple(inputs))


def measure(instance: Instance) -> tuple[float, float | None] | str:
    """Median seconds of a call, ours and theirs; why it is not measured where something is left to others."""
    run, peer = ours(instance), theirs(instance)
    if isinstance(run, str):
        return run
    runs = [run] if peer is None else [run, peer]
    for one in runs:
        one()
    rounds = [[seconds(one) for one in runs] for _ in range(ROUNDS)]
    found = [statistics.median(column) for column in zip(*rounds, strict=True)]
    return found[0], found[1] if peer is not None else None


def measure_small(instance: Instance) -> tuple[float, float | None] | str:
    """The same of the first way to make it small that both engines run."""
    for candidate in small(instance):
        with contextlib.suppress(Exception):  # a shape that the operator refuses, by an error of either engine
            return measure(candidate)
    return "no smaller form of it is valid"


def main() -> None:
    """Print both sizes, then the medians and what is above the bar."""
    wanted = set(sys.argv[1:])
    ratios: list[tuple[float, str]] = []
    for instance in INSTANCES:
        if instance.op_type in LOOPS_AROUND_MODELS or (wanted and instance.op_type not in wanted):
            continue
        for size, measured in (("large", measure), ("one row", measure_small)):
            found = measured(instance)
            name = f"{name_of(instance)} [{size}]"
            if isinstance(found, str):
                print(f"{name:72} {found[:90]}", flush=True)
                continue
            mine, other = found
            ratio = "" if other is None else f"{other * 1e3:12.4f}{mine / other:9.2f}"
            print(f"{name:72}{mine * 1e3:12.4f}{ratio}", flush=True)
            ratios += [] if other is None else [(mine / other, name)]
    if not ratios:
        return
    median = statistics.median(ratio for ratio, _ in ratios)
    above = sorted(pair for pair in ratios if pair[0] > WORST_BAR)
    print(f"{len(ratios)} measured, median {median:.2f}; above {WORST_BAR}: {len(above)}")
    for ratio, name in above[::-1]:
        print(f"{ratio:9.2f}  {name}")
    if median > MEDIAN_BAR or above:
        raise SystemExit(f"the bar is a median of {MEDIAN_BAR} and none above {WORST_BAR}")


if __name__ == "__main__":
    main()
