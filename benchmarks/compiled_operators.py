"""The CPU provider against ONNX Runtime, operator by operator, at about a million elements and at one row.

    taskset -c 0 python benchmarks/compiled_operators.py [--rules types,shapes,attributes] [--part 1/4] [OPERATOR ...]

One node each, of `operator_instances.py`, on one thread each; medians of processor time over rounds in which the engines take
turns. With `--rules` further nodes are made of these (`operator_variants.py`): every type that the schema allows, other shapes,
other attributes; those that an engine refuses are passed over, those that the CPU provider leaves to another are not measured.
At one row the dimension that drawn inputs have first in common is 1, or images are small. Without onnxruntime our times are
printed alone. What comes out near the bar or above it is measured once more, in longer rounds. The bar: a median of 0.7, and
none above 1.5.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import importlib.util
import statistics
from collections.abc import Callable, Iterator
from typing import Any

from operator_draws import Draw, Instance
from operator_instances import INSTANCES, LOOPS_AROUND_MODELS
from operator_variants import reattributed, reshaped, typed
from operators import ROUND_S, ROUNDS, seconds

import sardonyx
from sardonyx.session.providers import CPU

MEDIAN_BAR, WORST_BAR = 0.7, 1.5
_SMALL = 8
_SCREENING_ROUNDS, _SCREENING_S, _DOUBT = 3, 0.005, 1.2
"""Rounds of the first measurement and their length; from which ratio on a longer one follows."""

Timed = tuple[float, float | None]


def ours(instance: Instance) -> Callable[[], Any] | str:
    """A run on the CPU provider, or why that leaves something to others."""
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    session = sardonyx.InferenceSession(instance.model().SerializeToString(), options, providers=[CPU])
    left = [place.declined.get(CPU, "") for place in session.explain() if place.provider != CPU]
    if left:
        return f"left to others: {left[0]}"
    feed = instance.feed()
    return lambda: session.run(None, feed)


def theirs(instance: Instance) -> Callable[[], Any] | None:
    """A run on ONNX Runtime; None where it is not installed, or has no kernel for this machine."""
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    model = instance.model().SerializeToString()
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        return None
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


def measure(instance: Instance) -> Timed | str:
    """Median seconds of a call, ours and theirs; why it is not measured where something is left to others."""
    run, peer = ours(instance), theirs(instance)
    if isinstance(run, str):
        return run
    runs = [run] if peer is None else [run, peer]
    for one in runs:
        one()
    found = _times(runs, _SCREENING_ROUNDS, _SCREENING_S)
    if peer is not None and found[0] > _DOUBT * found[1]:
        found = _times(runs, ROUNDS, ROUND_S)
    return found[0], found[1] if peer is not None else None


def _times(runs: list[Callable[[], Any]], count: int, round_s: float) -> list[float]:
    rounds = [[seconds(one, round_s) for one in runs] for _ in range(count)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def measure_small(instance: Instance) -> Timed | str:
    """The same of the first way to make it small that both engines run."""
    for candidate in small(instance):
        with contextlib.suppress(Exception):  # a shape that the operator refuses, by an error of either engine
            return measure(candidate)
    return "no smaller form of it is valid"


def measure_made(instance: Instance) -> Timed | str:
    """The same of a node that was made by rule, which an engine may refuse."""
    with contextlib.suppress(Exception):  # whatever error it is, of either engine
        return measure(instance)
    return "refused by an engine"


def name_of(instance: Instance) -> str:
    """Domain, operator, shapes and types of drawn inputs, and attributes."""
    domain = f"{instance.domain}." if instance.domain else ""
    drawn = (f"{'x'.join(map(str, item.shape))}:{item.dtype}" for item in instance.inputs if isinstance(item, Draw))
    lengths = (str(item.tolist()) for item in instance.inputs if not isinstance(item, Draw) and item is not None and item.size < 4)
    written = {name: value for name, value in instance.attributes.items() if not isinstance(value, list) or len(value) < 9}
    rest = (f"{name}={value}" for name, value in written.items() if isinstance(value, (int, str, list)))
    return " ".join([f"{domain}{instance.op_type}", *list(drawn)[:2], *lengths, *rest])[:110]


def chosen(rules: set[str], wanted: set[str]) -> Iterator[tuple[Instance, bool]]:
    """Every instance of the operators wanted, and whether it was made by a rule; each once."""
    seen: set[str] = set()
    pairs: set[tuple[str, str, str]] = set()
    for instance in INSTANCES:
        if instance.op_type in LOOPS_AROUND_MODELS or (wanted and instance.op_type not in wanted):
            continue
        made = [instance]
        for name, other in typed(instance) if "types" in rules else ():
            pair = (instance.domain, instance.op_type, name)
            made += [] if pair in pairs else [other]
            pairs.add(pair)
        made += reshaped(instance) if "shapes" in rules else []
        made += reattributed(instance) if "attributes" in rules else []
        for place, one in enumerate(made):
            key = repr((one.op_type, one.domain, one.inputs, one.attributes))
            if key not in seen:
                seen.add(key)
                yield one, place > 0


def main() -> None:
    """Print both sizes, then the medians and what is above the bar."""
    parser = argparse.ArgumentParser()
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--rules", default="", help="types, shapes, attributes: what further nodes are made by")
    parser.add_argument("--part", default="1/1", help="which part of the list to measure, of how many")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    ratios: list[tuple[float, str]] = []
    for number, (instance, made) in enumerate(chosen(set(arguments.rules.split(",")), set(arguments.operators))):
        if number % parts != part - 1:
            continue
        for size, measured in (("large", measure_made if made else measure), ("one row", measure_small)):
            found = measured(instance)
            gc.collect()
            name = f"{name_of(instance)} [{size}]"
            if isinstance(found, str):
                print(f"{name:120} {found[:90]}", flush=True)
                if made:
                    break
                continue
            mine, other = found
            ratio = "" if other is None else f"{other * 1e3:12.4f}{mine / other:9.2f}"
            print(f"{name:120}{mine * 1e3:12.4f}{ratio}", flush=True)
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
