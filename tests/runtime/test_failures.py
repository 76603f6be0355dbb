"""What a provider's program does wrong names the provider."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from support.providers import DeviceMemory

from sardonyx import errors
from sardonyx.config import LIMITS, Limits
from sardonyx.dtypes import DataType
from sardonyx.errors import EPFail, Fail, InvalidArgument, SardonyxError, blamed
from sardonyx.ir import TensorType
from sardonyx.ir.shape import symbol
from sardonyx.provider import HOST, Bound, TensorSpec
from sardonyx.runtime import failures
from sardonyx.runtime.failures import blame, check_bound, check_copy, check_values
from sardonyx.runtime.plan import CopyStep, ProgramStep


class _Program:
    def __init__(self, makes_outputs: bool) -> None:
        self.makes_outputs = makes_outputs


def _step(*types: TensorType | None, makes: bool = False) -> ProgramStep:
    program: Any = _Program(makes)
    return ProgramStep(program, "part_0", "Toy", HOST, (), tuple(range(len(types))), (), types)


FLOATS = TensorType(DataType.FLOAT, (symbol("n"), 4))
FOUR = TensorSpec(DataType.FLOAT, (2, 4))


def test_what_is_no_error_of_ours_becomes_one() -> None:
    """With the provider, what it was doing, and what it raised as the cause."""
    cause = ValueError("no")
    with pytest.raises(EPFail, match="Toy failed to run its part: ValueError: no") as caught:
        blame(cause, _step(), "run its part")
    assert (caught.value.provider, caught.value.__cause__) == ("Toy", cause)


@pytest.mark.parametrize("error", [EPFail("broken"), errors.NotImplemented("not here")])
def test_errors_of_ours_keep_their_class(error: SardonyxError) -> None:
    """They are told with the provider's name."""
    with pytest.raises(type(error), match=f"Toy failed to run its part: {error}") as caught:
        blame(error, _step(), "run its part")
    assert caught.value.provider == "Toy"


@pytest.mark.parametrize("error", [InvalidArgument("wrong"), Fail("terminated"), blamed(EPFail("broken"), "Inner")])
def test_what_is_not_its_fault_passes_as_it_is(error: SardonyxError) -> None:
    """What a user did wrong, or ended, is not blamed on a provider, and what another did not on this one."""
    blame(error, _step(), "run its part")
    assert error.provider in ("", "Inner")


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (None, "Toy binds partition part_0 to None; it must return Bound"),
        (Bound(()), "Toy gives 0 sizes for partition part_0, expected 1"),
        (Bound((FOUR,), scratch_bytes=-1), "Toy asks for -1 bytes of scratch memory"),
        (Bound((FOUR,), scratch_bytes=LIMITS.tensor_bytes + 1), "Toy asks for .* bytes of scratch memory"),
        (Bound((None,)), "Toy gives output 0 of partition part_0 no size, which only a program that makes its outputs may do"),
        (Bound((TensorSpec(DataType.FLOAT, (2, -4)),)), r"the shape \(2, -4\); dimensions are integers of at least 0"),
        (
            Bound((TensorSpec(DataType.DOUBLE, (2, 4)),)),
            r"the size double\[2, 4\], but the graph has float of shape \(n, 4\) there",
        ),
        (Bound((TensorSpec(DataType.FLOAT, (2, 5)),)), r"the size float\[2, 5\], but the graph has float of shape \(n, 4\) there"),
        (Bound((TensorSpec(DataType.FLOAT, (4,)),)), r"the size float\[4\], but the graph has float of shape \(n, 4\) there"),
    ],
)
def test_sizes_that_an_output_cannot_have_are_refused(bound: Any, message: str) -> None:
    """With the provider, the partition, and what the graph says."""
    with pytest.raises(EPFail, match=message) as caught:
        check_bound(bound, _step(FLOATS))
    assert caught.value.provider == "Toy"


def test_a_size_beyond_the_limit_may_be_asked_for_by_what_is_fed() -> None:
    """The provider is named, so that a session may go on without it."""
    with pytest.raises(InvalidArgument, match=r"Toy gives output 0 .*beyond the limit of .*SARDONYX_MAX_TENSOR_BYTES") as caught:
        check_bound(Bound((TensorSpec(DataType.FLOAT, (1 << 60, 4)),)), _step(FLOATS))
    assert caught.value.provider == "Toy"


@pytest.mark.parametrize(("elements", "fits"), [(4, True), (8, False)])
def test_an_output_may_take_the_limit_but_no_more(monkeypatch: pytest.MonkeyPatch, elements: int, fits: bool) -> None:
    """Floats take 4 bytes each."""
    monkeypatch.setattr(failures, "LIMITS", Limits(tensor_bytes=16))
    refused = contextlib.nullcontext() if fits else pytest.raises(InvalidArgument, match="beyond the limit of 16 bytes")
    with refused:
        check_bound(Bound((TensorSpec(DataType.FLOAT, (elements // 4, 4)),)), _step(FLOATS))


def test_sizes_that_fit_pass() -> None:
    """Where the graph says nothing anything fits; a program that makes its outputs need give none."""
    check_bound(Bound((FOUR,), 64), _step(FLOATS))
    check_bound(Bound((FOUR, None)), _step(None, None))
    check_bound(Bound((None,)), _step(FLOATS, makes=True))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (None, "Toy returned None for partition part_0; it must return a sequence of values"),
        ([1, 2, 3], "Toy returned 3 values for partition part_0, expected 2"),
        ([np.zeros((2, 4), np.float32), None], "Toy returned another tensor for output 0 of partition part_0"),
    ],
)
def test_what_is_given_must_be_returned(values: Any, message: str) -> None:
    """A tensor that the program made instead may lie in memory that is used again."""
    with pytest.raises(EPFail, match=message):
        check_values(values, [np.zeros((2, 4), np.float32), None], _step(FLOATS, None))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "Toy returned None for output 0 of partition part_0, but the graph has float of shape"),
        ([1.0], r"Toy returned \[1.0\] for output 0"),
        (np.zeros((2, 5), np.float32), r"Toy returned float32\[2, 5\] for output 0 of .*, but the graph has float of shape"),
        (np.zeros(2), r"Toy returned float64\[2\] for output 0 of partition part_0, but the graph has float of shape"),
    ],
)
def test_what_a_program_makes_must_be_of_the_graphs_type(value: Any, message: str) -> None:
    """Others read its memory as that."""
    with pytest.raises(EPFail, match=message):
        check_values([value], (), _step(FLOATS, makes=True))


def test_values_that_fit_pass() -> None:
    """The tensors that were given, arrays of the type, texts of any kind, and anything where the graph knows no tensor."""
    given = np.zeros((2, 4), np.float32)
    check_values([given], [given], _step(FLOATS))
    check_values([np.zeros((4, 2), np.float32).T], [None], _step(FLOATS, makes=True))
    check_values([np.array(["a"])], (), _step(TensorType(DataType.STRING), makes=True))
    check_values([["a", "list"]], (), _step(None, makes=True))


@pytest.mark.parametrize("value", [None, np.zeros((3, 4), np.float32), np.zeros((2, 4))])
def test_what_comes_from_a_device_must_be_the_tensor_there(value: Any) -> None:
    """An array of its shape and type."""
    step = CopyStep(0, 1, DeviceMemory(), HOST, "Toy", (), FLOATS)
    check_copy(np.zeros((2, 4), np.float32), (2, 4), step)
    with pytest.raises(EPFail, match=r"Toy copied a tensor of shape \(2, 4\) from pretended:0 to .*, but the graph has float of"):
        check_copy(value, (2, 4), step)


class _Tensor:
    def __init__(self, shape: object) -> None:
        self.shape = shape


def test_a_tensor_that_a_program_makes_on_a_device_has_a_shape_of_the_graph() -> None:
    """What it shows as `shape` is checked, since the program of a neighbour would be blamed for it."""
    program: Any = _Program(makes_outputs=True)
    step = ProgramStep(program, "part_0", "Toy", DeviceMemory(), (), (0,), (), (FLOATS,))
    with pytest.raises(
        EPFail, match=r"Toy returned a tensor of shape \(2, 5\) for output 0 of partition part_0, but the graph has"
    ):
        check_values([_Tensor((2, 5))], (), step)
    with pytest.raises(EPFail, match=r"Toy returned a tensor of shape 'wide' for output 0"):
        check_values([_Tensor("wide")], (), step)
    for fitting in (_Tensor((2, 4)), object()):
        check_values([fitting], (), step)
