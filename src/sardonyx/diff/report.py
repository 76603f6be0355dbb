"""What a comparison found."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from sardonyx.diff.tensor_error import TensorError
from sardonyx.dtypes import OnnxValue
from sardonyx.ir import Model, Node

__all__ = ["Difference", "Finding", "FoundNode", "FoundValue", "NotFinite"]


@dataclasses.dataclass(frozen=True, slots=True)
class FoundNode:
    """A node of the model."""

    name: str
    """Its name; its first output's where it has none."""
    op_type: str
    """Its operator, with the domain where that is not ai.onnx."""
    index: int
    """Its number in topological order, from 0."""
    outputs: tuple[str, ...]
    """What it makes."""

    @classmethod
    def of(cls, node: Node, index: int) -> FoundNode:
        """Describe a node with its number."""
        outputs = tuple(value.name for value in node.outputs if value.name)
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        return cls(node.name or next(iter(outputs), ""), operator, index, outputs)


@dataclasses.dataclass(frozen=True, slots=True)
class NotFinite:
    """A node that makes NaN of inputs without NaN, or infinities of finite inputs."""

    kind: str
    """What it makes, "NaN" or "infinities"."""
    value: str
    """The output that has them."""
    node: FoundNode
    """The node."""
    count: int
    """How many elements of the output are such."""
    elements: int
    """How many there are."""
    largest: float
    """The largest finite magnitude in its inputs."""
    greatest: float
    """The largest number of the output's type."""
    of_infinities: bool
    """Whether its inputs hold infinities, which only NaN are made of."""
    before: NotFinite | None
    """For NaN where the infinities in its inputs come from; None where these are finite, or infinite in what is fed."""


@dataclasses.dataclass(frozen=True, slots=True)
class FoundValue:
    """The first value that differs from a recorded one."""

    value: str
    """Its name."""
    node: FoundNode
    """What makes it."""
    agreeing: tuple[str, ...]
    """The inputs of the node that agree with what is recorded."""
    unrecorded: tuple[str, ...]
    """Those that nothing is recorded of: the error may come from there."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """The first nodes that differ, alone with the inputs that they have in the model."""

    nodes: tuple[FoundNode, ...]
    """One node, or the fewest found that differ only together, as where an engine fuses them."""
    suspect: FoundNode | None
    """Of several nodes the one that makes the first value that differs where all their values are given out, which keeps them
    from being fused; None where nothing differs then, and for a single node."""
    tensors: tuple[TensorError, ...]
    """The errors of what they make, on inputs computed by a."""
    exact: Mapping[str, tuple[float | None, float | None]]
    """Output -> the largest differences of a and of b from the result in float64; empty where that cannot be computed."""
    inexact: str
    """Why it cannot; "" where it can."""
    wrong: str
    """The side that is farther from float64, "a" or "b"; "" where that is not known or both are as far."""
    failure: str
    """What b said where it failed."""
    steps: tuple[tuple[str, str], ...]
    """What b runs them as: operators and their providers; empty where it does not say."""
    rules: tuple[str, ...]
    """The rewrite rules that fire on them in b."""
    model: Model
    """The nodes as a model, with the names of the whole."""
    feed: Mapping[str, OnnxValue]
    """Its inputs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """What a comparison found."""

    model: str
    """What messages call the model."""
    a: str
    """The one configuration."""
    b: str
    """The other."""
    nodes: int
    """How many nodes the model has, with its functions inlined."""
    outputs: tuple[TensorError, ...]
    """The errors of the model's outputs; empty where b failed."""
    tensors: tuple[TensorError, ...]
    """The errors of the values that were asked for."""
    failure: str
    """What b said where it failed to run the model."""
    found: Finding | None
    """The first nodes that differ; None where none do."""
    compared: int
    """How many parts of the model were compared."""
    not_finite: tuple[NotFinite, ...] = ()
    """The nodes that NaN and infinities in the outputs of a come from."""
    first: FoundValue | None = None
    """Compared with recorded values: the first that differs."""
    unknown: tuple[str, ...] = ()
    """Compared with recorded values: names among them that the model does not have."""

    @property
    def agrees(self) -> bool:
        """Whether nothing differs, in the outputs or in any part that was compared."""
        return not self.failure and self.found is None and all(error.agrees for error in (*self.outputs, *self.tensors))

    def facts(self) -> dict[str, Any]:
        """Return everything but the small model and its inputs, on its way to JSON."""
        found = None if self.found is None else _facts(self.found)
        own = {
            item.name: getattr(self, item.name)
            for item in dataclasses.fields(self)
            if item.name not in ("found", "not_finite", "first")
        }
        own["outputs"], own["tensors"] = ([dataclasses.asdict(error) for error in own[name]] for name in ("outputs", "tensors"))
        own["first"] = None if self.first is None else dataclasses.asdict(self.first)
        own["not_finite"] = [dataclasses.asdict(item) for item in self.not_finite]
        return {**own, "agrees": self.agrees, "found": found}


def _facts(found: Finding) -> dict[str, Any]:
    return {
        "nodes": [dataclasses.asdict(node) for node in found.nodes],
        "suspect": None if found.suspect is None else dataclasses.asdict(found.suspect),
        "tensors": [dataclasses.asdict(error) for error in found.tensors],
        "float64": {name: {"a": a, "b": b} for name, (a, b) in found.exact.items()},
        "no_float64": found.inexact,
        "wrong": found.wrong,
        "failure": found.failure,
        "b_runs": [{"op_type": operator, "provider": provider} for operator, provider in found.steps],
        "rules": list(found.rules),
        "inputs": sorted(found.feed),
    }
