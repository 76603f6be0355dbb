"""CPU programs in a file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.models import graph

from sardonyx import config, errors
from sardonyx.codegen.target import Target, available_levels, host_target
from sardonyx.dtypes import Array
from sardonyx.formats.program_file import read_program, write_program
from sardonyx.ir import Graph, Node, Tensor, Value
from sardonyx.provider import Compatibility, GraphView, Partition, Program
from sardonyx.providers.cpu.context import compatibility_of, describe_target, load_program, save_program
from sardonyx.providers.cpu.kernels import matmul
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
    return host_target(config.isa())


_LOOP = """graph(x: float[n, 4]) -> (y: float[n, 4]) {
    three: int64[] = 3
    go: bool[] = 1
    w: float[4, 4] = ... 1
    u: float[n, 4] = Neg(x)
    y = Loop(three, go, u) {body = graph(i: int64[], c: bool[], a: float[n, 4]) -> (c, e: float[n, 4]) {
        k: float[4] = [1, 2, 3, 4]
        p: float[n, 4] = MatMul(a, w)
        b: float[n, 4] = Add(p, k)
        e = Add(b, x)
    }}
}"""


_VIEW = """graph(x: float[n, 64]) -> (y: float[n, 64]) {
    w: float[4096] = ... 1
    zero: int64[1] = [0]
    s: int64[2] = Shape(x)
    e: int64[1] = Gather(s, zero)
    v: float[n] = Slice(w, zero, e, zero)
    g: float[1] = Gather(v, zero)
    y = Add(x, g)
}"""
_BYTES = """graph(x: float[n, 96]) -> (y: float[n, 64]) {
    w: int8[96, 64] = ... 1
    s: float[64] = ... 2
    b: float[64] = ... 3
    y = com.microsoft.DynamicQuantizeMatMul(x, w, s, _, b)
}"""


def _partition(body: str) -> Partition:
    held = graph(body)
    nodes = tuple(held)
    units = tuple(create({}).capabilities(GraphView(held, nodes, after_layout=True)).capabilities)
    assert sum(len(unit.nodes) for unit in units) == len(nodes)
    return Partition("part_0", held, nodes, units, tuple(held.inputs), tuple(held.initializers.values()), held.outputs)


def _array(value: Value) -> Array:
    assert value.constant is not None
    return value.constant.numpy()


def _context(part: Partition) -> Partition:
    """The partition of the node that stands for `part` in a model."""
    held = Graph("main", [Value(value.name, value.type) for value in part.inputs])
    node = held.append(Node("EPContext", held.inputs, len(part.outputs), domain="com.microsoft", version=1))
    for made, value in zip(node.outputs, part.outputs, strict=True):
        made.type = value.type
        held.add_output(made)
    return Partition("part_0", held, tuple(held), (), tuple(held.inputs), (), held.outputs)


def _run(program: Program, *inputs: Any) -> list[Any]:
    bound = program.bind(tuple(array.shape for array in inputs))
    outputs = [np.empty(spec.shape, spec.dtype.numpy) for spec in bound.outputs if spec is not None]
    scratch = np.empty(bound.scratch_bytes, np.uint8) if bound.scratch_bytes else None
    return list(program.run(bound, inputs, outputs, scratch))


@pytest.mark.parametrize("body", [_PRODUCT, _SHAPES, _LOOP, _VIEW, _BYTES])
def test_a_loaded_program_computes_the_same(body: str, target: Target) -> None:
    """Bit for bit, for sizes that neither was bound to before; size values are among what it makes."""
    part = _partition(body)
    provider = create({"intra_op_num_threads": "1"})
    program = provider.compile(part, lambda inner: pytest.fail(f"{inner!r} is no body"))
    again = load_program(target, 1, _context(part), memoryview(save_program(target, 1, part)))
    for n in (1, 7):
        x = np.random.default_rng(n).standard_normal((n, part.inputs[0].shape[1]), dtype=np.float32)  # type: ignore[index]  # known rank
        for left, right in zip(_run(program, x), _run(again, x), strict=True):
            np.testing.assert_array_equal(left, right)


def test_weights_are_kept_packed_and_not_as_they_are(target: Target) -> None:
    """The matrix is there once; the bias, which a kernel reads, and small constants are there too."""
    file = read_program(memoryview(save_program(target, 1, _partition(_PRODUCT))))
    assert file.absent == {0}
    assert len(file.arrays) == 3


def test_weights_of_bytes_are_kept_packed(target: Target) -> None:
    """Four rows in a word, with the sums of their columns; not as they are in the model."""
    file = read_program(memoryview(save_program(target, 1, _partition(_BYTES))))
    assert file.absent == {0}
    assert file.arrays[-1].dtype == np.int32


def test_a_constant_whose_part_is_read_is_kept(target: Target) -> None:
    """A view of its first elements is read, after the node that made the view."""
    assert not read_program(memoryview(save_program(target, 1, _partition(_VIEW)))).absent


def test_weights_are_not_packed_again_to_be_saved(target: Target) -> None:
    """Those that the program has are kept: the very same bytes are written, also where they are other ones."""
    part = _partition(_PRODUCT)
    provider = create({"intra_op_num_threads": "1"})
    program = provider.compile(part, lambda inner: pytest.fail(f"{inner!r} is no body"))
    assert provider.save(part, program) == save_program(target, 1, part)
    marked = [np.full_like(array, 7) for array in program.packs]
    file = read_program(memoryview(save_program(target, 1, part, marked)))
    assert [(array == 7).all() for array in file.arrays[-len(marked) :]] == [True]


def test_loading_compiles_and_packs_nothing(target: Target) -> None:
    """No object is looked for outside of the file."""
    content = save_program(target, 1, _partition(_PRODUCT))
    seen: list[str] = []
    with observe(lambda event: seen.append(event.name)):
        load_program(target, 1, _context(_partition(_PRODUCT)), memoryview(content))
    assert not [name for name in seen if name.startswith(("disk_cache", "codegen"))]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("edition", "was compiled by the edition older, this is .*; make the context anew"),
        ("LLVM", "was compiled by the LLVM older, this is .*; make the context anew"),
        ("target", "was compiled for older, but this is .*, which lacks some of it; make the context anew"),
    ],
)
def test_a_program_for_other_sources_or_processors_is_an_error(what: str, message: str, target: Target) -> None:
    """The message says what it was made for, and what to do."""
    file = read_program(memoryview(save_program(target, 1, _partition(_PRODUCT))))
    objects = {name: bytes(content) for name, content in file.objects.items()}
    content = write_program({**file.about, what: "older"}, file.graph, file.arrays, sorted(file.absent), objects)
    with pytest.raises(errors.EPFail, match=f"part_0 {message}"):
        load_program(target, 1, _context(_partition(_PRODUCT)), memoryview(content))


def test_constants_of_other_sizes_than_their_values_are_an_error(target: Target) -> None:
    """Kernels would read beyond their ends."""
    file = read_program(memoryview(save_program(target, 1, _partition(_PRODUCT), packed=False)))
    objects = {name: bytes(content) for name, content in file.objects.items()}
    for arrays in ((file.arrays[0][1:], file.arrays[1]), (file.arrays[0].astype(np.float64), file.arrays[1])):
        content = write_program(file.about, file.graph, arrays, (), objects)
        with pytest.raises(errors.EPFail, match=r"has Tensor\(.* as a constant of tensor\(float\)\(96, 64\)"):
            load_program(target, 1, _context(_partition(_PRODUCT)), memoryview(content))


def test_what_is_restored_is_checked_as_it_was_when_it_was_claimed(target: Target) -> None:
    """Constants decide addresses, such as those of an axis that the input has not."""
    part = _partition("graph(x: float[n, 4]) -> (y: float[n, 1]) {\naxes: int64[1] = [1]\ny = ReduceSum(x, axes)\n}")
    file = read_program(memoryview(save_program(target, 1, part)))
    objects = {name: bytes(content) for name, content in file.objects.items()}
    content = memoryview(write_program(file.about, file.graph, [np.array([7], np.int64)], (), objects))
    with pytest.raises(errors.EPFail, match=r"has <ReduceSum.*cannot be run as it is: axes=7 is outside .-2, 1."):
        load_program(target, 1, _context(part), content)


def test_a_program_that_lacks_an_object_is_an_error(target: Target) -> None:
    """Nothing is compiled in its place."""
    file = read_program(memoryview(save_program(target, 1, _partition(_SHAPES))))
    content = write_program(file.about, file.graph, file.arrays, sorted(file.absent))
    with pytest.raises(errors.EPFail, match="lacks the object"):
        load_program(target, 1, _context(_partition(_SHAPES)), memoryview(content))


def test_weights_that_are_left_out_are_packed_when_it_is_loaded(target: Target) -> None:
    """They are in the program as they are in the model, so that they can be found there, and all results are the same."""
    part = _partition(_PRODUCT)
    content = memoryview(save_program(target, 1, part, packed=False))
    file = read_program(content)
    assert not file.absent
    assert [array.shape for array in file.arrays] == [(96, 64), (64,)]
    x = np.random.default_rng(0).standard_normal((5, 96), dtype=np.float32)
    packed = load_program(target, 1, _context(part), memoryview(save_program(target, 1, part)))
    np.testing.assert_array_equal(_run(load_program(target, 1, _context(part), content), x)[0], _run(packed, x)[0])


@pytest.mark.parametrize("packed", [True, False])
def test_widened_weights_are_restored_as_narrow_ones(target: Target, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels of the file are those for narrow weights, also where these are packed anew."""
    monkeypatch.setattr(matmul, "_CACHED_ELEMENTS", 0)
    part = _partition(_PRODUCT)
    weight = part.constants[0]
    weight.constant = Tensor.widened(Tensor.from_array(_array(weight).astype(np.float16)))
    x = np.random.default_rng(0).standard_normal((5, 96), dtype=np.float32)
    expected = create({}).compile(part, lambda inner: pytest.fail(f"{inner!r} is no body"))
    again = load_program(target, 1, _context(part), memoryview(save_program(target, 1, part, packed=packed)))
    np.testing.assert_array_equal(_run(again, x)[0], _run(expected, x)[0])


@pytest.mark.skipif(len(available_levels()) < 2, reason="there is one level only")
def test_a_program_for_a_lower_processor_runs() -> None:
    """It runs the kernels that it was compiled with, and is said to be better compiled anew."""
    part, target, lower = _partition(_PRODUCT), host_target(), host_target(available_levels()[0])
    again = load_program(target, 1, _context(part), memoryview(save_program(lower, 1, part)))
    x = np.random.default_rng(0).standard_normal((5, 96), dtype=np.float32)
    expected = create({}).compile(part, lambda inner: pytest.fail(f"{inner!r} is no body"))
    np.testing.assert_allclose(_run(again, x)[0], _run(expected, x)[0], rtol=1e-4, atol=1e-5)
    assert compatibility_of(target, describe_target(lower)) is Compatibility.EP_SUPPORTED_PREFER_RECOMPILATION
    assert compatibility_of(target, describe_target(target)) is Compatibility.EP_SUPPORTED_OPTIMAL


def test_what_this_processor_does_not_run_is_unsupported(target: Target) -> None:
    """So is what other sources, or another LLVM, compiled; what another program wrote is not judged."""
    own = json.loads(describe_target(target))
    for info in ({**own, "target": "sse9|x|+y"}, {**own, "edition": "older"}, {**own, "LLVM": "0"}, {}, {"target": 3}):
        assert compatibility_of(target, json.dumps(info)) is Compatibility.EP_UNSUPPORTED
    assert compatibility_of(target, "no JSON") is Compatibility.EP_NOT_APPLICABLE


def test_the_program_of_another_partition_is_an_error(target: Target) -> None:
    """Its inputs and outputs are compared with the node's."""
    content = memoryview(save_program(target, 1, _partition(_PRODUCT)))
    with pytest.raises(errors.EPFail, match=r"input 0 is tensor\(float\)\[n, 4\], but tensor\(float\)\[n, 96\] in the program"):
        load_program(target, 1, _context(_partition(_SHAPES)), content)
