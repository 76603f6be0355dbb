"""Plans of many small steps with branches, for executors: devices that share one memory, take their time, and may fail."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from support.models import graph
from support.providers import DeviceProvider, FusingProvider

from sardonyx.ir import Graph
from sardonyx.partition.assign import assign
from sardonyx.partition.cut import cut
from sardonyx.partition.transfers import insert_transfers
from sardonyx.provider import Body, Bound, Partition, Program
from sardonyx.runtime.plan import Plan, make_plan

__all__ = ["SlowDevice", "branching_text", "plan_of"]


class SlowDevice(DeviceProvider):
    """A device that sleeps before it computes; the time is drawn anew for each run."""

    def __init__(self, name: str, operators: Sequence[str], most_seconds: float = 0.0, seed: int = 0) -> None:
        super().__init__(operators, name)
        self._most_seconds, self._random = most_seconds, random.Random(seed)

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        return _SlowProgram(super().compile(partition, bodies), self._sleep)

    def _sleep(self) -> None:
        time.sleep(self._random.random() * self._most_seconds)


class _SlowProgram:
    def __init__(self, inner: Program, sleep: Callable[[], None]) -> None:
        self.makes_outputs = inner.makes_outputs
        self._inner, self._sleep = inner, sleep

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        return self._inner.bind(shapes)

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
        self._sleep()
        return self._inner.run(bound, inputs, outputs, scratch)


def plan_of(text: str, *providers: Any) -> Plan:
    """The plan of a graph on `providers`; what none of them claims the host runs by programs that make their outputs."""
    held = graph(text)
    host = FusingProvider({node.op_type for node in held}, "Host", fuse=False)
    parts, _ = cut(held, assign(held, [*providers, host]).units)
    return make_plan(held, (), insert_transfers(held, parts), lambda part: part.provider.compile(part.partition, _no_body))


def branching_text(seed: int, count: int) -> str:
    """A graph of `count` random nodes over vectors, any of which may be read again and again; some are given out."""
    draw = random.Random(seed)
    names = ["x"]
    lines = []
    for index in range(count):
        operator = draw.choice(["Relu", "Neg", "Add", "Mul", "Abs", "Tanh"])
        operands = [draw.choice(names[-6:]) for _ in range(2 if operator in ("Add", "Mul") else 1)]
        lines.append(f"v{index} = {operator}({', '.join(operands)})")
        names.append(f"v{index}")
    outputs = [f"{name}: float[n]" for name in dict.fromkeys([*draw.sample(names[1:], 2), names[-1]])]
    return f"graph(x: float[n]) -> ({', '.join(outputs)}) {{\n" + "\n".join(lines) + "\n}"


def _no_body(body: Graph) -> Body:
    raise KeyError(body)
