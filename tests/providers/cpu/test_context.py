"""CPU programs in a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import graph

from sardonyx import errors
from sardonyx.codegen.target import Target, host_target
from sardonyx.formats.program_file import read_program, write_program
from sardonyx.provider import GraphView, Partition, Program
from sardonyx.providers.cpu.context import load_program, save_program
from sardonyx.providers.cpu.provider import create
from sardonyx.trace import observe

_PRODUCT = """graph(x: float[n, 96]) -> (y: float[n, 64]) {
    w: float[96, 64] = ... 1
    b: float[64] = ... 2
    m: float[n, 64] = MatMul(x, w)
    a: float[n, 64] = Add(m, b)
    y = Relu(a)
}"""
_SHAPES = """graph(x: float[n, 4]) -> (y: float[2*n, 2], k: int64[2]) {
    zero: int64[1] = [0]
    two: int64[1] = [2]
    minus: int64[1] = [-1]
    s: int64[2] = Shape(x)
    first: int64[1] = Gather(s, zero)
    rows: int64[1] = Mul(first, two)
    k = Concat(rows, minus) {axis = 0}
    r: float[n, 4] = Relu(x)
    y = Reshape(r, k)
}"""


@pytest.fixture(scope="module")
def target() -> Target:
    """This processor."""
    return host_target()


def _partition(body: str) -> Partition:
    held = graph(body)
    nodes = tuple(held)
    units = tuple(create({}).capabilities(GraphView(held, nodes, after_layout=True)).capabilities)
    assert sum(len(unit.nodes) for unit in units) == len(nodes)
    return Partition("part_0", held, nodes, units, tuple(held.inputs), tuple(held.initializers.values()), held.outputs)


def _run(program: Program, *inputs: Any) -> list[Any]:
    bound = program.bind(tuple(array.shape for array in inputs))
    outputs = [np.empty(spec.shape, spec.dtype.numpy) for spec in bound.outputs if spec is not None]
    scratch = np.empty(bound.scratch_bytes, np.uint8) if bound.scratch_bytes else None
    return list(program.run(bound, inputs, outputs, scratch))


@pytest.mark.parametrize("body", [_PRODUCT, _SHAPES])
def test_a_loaded_program_computes_the_same(body: str, target: Target) -> None:
    """Bit for bit, for sizes that neither was bound to before; size values are among what it makes."""
    part = _partition(body)
    provider = create({"intra_op_num_threads": "1"})
    program = provider.compile(part, lambda inner: pytest.fail(f"{inner!r} is no body"))
    again = load_program(target, 1, "part_0", memoryview(save_program(target, 1, part)))
    for n in (1, 7):
        x = np.random.default_rng(n).standard_normal((n, part.inputs[0].shape[1]), dtype=np.float32)  # type: ignore[index]  # known rank
        for left, right in zip(_run(program, x), _run(again, x), strict=True):
            np.testing.assert_array_equal(left, right)


def test_weights_are_kept_packed_and_not_as_they_are(target: Target) -> None:
    """The matrix is there once; the bias, which a kernel reads, and small constants are there too."""
    file = read_program(memoryview(save_program(target, 1, _partition(_PRODUCT))))
    assert file.absent == {0}
    assert len(file.arrays) == 3


def test_loading_compiles_and_packs_nothing(target: Target) -> None:
    """No object is looked for outside of the file."""
    content = save_program(target, 1, _partition(_PRODUCT))
    seen: list[str] = []
    with observe(lambda event: seen.append(event.name)):
        load_program(target, 1, "part_0", memoryview(content))
    assert not [name for name in seen if name.startswith(("disk_cache", "codegen"))]


@pytest.mark.parametrize("what", ["edition", "target"])
def test_a_program_for_other_sources_or_processors_is_an_error(what: str, target: Target) -> None:
    """The message says what it was made for, and what to do."""
    file = read_program(memoryview(save_program(target, 1, _partition(_PRODUCT))))
    objects = {name: bytes(content) for name, content in file.objects.items()}
    content = write_program({**file.about, what: "older"}, file.graph, file.arrays, sorted(file.absent), objects)
    with pytest.raises(errors.EPFail, match=f"part_0 was compiled for the {what} older, this is .*; make the context anew"):
        load_program(target, 1, "part_0", memoryview(content))


def test_a_program_that_lacks_an_object_is_an_error(target: Target) -> None:
    """Nothing is compiled in its place."""
    file = read_program(memoryview(save_program(target, 1, _partition(_SHAPES))))
    content = write_program(file.about, file.graph, file.arrays, sorted(file.absent))
    with pytest.raises(errors.EPFail, match="lacks the object"):
        load_program(target, 1, "part_0", memoryview(content))
