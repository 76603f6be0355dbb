"""Partitions run by OpenVINO."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support.cancelling import after, ended_by, handler, interrupt
from support.models import graph

from sardonyx import errors
from sardonyx.cancellation import Flag
from sardonyx.dtypes import Array, DataType
from sardonyx.provider import Capability, Partition, TensorSpec
from sardonyx.providers.openvino.program import OpenVinoProgram
from sardonyx.providers.openvino.provider import create

pytest.importorskip("openvino")


def compiled(body: str) -> OpenVinoProgram:
    """The program of a whole graph."""
    held = graph(body)
    constants = tuple(held.initializers.values())
    units = tuple(Capability((node,)) for node in held)
    part = Partition("part_0", held, tuple(held), units, tuple(held.inputs), constants, held.outputs)
    return create({"num_of_threads": "1"}).compile(part, lambda inner: pytest.fail(f"{inner!r} is no body"))


def run(program: OpenVinoProgram, *inputs: Array) -> list[Any]:
    """Bind and run as the runtime does."""
    bound = program.bind(tuple(array.shape for array in inputs))
    outputs = [None if spec is None else np.full(spec.shape, -1, spec.dtype.numpy) for spec in bound.outputs]
    return list(program.run(bound, inputs, outputs, None))


def test_outputs_are_written_where_the_runtime_wants_them() -> None:
    """Sizes follow from the inputs' symbols, and the result is the very array that was given."""
    program = compiled("graph(x: float[n, 3]) -> (y: float[3, n]) { a = Transpose(x)\ny = Relu(a) }")
    bound = program.bind(((4, 3),))
    assert bound.outputs == (TensorSpec(DataType.FLOAT, (3, 4)),)
    x, y = np.arange(-6, 6, dtype=np.float32).reshape(4, 3), np.zeros((3, 4), np.float32)
    (result,) = program.run(bound, [x], [y], None)
    assert result is y
    assert np.array_equal(y, np.maximum(x.T, 0))


def test_sizes_that_only_the_run_shows_are_openvinos() -> None:
    """The program makes its outputs then; runs share no memory."""
    program = compiled("graph(x: float[6], s: int64[2]) -> (y: float[p, q]) { y = Reshape(x, s) }")
    assert program.makes_outputs
    x = np.arange(6, dtype=np.float32)
    (first,) = run(program, x, np.array([2, 3]))
    (second,) = run(program, x + 1, np.array([3, 2]))
    assert first.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert second.shape == (3, 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool"])
def test_other_types_pass(dtype: str) -> None:
    """Values are those that went in."""
    program = compiled(f"graph(x: {dtype}[n, 2]) -> (y: {dtype}[2, n]) {{ y = Transpose(x) }}")
    x = np.array([[0, 1], [1, 0], [1, 1]]).astype(DataType[dtype.upper()].numpy)
    (result,) = run(program, x)
    assert result.dtype == x.dtype
    assert np.array_equal(result, x.T)


def test_a_scalar_passes() -> None:
    """A tensor without dimensions has one element."""
    (result,) = run(compiled("graph(x: float[]) -> (y: float[]) { y = Neg(x) }"), np.float32(2)[...])
    assert result.shape == ()
    assert result == -2


def test_what_openvino_refuses_names_the_partition() -> None:
    """Its error becomes an EPFail."""
    program = compiled("graph(x: float[2, 3]) -> (y: float[2, 3]) { y = Relu(x) }")
    with pytest.raises(errors.EPFail, match="OpenVINO failed to run partition part_0: "):
        program.run(program.bind(((2, 3),)), [np.zeros((4, 5), np.float32)], [np.zeros((2, 3), np.float32)], None)


def test_many_threads_may_run_it() -> None:
    """Each has a request of its own."""
    program = compiled("graph(x: float[n]) -> (y: float[n]) { a = Exp(x)\ny = Neg(a) }")

    def right(seed: int) -> bool:
        x = np.random.default_rng(seed).standard_normal(100 + seed, dtype=np.float32)
        return all(np.allclose(run(program, x)[0], -np.exp(x), rtol=1e-5) for _ in range(20))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, range(4)))


def test_inputs_that_are_not_dense_live_as_long_as_the_run() -> None:
    """OpenVINO only refers to the dense copies that are made of them."""
    program = compiled("graph(x: float[64, 32, 16]) -> (y: float[64, 512]) {\nk: int64[2] = [64, 512]\ny = Reshape(x, k)\n}")
    for seed in range(5):
        x = np.random.default_rng(seed).standard_normal((16, 32, 64), np.float32).T
        (y,) = run(program, x)
        assert np.array_equal(y, x.reshape(64, 512))


def test_outputs_of_other_sizes_than_expected_are_an_error() -> None:
    """What OpenVINO leaves of a tensor is not taken for all of it."""
    program = compiled("graph(x: float[n, 3]) -> (y: float[n, 3]) { y = Relu(x) }")
    with pytest.raises(errors.EPFail, match=r"OpenVINO gave .* for the outputs \[\(9, 3\)\] of partition part_0"):
        program.run(program.bind(((2, 3),)), [np.zeros((2, 3), np.float32)], [np.zeros((9, 3), np.float32)], None)


@pytest.mark.parametrize("ends", ["flag", "interrupt"])
def test_an_inference_is_ended_in_its_middle(ends: str) -> None:
    """OpenVINO stops between two of its kernels; the program's next run is right."""
    lines = "h0 = MatMul(x, w)\n" + "".join(f"h{number} = MatMul(h{number - 1}, w)\n" for number in range(1, 400))
    program = compiled(f"graph(x: float[n, 512], w: float[512, 512]) -> (y: float[n, 512]) {{\n{lines}y = Relu(h399)\n}}")
    w, flag = np.eye(512, dtype=np.float32), Flag()
    x = np.ones((1 << 14, 512), np.float32)
    with ended_by(flag), handler(signal.default_int_handler):
        act, error = (interrupt, KeyboardInterrupt) if ends == "interrupt" else (lambda: flag.set(True), errors.RunTerminated)
        with after(0.5, act), pytest.raises(error):
            run(program, x, w)
    assert (run(program, x[:3], w)[0] == 1).all()
