"""Asking OpenVINO what it can run, node by node; equal nodes are asked about once per process.

A question costs OpenVINO milliseconds however small it is, so all new ones of a graph are put as one model, side by side.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sardonyx.forks import new_lock
from sardonyx.ir import Node
from sardonyx.partition.as_model import has_same_meaning, write_nodes
from sardonyx.providers.openvino.operators import reason_against
from sardonyx.providers.openvino.package import openvino_package
from sardonyx.providers.openvino.tensors import element_type, is_large, signature_of

__all__ = ["Oracle", "core", "first_line", "oracle_for"]

_REMEMBERED = 4096
_PLACES = ("Exception from", "Check '", "FrontEnd API", "Model wasn't", "Summary:", "To ")


class _Question(NamedTuple):
    """Nodes that are equal but for names and the contents of large constants."""

    model: bytes
    inputs: int
    outputs: tuple[tuple[str, tuple[int, ...]], ...]


class Oracle:
    """What one device runs. Safe for threads."""

    def __init__(self, device: str) -> None:
        """Make an oracle that has been asked nothing."""
        self._device, self._lock = device, new_lock()
        self._answers: dict[_Question, str | None] = {}

    def reasons(self, nodes: Sequence[Node], versions: Mapping[str, int]) -> dict[Node, str | None]:
        """Return for each node why it cannot be run, or None where it can."""
        found = {node: _reason_against(node, versions) for node in nodes}
        questions = {node: _question(node, versions) for node, reason in found.items() if reason is None}
        with self._lock:
            if len(self._answers) > _REMEMBERED:
                self._answers.clear()
            self._ask(list(dict.fromkeys(item for item in questions.values() if item not in self._answers)))
            return {**found, **{node: self._answers[item] for node, item in questions.items()}}

    def _ask(self, questions: Sequence[_Question]) -> None:
        models: dict[_Question, object] = {}
        for question in questions:
            try:
                model = core().read_model(question.model)
            except RuntimeError as error:
                self._answers[question] = first_line(error)
            else:
                self._answers[question] = _mismatch(model, question)
                if self._answers[question] is None:
                    models[question] = model
        self._answers.update(zip(models, self._supported(list(models.values())), strict=True))

    def _supported(self, models: Sequence[object]) -> list[str | None]:
        """Query models as one; where that fails, each by itself."""
        try:
            return _query(models, self._device) if models else []
        except RuntimeError as error:
            return [first_line(error)] if len(models) == 1 else [self._supported([model])[0] for model in models]


oracle_for = functools.cache(Oracle)
"""The process's oracle for a device."""


@functools.cache
def core() -> Any:
    """Return the process's openvino.Core; Any, so that naming the type does not import openvino."""
    return openvino_package().Core()


def first_line(error: Exception) -> str:
    """Return what an error of OpenVINO says, without where in its sources."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return next((line for line in lines if not line.startswith(_PLACES)), lines[0]).removeprefix("-- ")


def _reason_against(node: Node, versions: Mapping[str, int]) -> str | None:
    version = versions[node.domain]
    return reason_against(node) if has_same_meaning(node, version) else f"it means something else under version {version}"


def _question(node: Node, versions: Mapping[str, int]) -> _Question:
    reads = list(dict.fromkeys(value for value in node.inputs if value is not None))
    inputs = [value for value in reads if value.constant is None]
    constants = [value for value in reads if value.constant is not None]
    outputs = [value for value in node.outputs if value.name or value.use_count]
    model = write_nodes([node], inputs, constants, outputs, {node.domain: versions[node.domain]}, is_large)
    known = signature_of(outputs)
    made = [(element_type(dtype), tuple(dim if isinstance(dim, int) else -1 for dim in shape)) for dtype, shape in known]
    return _Question(model, len(inputs) + sum(map(is_large, constants)), tuple(made))


def _mismatch(model: Any, question: _Question) -> str | None:
    """Return in which way OpenVINO read a node as something else than it is; `model` is an openvino.Model."""
    openvino = openvino_package()
    if len(model.inputs) != question.inputs:
        return f"it would read {len(model.inputs)} of its {question.inputs} inputs"
    if any(result.input_value(0).get_node().get_type_name() == "Parameter" for result in model.get_results()):
        return "it only gives out what it reads"
    for output, (name, sizes) in zip(model.outputs, question.outputs, strict=True):
        kind, shape = output.get_element_type().get_type_name(), output.get_partial_shape()
        if kind != name or not shape.compatible(openvino.PartialShape(list(sizes))) or (shape.is_static and -1 in sizes):
            return f"its output would be {kind}{shape}, not {name}{list(sizes)}"
    return None


def _query(models: Sequence[Any], device: str) -> list[str | None]:
    openvino = openvino_package()
    for index, model in enumerate(models):
        for operation in model.get_ops():
            operation.friendly_name = f"{index}/{operation.get_type_name()}/{operation.friendly_name}"
    results = [result for model in models for result in model.get_results()]
    joined = openvino.Model(results, [parameter for model in models for parameter in model.get_parameters()], "questions")
    supported = core().query_model(joined, device)
    missing = [operation.friendly_name.split("/") for operation in joined.get_ops() if operation.friendly_name not in supported]
    reasons = {int(index): f"OpenVINO has no {kind} for it on {device}" for index, kind, *_ in missing}
    return [reasons.get(index) for index in range(len(models))]
