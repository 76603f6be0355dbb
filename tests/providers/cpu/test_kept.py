"""Programs outside of a process."""

from __future__ import annotations

import marshal
from typing import Any

import numpy as np
import pytest
from support.cpu_run import cpu_session

from sardonyx.codegen.target import host_target
from sardonyx.errors import Fail, SardonyxError
from sardonyx.formats.plain_graph import KeptProgram
from sardonyx.held_memory import HeldKind
from sardonyx.provider import Layout
from sardonyx.providers.cpu import library
from sardonyx.providers.cpu.kept import keep_program, restore_program
from sardonyx.providers.cpu.kept_plans import NotKept
from sardonyx.providers.cpu.loop_program import LoopProgram
from sardonyx.providers.cpu.planning import plan_step
from sardonyx.providers.cpu.precision import Precision
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.sized_program import SizedProgram
from sardonyx.providers.cpu.sizes import Sizes

_MODELS = {
    "product": """graph(x: float[n, 6]) -> (y: float[n, 5]) {
        w: float[6, 5] = ... 1
        b: float[5] = ... 2
        p = Gemm(x, w, b)
        y = Softmax(p) }""",
    "image": """graph(x: float[n, 3, h, h]) -> (y: float[n, 4, k, k]) {
        w: float[4, 3, 3, 3] = ... 1
        c = Conv(x, w) {pads = [1, 1, 1, 1]}
        r = Relu(c)
        y = MaxPool(r) {kernel_shape = [2, 2], strides = [2, 2]} }""",
    "indices": """graph(x: float[n, m], i: int64[k]) -> (y: float[k, m], s: int64[2]) {
        g = Gather(x, i)
        y = Exp(g)
        s = Shape(g) }""",
    "fixed": "graph(x: float[4, 6]) -> (y: float[4]) { a = Tanh(x)\n y = ReduceSum(a) {keepdims = 0, noop_with_empty_axes = 0} }",
    "counted": "graph(x: float[n]) -> (y: int64[1, k]) { y = NonZero(x) }",
    "branch": """graph(c: bool[], x: float[n]) -> (y: float[n]) { y = If(c) {
        then_branch = graph() -> (a) { a = Relu(x) }, else_branch = graph() -> (b) { b = Neg(x) }} }""",
    "loop": """graph(m: int64[], x: float[n]) -> (y: float[n]) {
        go: bool[] = 1
        y = Loop(m, go, x) {body = graph(i: int64[], c: bool[], a: float[n]) -> (d, b) { d = Identity(c)\n b = Add(a, x) }} }""",
    "scan": """graph(z: float[4], x: float[n, 4]) -> (y: float[4], r: float[n, 4]) {
        y, r = Scan(z, x) {num_scan_inputs = 1, body = graph(a: float[4], b: float[4]) -> (c, d) { c = Add(a, b)\n d = Neg(c) }} }""",
    "unknown": "graph(x: float[?, 6]) -> (y: float[?, 6]) { y = Relu(x) }",
}


_UNTIL = """graph(x: float[N], n: int64[], most: float[]) -> (y, s) { go: bool[] = 1
    y, s = Loop(n, go, x) {body = graph(i: int64[], c: bool[], a: float[N]) -> (d, b, e) {
        b = Add(a, x) z: int64[] = 0 p = Gather(b, z) d = Less(p, most) e = Neg(b) } } }"""
_COUNTED = """graph(x: float[N], n: int64[]) -> (y, s) { go: bool[] = 1
    y, s = Loop(n, go, x) {body = graph(i: int64[], c: bool[], a: float[N]) -> (c, b, b) { b = Add(a, a) } } }"""
_FIVE = """graph(x: float[N], go: bool[]) -> (y, s) { n: int64[1] = [5]
    y, s = Loop(n, go, x) {body = graph(i: int64[], c: bool[], a: float[N]) -> (c, b, b) { b = Add(a, a) } } }"""


def _program(body: str) -> CpuProgram:
    (step,) = cpu_session(body, layout=Layout.NHWC)._runner.built.plans[0].steps  # type: ignore[attr-defined]  # of a private base
    program = step.program
    assert isinstance(program, CpuProgram)
    return program


def _kept(program: CpuProgram | LoopProgram) -> KeptProgram:
    """What is kept of a program, as another process reads it."""
    kept = keep_program(program, host_target(None), Precision.HIGHEST)
    return KeptProgram(marshal.loads(marshal.dumps(kept.plain)), [array.copy() for array in kept.arrays])


def _again(program: CpuProgram) -> CpuProgram:
    restored = restore_program(_kept(program), host_target(None), 1)
    assert isinstance(restored, CpuProgram)
    return restored


def _answers(program: CpuProgram, sizes: dict[str, int]) -> list[Any]:
    """What the plans of all steps say for sizes, whose names are in alphabetical order, or how they refuse them."""
    names = sorted({dim.name for _, shape in program.inputs for dim in shape if not isinstance(dim, int) and dim.name})
    found: list[Any] = []
    for step in program.storage.steps:
        try:
            words, tasks = plan_step(step, Sizes(dict(zip(names, sizes.values(), strict=False))))
            found.append((list(words), tasks))
        except SardonyxError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("name", list(_MODELS))
def test_steps_do_the_same_for_all_sizes(name: str) -> None:
    """For those whose result is known, and for others."""
    first = _program(_MODELS[name])
    second = _again(first)
    for size in (1, 2, 3, 16, 130):
        sizes = dict.fromkeys("abc", size)
        assert _answers(second, sizes) == _answers(first, sizes)
    assert _answers(second, {"a": 7, "b": 5, "c": 3}) == _answers(first, {"a": 7, "b": 5, "c": 3})


@pytest.mark.parametrize("name", list(_MODELS))
def test_a_program_says_the_same_of_itself(name: str) -> None:
    """Its kernels, labels, constants and what may share memory."""
    first = _program(_MODELS[name])
    second = _again(first)
    assert second.steps == first.steps
    assert second.step_labels == first.step_labels
    if name != "unknown":  # whose dimension has another name in each process
        assert str(second.describe_steps()) == str(first.describe_steps())
    assert list(second.precisions) == list(first.precisions)
    assert second.shares == first.shares
    assert (second.makes_outputs, second.binds_shapes) == (first.makes_outputs, first.binds_shapes)
    assert [pack.tobytes() for pack in second.packs] == [pack.tobytes() for pack in first.packs]


def test_a_restored_program_lowers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its sizes are, it does not even import what its plans come from."""
    kept = _kept(_program(_MODELS["product"]))
    monkeypatch.setattr("sardonyx.providers.cpu.kept_plans._Reader", lambda *about: pytest.fail("a plan was read"))
    program = restore_program(kept, host_target(None), 1)
    for size in (1, 3, 8, 45, 1000):
        assert program.bind(((size, 6),)).outputs[0].shape == (size, 5)  # type: ignore[union-attr]


def test_constants_count_as_what_they_are() -> None:
    """Packed weights and others, each by its own bytes, though they lie in one block."""
    program = _again(_program(_MODELS["product"]))
    sizes = {item.kind: item.size_bytes for item in program.memory_held()}
    assert sizes[HeldKind.PACKED_WEIGHTS] == sum(pack.nbytes for pack in program.packs)
    assert sizes[HeldKind.WEIGHTS] == 5 * 4


@pytest.mark.parametrize("name", ["branch", "loop", "scan"])
def test_control_flow_is_kept(name: str) -> None:
    """Its steps go where they went, and what moves from iteration to iteration moves as it did."""
    first = _program(_MODELS[name])
    second = _again(first)
    for size in (1, 5):
        symbols = dict(zip("abc", [size] * 3, strict=True))
        assert _flow(second, symbols) == _flow(first, symbols)


@pytest.mark.parametrize("body", [_UNTIL, _COUNTED, _FIVE])
def test_a_loop_of_open_length_is_kept(body: str) -> None:
    """Its scan outputs are as long as they were, with however many iterations."""
    (step,) = cpu_session(body)._runner.built.plans[0].steps  # type: ignore[attr-defined]  # of a private base
    first = step.program
    assert isinstance(first, LoopProgram)
    second = restore_program(_kept(first), host_target(None), 1)
    assert isinstance(second, LoopProgram)
    feed = {"x": np.arange(3, dtype=np.float32) + 1, "n": np.array(6), "most": np.array(4.0, np.float32), "go": np.array(True)}
    inputs = [feed[name] for name, _ in first.program.inputs]
    for expected, found in zip(_run(first, inputs), _run(second, inputs), strict=True):
        np.testing.assert_array_equal(found, expected)


def _run(program: LoopProgram, inputs: list[Any]) -> Any:
    bound = program.bind(tuple([array.shape for array in inputs]))
    return program.run(bound, inputs, (), None)


@pytest.mark.parametrize("start", ["a: int64[] = 2", ""])
def test_a_node_whose_size_elements_say_is_kept(start: str) -> None:
    """With what it reads of its inputs, and constants among these."""
    inputs = "n: int64[]" if start else "a: int64[], n: int64[]"
    body = f"graph({inputs}) -> (y) {{ {start} c: int64[] = 3 y = Range(a, n, c) }}"
    (step,) = cpu_session(body)._runner.built.plans[0].steps  # type: ignore[attr-defined]  # of a private base
    first = step.program
    assert isinstance(first, SizedProgram)
    second = restore_program(_kept(first), host_target(None), 1)
    assert isinstance(second, SizedProgram)
    for limit in (9, 0, 1000):
        inputs_now = [{"a": np.array(2), "n": np.array(limit)}[name] for name, _ in first.program.inputs]
        (found,) = second.run(second.bind(()), inputs_now, (), None)
        np.testing.assert_array_equal(found, np.arange(2, limit, 3))


def test_denormal_numbers_are_taken_as_the_session_says() -> None:
    """Also in a loop."""
    (step,) = cpu_session(_COUNTED)._runner.built.plans[0].steps  # type: ignore[attr-defined]  # of a private base
    for program in (_program(_MODELS["product"]), step.program):
        restored = restore_program(_kept(program), host_target(None), 1, flush=True)
        assert (restored.program if isinstance(restored, LoopProgram) else restored).flushes_denormals


def _flow(program: CpuProgram, symbols: dict[str, int]) -> list[list[int]]:
    flow, steps, sizes = program.storage.flow, program.storage.steps, Sizes(symbols)
    return [flow.params(index, step.control, (), sizes) for index, step in enumerate(steps) if step.control is not None]


def test_a_program_whose_machine_code_is_not_at_hand_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is off, or has lost it."""
    program = _program(_MODELS["fixed"])
    monkeypatch.setattr(library, "kernel_cache", lambda: None)
    with pytest.raises(NotKept):
        keep_program(program, host_target(None), Precision.HIGHEST)


def test_what_is_not_as_it_was_written_is_an_error() -> None:
    """A part that is missing, a number of a buffer that is not there."""
    kept = _kept(_program(_MODELS["fixed"]))
    with pytest.raises(ValueError, match="unpack"):
        restore_program(KeptProgram(kept.plain[:-1], kept.arrays), host_target(None), 1)
    wrong = list(kept.plain)
    wrong[-2] = (*kept.plain[-2][:3], np.array([[0, 99, 0]], np.int64).tobytes(), *kept.plain[-2][4:])
    with pytest.raises(LookupError):
        restore_program(KeptProgram(tuple(wrong), kept.arrays), host_target(None), 1).bind(((4, 6),))


def test_machine_code_that_cannot_be_linked_is_an_error() -> None:
    """Nothing of it runs."""
    kept = _kept(_program(_MODELS["fixed"]))
    wrong = list(kept.plain)
    wrong[:2] = None, tuple((f"{symbol}_other", b"no object") for symbol, _ in kept.plain[0][3])
    with pytest.raises(Fail):
        restore_program(KeptProgram(tuple(wrong), kept.arrays), host_target(None), 1).bind(((4, 6),))


def test_a_pack_is_an_array_of_its_type() -> None:
    """It can be written into a compiled context as before."""
    packs = _again(_program(_MODELS["product"])).packs
    assert [(pack.dtype, pack.ndim) for pack in packs] == [(np.dtype(np.float32), packs[0].ndim)]


def test_no_plan_of_a_convolution_refers_to_its_filters() -> None:
    """Which are too many elements to be kept beside the packed ones."""
    program = _program("""graph(x: float[n, 64, 20, 20]) -> (y: float[n, 96, 18, 18]) {
        w: float[96, 64, 3, 3] = ... 1 y = Conv(x, w) {strides = [1, 1], dilations = [1, 1]} }""")
    strided = _program("""graph(x: float[n, 64, 20, 20]) -> (y: float[n, 96, 9, 9]) {
        w: float[96, 64, 3, 3] = ... 1 y = Conv(x, w) {strides = [2, 2]} }""")
    for each in (program, strided):
        assert _again(each).steps == each.steps
