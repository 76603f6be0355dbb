"""Kernels of the CPU provider that are written outside the package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sardonyx import InferenceSession, SessionOptions, op
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.errors import Fail, InvalidArgument, SardonyxError
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Node
from sardonyx.ir.text import parse_model
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.user_kernels import CpuKernel, UserKernel

GRAPH = "(x: float[n]) -> (y: float[n]) {\na = Neg(x)\nb = mine.Scale(a)\ny = Neg(b)\n}"
X = np.float32([1, -2, 3])


def _writer(factor: float) -> Callable[[Module, str], None]:
    def write(module: Module, symbol: str) -> None:
        with module.kernel(symbol) as b, b.loop(b.begin, b.end) as i:
            b.buffer(1, F32).store(b.buffer(0, F32).load(i) * factor, i)

    return write


def _write_by(mistake: str) -> Callable[[Module, str], None]:
    def write(module: Module, symbol: str) -> None:
        with module.kernel(symbol) as b, b.loop(b.begin, b.end) as i:
            x, y = b.buffer(0, F32), b.buffer(1, F32)
            if mistake == "range":
                range(b.param(0))  # type: ignore[call-overload]
            elif mistake == "exp":
                np.exp(x.load(i))  # type: ignore[call-overload]
            elif mistake == "if":
                y.store(1 if x.load(i) > 0 else 2, i)
            else:
                y.store(i, i)

    return write


def _lower(factor: float) -> Callable[[Lowering, Group, object], None]:
    return _lowering(_writer(factor))


def _lower_elsewhere(low: Lowering, group: Group, spec: object) -> None:
    low.result(group.result)
    _lowering(_writer(1), low.temporary(DataType.FLOAT, (8,)))(low, group, spec)


def _lowering(write: Callable[[Module, str], None], result: Buffer | None = None) -> Callable[[Lowering, Group, object], None]:
    def lower(low: Lowering, group: Group, spec: object) -> None:
        source, made = low.of(group.node.inputs[0]), low.result(group.result) if result is None else result

        def plan(sizes: Sizes) -> tuple[list[int], int]:
            return [], sizes.product(source.shape)

        low.step(group, low.kernel(UserKernel("scale", write)), [source, made], writes=[1], plan=plan)

    return lower


def _session(kernel: CpuKernel, providers: list[str] | None = None) -> InferenceSession:
    @op("mine", "Scale", shape=lambda x: x, cpu_kernel=kernel)
    def scale(x: np.ndarray) -> np.ndarray:
        return x * np.float32(100)

    options = SessionOptions()
    options.add_operator(scale)
    return InferenceSession(
        to_bytes(parse_model(f"ir_version 10\nopset 21, mine 1\ngraph main{GRAPH}")), options, providers=providers
    )


def _claim(node: Node) -> object:
    return ()


def test_a_kernel_runs_in_one_partition_with_its_neighbours() -> None:
    """The CPU provider has all nodes, and the Python function is not called."""
    session = _session(CpuKernel(_claim, _lower(2)))
    assert {place.partition for place in session.explain()} == {"CPUExecutionProvider_main_0"}
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * 2)


def test_what_a_claim_leaves_the_function_computes() -> None:
    """The reason is in the explanation."""
    session = _session(CpuKernel(lambda node: "not today", _lower(2)))
    place = next(place for place in session.explain() if place.op_type == "mine.Scale")
    assert (place.provider, place.declined["CPUExecutionProvider"]) == ("CustomOperatorsLeft", "not today")
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * 100)


def test_a_session_without_the_cpu_provider_calls_the_function() -> None:
    """No kernel is compiled for it."""
    session = _session(CpuKernel(_claim, _lower(2)), ["ReferenceExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * 100)


def test_an_edited_kernel_of_the_same_name_is_another() -> None:
    """Its symbol ends with a digest of what is written."""
    assert [_session(CpuKernel(_claim, _lower(factor))).run(None, {"x": X})[0][0] for factor in (3, 4)] == [3, 4]
    target = host_target()
    first, again, other = (UserKernel("scale", _writer(factor)).symbol(target) for factor in (3, 3, 4))
    assert (first == again, first == other) == (True, False)


def _raise(*_: object) -> None:
    raise ZeroDivisionError("by zero")


def _lower_broken(low: Lowering, group: Group, spec: object) -> None:
    low.kernel(UserKernel("scale", _raise))


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (CpuKernel(_raise, _lower(2)), "the claim of its CPU kernel failed: ZeroDivisionError: by zero"),
        (CpuKernel(_claim, _raise), "the lowering of its CPU kernel failed: ZeroDivisionError: by zero"),
        (CpuKernel(_claim, _lower_broken), "what writes the kernel scale failed: ZeroDivisionError: by zero"),
        (
            CpuKernel(lambda node: False, _lower(2)),
            "the claim of its CPU kernel returned False; return what `lower` needs, or a text",
        ),
        (CpuKernel(_claim, lambda *_: None), "no step of the lowering of its CPU kernel writes 'b'; give `low.step` the buffer"),
        (CpuKernel(_claim, _lower_elsewhere), "no step of the lowering of its CPU kernel writes 'b'"),
        (CpuKernel(_claim, _lowering(lambda module, symbol: None)), "what writes the kernel scale wrote none: `with module.kernel"),
        (CpuKernel(_claim, _lowering(_write_by("range"))), "interpreted as an integer; Python runs when the kernel is compiled"),
        (CpuKernel(_claim, _lowering(_write_by("exp"))), "no callable exp method; Python runs when the kernel is compiled"),
        (CpuKernel(_claim, _lowering(_write_by("if"))), "a Register has no truth value while a kernel is written"),
        (CpuKernel(_claim, _lowering(_write_by("store"))), "a Register of signed i64 cannot be stored as float: convert by"),
    ],
)
def test_an_error_of_a_users_function_says_which_it_was(kernel: CpuKernel, text: str) -> None:
    """Whichever of the three functions fails, the error is a Fail with its text."""
    with pytest.raises(SardonyxError, match=text):
        _session(kernel)


def test_a_kernel_needs_a_name_that_a_symbol_can_have() -> None:
    """Other names are refused when it is made."""
    with pytest.raises(Fail, match="expected an identifier"):
        UserKernel("running sum", _writer(1))


def test_an_operator_takes_no_other_kernels() -> None:
    """A function that writes one is not enough."""
    with pytest.raises(InvalidArgument, match="expected a sardonyx.cpu_kernels.CpuKernel"):
        op("mine", "Scale", cpu_kernel=_lower(2))(lambda x: x)  # type: ignore[arg-type]
