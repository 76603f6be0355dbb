"""Support vector machines of ai.onnx.ml, of float32 rows, with integer labels and without a post transform.

What else a model asks for, optimization writes around them (`optimize/rules/ml/expand_svm_scores.py`).
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.coupling import CouplingParams, coupling_scratch, write_coupling
from sardonyx.codegen.kernels.support_vectors import (
    MachineParams,
    Outcome,
    pack_panels,
    panel_table,
    scratch_elements,
    write_machine,
)
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.ops.schema import place_of
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import expression_symbol
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

_ML = "ai.onnx.ml"
_KERNEL_TYPES = ("LINEAR", "POLY", "RBF", "SIGMOID")
_MOST_CLASSES = 256
"""Classes beyond which the sums of all pairs would take more memory than the vectors."""
_COUPLED_ROWS = 64


@dataclasses.dataclass(frozen=True, slots=True)
class MachineSpec:
    """A support vector machine."""

    counts: tuple[int, ...]
    """How many vectors each class has; a regressor has one class."""
    features: int
    """How many features a vector has."""
    kernel_type: str
    """LINEAR, POLY, RBF or SIGMOID."""
    numbers: tuple[float, float, float]
    """gamma, the offset and the degree."""
    outcome: Outcome
    """What is made of the sums."""
    vectors: tuple[float, ...]
    """The support vectors in a row; like what follows the tuple of an attribute itself, not a copy."""
    coefficients: tuple[float, ...]
    """The weights of the vectors, one row for each class but one."""
    rho: tuple[float, ...]
    """What is added to each decision."""
    labels: tuple[int, ...] = ()
    """The labels of a classifier."""
    platt: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    """By what decisions become probabilities, where they do: factors and offsets."""

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.counts)


def _machine(node: Node, counts: tuple[int, ...], outcome: Outcome) -> MachineSpec | str:
    """Return the specification of a node with so many vectors in each class, or why it is the reference provider's."""
    vectors, kind = node.numbers("support_vectors", ()), node.text("kernel_type", "LINEAR")
    x, total = given(node.inputs[0]), sum(counts)
    if x.dtype is not DataType.FLOAT or len(shape_of(x)) != 2:
        return f"data of type {x.dtype} and shape {x.shape}, expected rows of float32"
    if kind not in _KERNEL_TYPES or not vectors or len(vectors) % total:
        return f"{len(vectors)} numbers for {total} support vectors, kernel_type={kind}"
    if node.text("post_transform", "NONE") != "NONE":
        return f"post_transform={node.text('post_transform')}"
    features, found = len(vectors) // total, shape_of(x)[1]
    if isinstance(found, int) and found != features:
        return f"{found} features for support vectors of {features}"
    params = node.numbers("kernel_params", ())
    gamma, offset, degree = params[:3] if len(params) >= 3 else (0.0, 0.0, 0.0)
    coefficients, rho = node.numbers("coefficients", ()), node.numbers("rho", ())
    return MachineSpec(counts, features, kind, (gamma, offset, degree), outcome, vectors, coefficients, rho)


def claim_regressor(node: Node) -> MachineSpec | str:
    """Return what an SVMRegressor computes, or why it cannot be compiled."""
    count, coefficients = node.integer("n_supports", 0), node.numbers("coefficients", ())
    if count <= 0 or len(coefficients) != count or not node.numbers("rho", ()):
        return f"{len(coefficients)} coefficients for n_supports={count}"
    return _machine(node, (count,), Outcome.SIGN if node.flag("one_class") else Outcome.SUM)


def claim_classifier(node: Node) -> MachineSpec | str:
    """Return what an SVMClassifier computes, or why it cannot be compiled."""
    counts, labels = node.integers("vectors_per_class", ()), node.integers("classlabels_ints", ())
    C, prob_a, prob_b = len(labels), node.numbers("prob_a", ()), node.numbers("prob_b", ())
    pairs = C * (C - 1) // 2
    if node.texts("classlabels_strings", ()) or not 2 <= C <= _MOST_CLASSES:
        return f"{C} integer labels, expected 2 to {_MOST_CLASSES}"
    if len(counts) != C or min(counts) < 0 or not sum(counts):
        return f"vectors_per_class={counts} for {C} classes"
    if len(node.numbers("coefficients", ())) < (C - 1) * sum(counts) or len(node.numbers("rho", ())) < pairs:
        return "too few coefficients or rho"
    if prob_a and min(len(prob_a), len(prob_b)) < pairs:
        return "too few numbers of probabilities"
    outcome = Outcome.PAIR if C == 2 and not prob_a else Outcome.DECISIONS
    found = _machine(node, counts, outcome)
    return (
        found if isinstance(found, str) else dataclasses.replace(found, labels=labels, platt=(prob_a, prob_b) if prob_a else None)
    )


def _value(kernel_type: str, degree: float) -> ElementExpr:
    """Return the kernel value of argument 0, a dot product or squared distance, and of gamma, the offset and the degree."""
    x, gamma, offset, power = (argument(place, F32) for place in range(4))
    if kernel_type == "RBF":
        return OPERATORS["exp"](-gamma * x)
    if kernel_type == "SIGMOID":
        return OPERATORS["tanh"](gamma * x + offset)
    if kernel_type == "LINEAR":
        return x
    base = gamma * x + offset
    if degree not in _SMALL_DEGREES:
        return OPERATORS["power"](base, power)
    made = base
    for _ in range(int(degree) - 1):
        made = made * base
    return made


_SMALL_DEGREES = (1, 2, 3, 4)


@dataclasses.dataclass(frozen=True, slots=True)
class MachineKernel:
    """Sums of kernel values, and what is made of them."""

    is_distance: bool
    """Whether kernel values are made of squared distances."""
    value: ElementExpr
    """The kernel value."""
    outcome: Outcome
    """What is made of the sums."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(
            target, "support_vectors", [self.value], "distance" if self.is_distance else "dot", self.outcome.value
        )

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_machine(module, symbol, is_distance=self.is_distance, value=self.value, outcome=self.outcome)


@dataclasses.dataclass(frozen=True, slots=True)
class CouplingKernel:
    """Probabilities of decisions."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"coupled_probabilities_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_coupling(module, symbol)


def _pack_vectors(spec: MachineSpec, lanes: int) -> Array:
    return pack_panels(np.array(spec.vectors, np.float32).reshape(-1, spec.features).T, spec.counts, lanes)


def _pack_weights(spec: MachineSpec, lanes: int) -> Array:
    rows, count = max(spec.classes - 1, 1), sum(spec.counts)
    return pack_panels(np.array(spec.coefficients[: rows * count], np.float32).reshape(rows, count), spec.counts, lanes)


def _floats(low: Lowering, numbers: tuple[float, ...]) -> Buffer:
    return low.constant(np.array(numbers, np.float32))


def _run_machine(low: Lowering, group: Group, spec: MachineSpec, scores: Buffer, labels: list[Buffer]) -> None:
    """Add the step that computes the sums and what is made of them; `labels` are a table of them and the chosen ones."""
    node, target, lanes = group.node, low.target, low.target.lanes(32)
    x, is_distance = low.of(node.inputs[0]), spec.kernel_type == "RBF"
    symbol = low.kernel(MachineKernel(is_distance, _value(spec.kernel_type, spec.numbers[2]), spec.outcome))
    together = 1 if low.threads == 1 else 2 * low.threads
    buffers = [
        x,
        low.packed(_pack_vectors, spec, lanes, of=None),
        low.packed(_pack_weights, spec, lanes, of=None),
        low.constant(panel_table(spec.counts, lanes)),
        _floats(low, spec.rho),
        low.temporary(DataType.DOUBLE, (together, scratch_elements(target, spec.classes))),
        scores,
        *labels,
    ]

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        rows, features = sizes.shape(x.shape)
        if features != spec.features:
            raise InvalidArgument(f"{place_of(node)}: the input has {features} features, the support vectors have {spec.features}")
        params = MachineParams.blocked(target, rows, features, spec.classes, sum(spec.counts), together)
        return [*params.words(), *map(float_word, spec.numbers)], params.tasks()

    low.step(group, symbol, buffers, writes=[6, 5, *([8] if labels else [])], plan=plan, together=together)


@lowers("SVMRegressor", claim=claim_regressor, domain=_ML)
def svm_regressor(low: Lowering, group: Group, spec: MachineSpec) -> None:
    """Lower to one kernel."""
    _run_machine(low, group, spec, low.result(group.result), [])


@lowers("SVMClassifier", claim=claim_classifier, domain=_ML)
def svm_classifier(low: Lowering, group: Group, spec: MachineSpec) -> None:
    """Lower to one kernel, and to another one for probabilities."""
    node = group.node
    labels = low.constant(np.array(spec.labels, np.int64))
    chosen, scores = low.result(node.outputs[0]), low.result(node.outputs[1])
    if spec.platt is None:
        _run_machine(low, group, spec, scores, [labels, chosen])
        return
    pairs = spec.classes * (spec.classes - 1) // 2
    decisions = low.temporary(DataType.FLOAT, (scores.shape[0], pairs))
    _run_machine(low, group, spec, decisions, [labels, chosen])
    _couple(low, group, spec.classes, [decisions, *(_floats(low, numbers) for numbers in spec.platt)], scores)


def _couple(low: Lowering, group: Group, classes: int, given: list[Buffer], scores: Buffer) -> None:
    """Add the step that makes probabilities of `given`: decisions, factors and offsets."""
    together = 1 if low.threads == 1 else 2 * low.threads
    scratch = low.temporary(DataType.FLOAT, (together, coupling_scratch(classes)))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        rows = sizes(scores.shape[0])
        params = CouplingParams(rows, classes, _COUPLED_ROWS, together, coupling_scratch(classes))
        return [*params.words(), float_word(params.error)], params.tasks()

    low.step(group, low.kernel(CouplingKernel()), [*given, scratch, scores], writes=[4, 3], plan=plan, together=together)
