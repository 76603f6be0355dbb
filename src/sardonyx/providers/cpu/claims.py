"""Which nodes the CPU provider lowers: each operator's claim says what a node is to compute, or why it cannot be compiled.

A family of kernels registers its operators with what claims a node and what lowers it:

    @dataclasses.dataclass(frozen=True, slots=True)
    class TransposeSpec:
        order: tuple[int, ...]

    def claim_transpose(node: Node) -> TransposeSpec | str: ...

    @lowers("Transpose", claim=claim_transpose)
    def transpose(low: Lowering, group: Group, spec: TransposeSpec) -> None:
        source, result = low.of(group.node.inputs[0]), low.result(group.node.output)
        ...

A claim reads the node once, when the provider is asked for its capabilities, and its specification is handed on to the lowering:
what a claim has found out, nothing finds out again. Attributes and versions are read through the operators' views
(`ops/views/`); the InvalidGraph of a view becomes the reason why the node is not compiled. Specifications hold numbers, shapes
and types, never weights, so that they keep no memory. A family that can fuse element-wise nodes into its epilogue says so with
`joins`, and gets them as `group.tail`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph, ModelLoadCanceled, SardonyxError, located
from sardonyx.forks import without_fork
from sardonyx.ir import Node, TensorType, Value
from sardonyx.provider import Capability
from sardonyx.providers.cpu.fuse import Group, Joins, Member, group_nodes
from sardonyx.providers.cpu.kernels import load_family
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.size_claims import Elements
from sardonyx.providers.expressions import expression_of
from sardonyx.providers.user_kernels import kernel_of
from sardonyx.registration import is_defined_again, is_imported

__all__ = ["ROWS", "Claimed", "NodeClaim", "claim_node", "find_claim", "lower_nodes", "lowers"]

Spec = TypeVar("Spec")
"""What a claim makes of a node: a frozen dataclass of its family."""


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Claimed(Member):
    """A node that can be lowered."""

    lower: Callable[[Lowering, Group], None]
    """Adds the steps of a group that it is the anchor of."""
    joins: Joins
    """Whether a group that it is the anchor of fuses another node into its epilogue."""
    is_counted: bool = False
    """Whether sizes of its results are known only when it has run."""


@dataclasses.dataclass(frozen=True, slots=True)
class NodeClaim(Capability):
    """A node that is claimed as what it does."""

    claimed: Claimed | None = None
    """How it is lowered; None for one that is lowered only once it has been converted to NHWC."""


Claim = Callable[[Node], "Claimed | str"]
"""What a node is to compute, or why it cannot be compiled, in a few words."""

ROWS = "sardonyx.rows"
"""The domain of the claim of custom operators whose expressions fold rows; no node has it."""

_CLAIMS: dict[tuple[str, str], Claim] = {}


def _joins_nothing(group: Group, spec: object, member: Member, value: Value) -> bool:
    return False


def _counts_nothing(spec: object) -> bool:
    return False


def lowers(
    *op_types: str,
    claim: Callable[[Node], Spec | str],
    joins: Callable[[Group, Spec, Member, Value], bool] = _joins_nothing,
    domain: str = "",
    inputs: int = 1,
    counts: Callable[[Spec], bool] = _counts_nothing,
) -> Callable[[Callable[[Lowering, Group, Spec], None]], Callable[[Lowering, Group, Spec], None]]:
    """Register the decorated function, which adds the steps of a group, at every version whose meaning it knows.

    Args:
        op_types: the operators.
        claim: what a node is to compute, or why it cannot be compiled. It is asked only about nodes whose first `inputs` inputs are
            there, and whose inputs and outputs are all tensors of known type and rank. InvalidGraph that it raises is a reason too.
        joins: whether a group fuses another node into its epilogue.
        domain: the operators' domain.
        inputs: how many inputs no node of them may leave out.
        counts: whether sizes of its results are known only when it has run.
    """

    def register(lower: Callable[[Lowering, Group, Spec], None]) -> Callable[[Lowering, Group, Spec], None]:
        def claimed(node: Node) -> Claimed | str:
            return _claimed(node, inputs, claim, lower, joins, counts)

        claimed.__module__, claimed.__qualname__ = lower.__module__, lower.__qualname__
        for op_type in op_types:
            known = _CLAIMS.get((domain, op_type))
            if known is not None and not is_defined_again(known, claimed):
                raise ValueError(f"two lowerings of {domain or 'ai.onnx'}.{op_type}")
            _CLAIMS[domain, op_type] = claimed
        return lower

    return register


def _claimed(
    node: Node,
    inputs: int,
    claim: Callable[[Node], Spec | str],
    lower: Callable[[Lowering, Group, Spec], None],
    joins: Callable[[Group, Spec, Member, Value], bool],
    counts: Callable[[Spec], bool],
) -> Claimed | str:
    try:
        spec = _problem_of(node, inputs) or claim(node)
    except InvalidGraph as error:
        return str(error).removeprefix(f"{node.place}: ")
    if isinstance(spec, str):
        return spec
    return Claimed(
        node,
        spec,
        lambda low, group: lower(low, group, spec),
        lambda group, member, value: joins(group, spec, member, value),
        counts(spec),
    )


def find_claim(domain: str, op_type: str) -> Claim | None:
    """Return the function that claims nodes of the operator, or None; its family is imported where it is not yet."""
    found = _CLAIMS.get((domain, op_type))
    if (found is None or not is_imported(found)) and load_family(domain, op_type):
        found = _CLAIMS.get((domain, op_type))
    return found


def claim_node(node: Node) -> Claimed | str:
    """Return how a node is lowered, or why it cannot be compiled; a custom operator that is an expression as Add is, or by rows.

    A custom operator with a kernel of its own is lowered by that.
    """
    own = kernel_of(node)
    if own is not None:
        return _claimed(node, own.inputs, own.claim, own.lower, _joins_nothing, _counts_nothing)
    custom = expression_of(node)
    if custom is None:
        claim = find_claim(node.domain, node.op_type)
    else:
        claim = find_claim(ROWS, "Rows") if custom.folds_rows(node) else find_claim("", "Add")
    return f"no compiled kernel for {node.domain or 'ai.onnx'}.{node.op_type}" if claim is None else claim(node)


def _problem_of(node: Node, inputs: int) -> str | None:
    """Return why no claim can be made of a node, whatever its operator."""
    missing = next((index for index in range(inputs) if node.input(index) is None), None)
    if missing is not None:
        return f"input {missing} is left out"
    for what, values in (("input", node.inputs), ("output", node.outputs)):
        for index, value in enumerate(values):
            if value is not None and (found := _unknown(value)) is not None:
                return f"{what} {index}{f' ({value.name})' if value.name else ''} is {found}"
    return None


def _unknown(value: Value) -> str | None:
    if value.type is None or value.dtype is DataType.UNDEFINED:
        return "of a type that is not known"
    if not isinstance(value.type, TensorType):
        return f"no tensor, but {value.type}"
    return "a tensor whose rank is not known" if value.shape is None else None


def lower_nodes(
    low: Lowering, claims: Mapping[Node, Claimed], sizes: Mapping[Node, tuple[Elements, ...]], outputs: Iterable[Value]
) -> None:
    """Add the steps of nodes, which `claims` has in topological order, and of those that make sizes; `outputs` are needed whole."""
    if sizes:
        with without_fork():
            from sardonyx.providers.cpu.kernels.constant import store_sizes  # which only models that read shapes need
    for node, elements in sizes.items():
        store_sizes(low, node, elements)
    low.specs.update((node, claimed.spec) for node, claimed in claims.items())
    kept = set(outputs)

    def joins(group: Group, member: Member, value: Value) -> bool:
        return value not in kept and claims[group.node].joins(group, member, value)

    for group in group_nodes(list(claims.values()), joins):
        check_cancelled()
        _lower_group(low, claims[group.node], group)
        low.release_packed(group.node.inputs)


def _lower_group(low: Lowering, claimed: Claimed, group: Group) -> None:
    """Add a group's steps; what is wrong with it is said of its node. The end of a load is no fault of a node."""
    try:
        claimed.lower(low, group)
    except ModelLoadCanceled:
        raise
    except SardonyxError as error:
        raise located(error, group.node.place) from error
