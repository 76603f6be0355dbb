"""Compare random instances of every operator with onnxruntime and onnx.reference, and print where they disagree.

    python benchmarks/differential.py                    two instances of each case of one node of onnx.backend.test
    python benchmarks/differential.py --draws 6 --only resize
    python benchmarks/differential.py --providers cpu    the CPU provider before the reference provider
    python benchmarks/differential.py --large            the operator benchmark's instances, of com.microsoft and ai.onnx.ml too

Each line names an instance, what we give and who gives something else; docs/numerics.md says who is right. The exit status is 1
where we fail without a word of our own, or refuse what both peers compute alike.
"""

from __future__ import annotations

import argparse
import copy
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import numpy as np
import onnxruntime
from onnx.reference import ReferenceEvaluator
from operator_instances import INSTANCES
from operators import in_place, name_of
from support.compare import difference
from support.instances import RandomInstance, random_instances

import sardonyx
from sardonyx.errors import SardonyxError

PROVIDERS = {"reference": ["ReferenceExecutionProvider"], "cpu": ["CPUExecutionProvider", "ReferenceExecutionProvider"]}


class Refused(str):
    """Why an engine gives no result."""


def ours(providers: list[str]) -> Callable[[RandomInstance], Any]:
    """An engine: an instance -> its outputs, or why there are none."""

    def run(instance: RandomInstance) -> Any:
        try:
            return sardonyx.InferenceSession(instance.model, providers=providers).run(None, instance.feed)
        except SardonyxError as error:
            return Refused(f"{type(error).__name__}: {error}")

    return run


def onnxruntime_gives(instance: RandomInstance) -> Any:
    """What onnxruntime gives without optimization; its messages are its own, hence any exception counts."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(instance.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        if instance.shared:
            return in_place(session, copy.deepcopy(instance.feed), instance.shared)()
        return session.run(None, instance.feed)
    except Exception as error:  # noqa: BLE001  a peer may raise anything
        return Refused(str(error))


def reference_gives(instance: RandomInstance) -> Any:
    """What onnx.reference gives."""
    try:
        return ReferenceEvaluator(instance.model).run(None, instance.feed)
    except Exception as error:  # noqa: BLE001  a peer may raise anything
        return Refused(str(error))


def differs(mine: Any, other: Any) -> str | None:
    """In which way two engines' outputs differ; None where they agree, or one of them has none."""
    if isinstance(mine, Refused) or isinstance(other, Refused):
        return None
    for index, (wanted, found) in enumerate(zip(other, mine, strict=False)):
        text = difference(_as_value(wanted), found, 1e-3, 1e-4)
        if text is not None:
            return f"output {index}: {text}"
    return None


def _as_value(wanted: Any) -> Any:
    """A peer's output in our types: arrays for scalars, strings as objects."""
    if wanted is None or isinstance(wanted, (list, dict)):
        return wanted
    array = np.asarray(wanted)
    return array.astype(object) if array.dtype.kind == "U" else array


def verdict(mine: Any, peers: dict[str, Any]) -> str | None:
    """What there is to say of one instance."""
    values = {name: result for name, result in peers.items() if not isinstance(result, Refused)}
    if isinstance(mine, Refused):
        agree = len(values) == len(peers) and (len(values) == 1 or differs(*values.values()) is None)
        return f"REFUSED, the peers compute it: {mine}" if agree else None
    texts = {name: differs(mine, result) for name, result in values.items()}
    wrong = [f"{name} ({text})" for name, text in texts.items() if text is not None]
    if not wrong:
        return None
    others = [name for name, text in texts.items() if text is None]
    return f"differs from {'; '.join(wrong)}" + (f"; agrees with {', '.join(others)}" if others else "")


def large_instances(only: str) -> Iterator[RandomInstance]:
    """The instances of the operator benchmark whose name contains `only`."""
    for item in INSTANCES:
        if only in name_of(item):
            yield RandomInstance(item.op_type, name_of(item), item.model(), item.feed(), item.shared)


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--providers", default="reference", choices=list(PROVIDERS))
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    engine, counts, refused = ours(PROVIDERS[arguments.providers]), Counter[str](), 0
    instances = large_instances(arguments.only) if arguments.large else random_instances(arguments.draws, arguments.only)
    for instance in instances:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine = engine(instance)
            peers = {"onnxruntime": onnxruntime_gives(instance)}
            if not arguments.large:
                peers["onnx.reference"] = reference_gives(instance)
            text = verdict(mine, peers)
        counts["instances"] += 1
        counts["with onnxruntime"] += not isinstance(peers["onnxruntime"], Refused)
        counts["with onnx.reference"] += not isinstance(peers.get("onnx.reference", Refused()), Refused)
        if text is not None:
            counts["disagreements"] += 1
            refused += text.startswith("REFUSED")
            print(f"{instance.operator}: {instance.name}: {text[:400]}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
