"""Asking OpenVINO what it can run, node by node; equal nodes are asked about once per process.

A question costs OpenVINO milliseconds however small it is, so all new ones of a graph are put as one model, side by side.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.ir import Expr, Node, Shape
from sardonyx.providers.openvino.convert import element_type, is_large, same_meaning, signature_of, to_onnx
from sardonyx.providers.openvino.operators import reason_against

__all__ = ["Oracle", "core", "first_line", "oracle_for"]

_REMEMBERED = 4096
_PLACES = ("Exception from", "Check '", "FrontEnd API", "Model wasn't", "Summary:", "To ")


@dataclasses.dataclass(frozen=True, slots=True)
class _Question:
    """Nodes that are equal but for names and the contents of large constants."""

    model: bytes
    """One of them as an ONNX model."""
    inputs: int
    """How many inputs that model has."""
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    """The element types of its outputs, and their shapes with -1 for sizes that are not known."""


class Oracle:
    """What one device runs. Safe for threads."""

    def __init__(self, device: str) -> None:
        """Make an oracle that has been asked nothing."""
        self._device = device
        self._lock = threading.Lock()
        self._answers: dict[_Question, str | None] = {}

    def reasons(self, nodes: Sequence[Node], versions: Mapping[str, int]) -> dict[Node, str | None]:
        """For each node why it cannot be run, or None where it can."""
        found: dict[Node, str | None] = {}
        questions: dict[Node, _Question] = {}
        for node in nodes:
            reason = _reason_against(node, versions)
            if reason is None:
                questions[node] = _question(node, versions)
            else:
                found[node] = reason
        with self._lock:
            if len(self._answers) > _REMEMBERED:
                self._answers.clear()
            self._ask(list(dict.fromkeys(item for item in questions.values() if item not in self._answers)))
            found.update((node, self._answers[item]) for node, item in questions.items())
        return found

    def _ask(self, questions: Sequence[_Question]) -> None:
        models: list[Any] = []
        asked: list[_Question] = []
        for question in questions:
            try:
                model = core().read_model(question.model)
            except RuntimeError as error:
                self._answers[question] = first_line(error)
                continue
            reason = _mismatch(model, question)
            if reason is None:
                models.append(model)
                asked.append(question)
            else:
                self._answers[question] = reason
        self._answers.update(zip(asked, self._supported(models), strict=True))

    def _supported(self, models: Sequence[Any]) -> list[str | None]:
        """Query models as one; where that fails, halves of them."""
        if not models:
            return []
        try:
            return _query(models, self._device)
        except RuntimeError as error:
            if len(models) == 1:
                return [first_line(error)]
            middle = len(models) // 2
            return [*self._supported(models[:middle]), *self._supported(models[middle:])]


@functools.cache
def oracle_for(device: str) -> Oracle:
    """The process's oracle for a device."""
    return Oracle(device)


@functools.cache
def core() -> Any:
    """The process's openvino.Core; Any, so that naming the type does not import openvino."""
    import openvino

    return openvino.Core()


def first_line(error: Exception) -> str:
    """What an error of OpenVINO says, without where in its sources."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(_PLACES)]
    return (telling or lines or [type(error).__name__])[0].removeprefix("-- ")


def _reason_against(node: Node, versions: Mapping[str, int]) -> str | None:
    version = versions[node.domain]
    if not same_meaning(node, version):
        return f"it is read under version {node.version}, the rest of the graph under {version}, where it means something else"
    return reason_against(node)


def _question(node: Node, versions: Mapping[str, int]) -> _Question:
    reads = list(dict.fromkeys(value for value in node.inputs if value is not None))
    inputs = [value for value in reads if value.constant is None]
    constants = [value for value in reads if value.constant is not None]
    outputs = [value for value in node.outputs if value.name or value.use_count]
    model = to_onnx([node], inputs, constants, outputs, {node.domain: versions[node.domain]})
    made = tuple((element_type(dtype), _sizes(shape)) for dtype, shape in signature_of(outputs))
    return _Question(model, len(inputs) + sum(map(is_large, constants)), made)


def _sizes(shape: Shape) -> tuple[int, ...]:
    return tuple(-1 if isinstance(dim, Expr) else dim for dim in shape)


def _mismatch(model: Any, question: _Question) -> str | None:
    """In which way OpenVINO read a node as something else than it is; `model` is an openvino.Model."""
    if len(model.inputs) != question.inputs:
        return f"it would read {len(model.inputs)} of its {question.inputs} inputs"
    if any(result.input_value(0).get_node().get_type_name() == "Parameter" for result in model.get_results()):
        return "it only gives out what it reads"
    for output, (name, shape) in zip(model.outputs, question.outputs, strict=True):
        found, dims = output.get_element_type().get_type_name(), output.get_partial_shape()
        sizes = () if dims.rank.is_dynamic else tuple(dim.get_length() if dim.is_static else -1 for dim in dims)
        if found != name or not (dims.rank.is_dynamic or _agree(sizes, shape)):
            return f"its output would be {found}{list(sizes)}, not {name}{list(shape)}"
    return None


def _agree(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    return len(left) == len(right) and all(-1 in pair or pair[0] == pair[1] for pair in zip(left, right, strict=True))


def _query(models: Sequence[Any], device: str) -> list[str | None]:
    import openvino

    parameters: list[Any] = []
    results: list[Any] = []
    owners: dict[str, tuple[int, str]] = {}
    for index, model in enumerate(models):
        for operation in model.get_ops():
            operation.friendly_name = f"{index}/{operation.friendly_name}"
            owners[operation.friendly_name] = index, operation.get_type_name()
        parameters.extend(model.get_parameters())
        results.extend(model.get_results())
    supported = core().query_model(openvino.Model(results, parameters, "questions"), device)
    reasons: list[str | None] = [None] * len(models)
    for name, (index, kind) in owners.items():
        if name not in supported:
            reasons[index] = f"OpenVINO has no {kind} for it on {device}"
    return reasons
