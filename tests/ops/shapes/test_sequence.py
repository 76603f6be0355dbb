"""Facts about sequences and optionals."""

from __future__ import annotations

from typing import Any

from support.infer_op import UNKNOWN_DIM, A, B, floats, infer_op, infer_shape, ints, plain, scalar

from sardonyx.dtypes import DataType
from sardonyx.ir import OptionalType, SequenceType, TensorType
from sardonyx.ops.fact import Fact, tensor

FLOAT = DataType.FLOAT


def sequence(*shape: object) -> Fact:
    return Fact(SequenceType(TensorType(FLOAT, shape)))  # type: ignore[arg-type]  # dimensions by position


def test_construction_keeps_what_the_elements_share() -> None:
    """Sizes in which the elements differ are unknown."""
    (fact,) = infer_op("SequenceConstruct", floats(A, 3), floats(A, 4))
    assert isinstance(fact.type, SequenceType)
    assert plain(Fact(fact.type.element)) == (A, UNKNOWN_DIM)


def test_empty_sequence_has_a_type() -> None:
    """The attribute gives the element type."""
    assert infer_op("SequenceEmpty", dtype=7)[0].type == SequenceType(TensorType(DataType.INT64))


def test_elements_and_length() -> None:
    """SequenceAt gives an element, SequenceLength a scalar."""
    assert infer_shape("SequenceAt", sequence(A, 3), scalar(0)) == (A, 3)
    assert infer_shape("SequenceLength", sequence(A)) == ()


def test_insertion_and_erasure() -> None:
    """An inserted tensor may have another shape; erasing changes no type."""
    (fact,) = infer_op("SequenceInsert", sequence(A, 3), floats(B, 3))
    assert isinstance(fact.type, SequenceType)
    assert plain(Fact(fact.type.element)) == (UNKNOWN_DIM, 3)
    assert infer_op("SequenceErase", sequence(A))[0].type == sequence(A).type


def test_concatenation() -> None:
    """The axis is unknown, as the length is, or a new axis is put."""
    assert infer_shape("ConcatFromSequence", sequence(A, 3), axis=0) == (UNKNOWN_DIM, 3)
    assert infer_shape("ConcatFromSequence", sequence(A, 3), axis=-1, new_axis=1) == (A, 3, UNKNOWN_DIM)


def test_splitting() -> None:
    """Parts of one length are known; without lengths they are slices, with or without the axis."""

    def part(*inputs: Fact, **attributes: Any) -> object:
        (fact,) = infer_op("SplitToSequence", *inputs, **attributes)
        assert isinstance(fact.type, SequenceType)
        return plain(Fact(fact.type.element))

    assert part(floats(6, A), scalar(2)) == (2, A)
    assert part(floats(6, A), ints(1, 5)) == (UNKNOWN_DIM, A)
    assert part(floats(6, A)) == (1, A)
    assert part(floats(6, A), keepdims=0) == (A,)


def test_optionals() -> None:
    """Optional wraps a type, OptionalGetElement unwraps it, and a plain value passes."""
    (wrapped,) = infer_op("Optional", floats(A))
    assert wrapped.type == OptionalType(TensorType(FLOAT, (A,)))
    assert infer_op("OptionalGetElement", wrapped)[0].type == TensorType(FLOAT, (A,))
    assert infer_op("OptionalGetElement", floats(A))[0].shape == (A,)
    assert infer_op("OptionalHasElement", wrapped)[0] == tensor(DataType.BOOL, ())
    assert infer_op("Optional", type=TensorType(FLOAT))[0].type == OptionalType(TensorType(FLOAT))
