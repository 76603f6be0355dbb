"""Steps that do not run once: how long buffers live, and where steps go."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.kernels.control import READ, SLICE
from sardonyx.dtypes import DataType
from sardonyx.ir import symbol
from sardonyx.providers.cpu.flow import Flow
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, Control, KernelLaunch, Mark, Move


def _buffer(base: Buffer | None = None) -> Buffer:
    return Buffer(DataType.FLOAT, (4,), base=base)


def _step(buffers: Sequence[Buffer] = (), control: Control | None = None) -> KernelLaunch:
    return KernelLaunch("op", "op", "k", tuple(buffers), (), lambda sizes: ([], 1), control=control)


def _loop(body: Sequence[KernelLaunch], moves: Sequence[Move] = ()) -> list[KernelLaunch]:
    enter, following = Mark(), Mark()
    begin = _step([_buffer()], Control(enter, following, False))
    return [begin, *body, _step([_buffer()], Control(following, enter, True, tuple(moves)))]


def _extended(steps: Sequence[KernelLaunch], buffers: Sequence[Buffer]) -> list[tuple[int, int]]:
    places = {buffer: [index for index, step in enumerate(steps) if buffer in step.buffers] for buffer in buffers}
    first = {buffer: found[0] for buffer, found in places.items()}
    last = {buffer: found[-1] for buffer, found in places.items()}
    Flow(steps).extend(first, last)
    return [(first[buffer], last[buffer]) for buffer in buffers]


def test_what_inner_loops_read_and_write_lives_through_those_around_them_too() -> None:
    """Up to the loop that has the other end of the span as well."""
    before, after, within = _buffer(), _buffer(), _buffer()
    inner = _loop([_step([before, within]), _step([after])])
    steps = [_step([before]), *_loop([_step([within]), *inner]), *_loop([_step()]), _step([after])]
    assert _extended(steps, [before, after, within]) == [(0, 7), (1, 11), (2, 6)]


def test_what_a_loop_reads_and_writes_lives_through_it() -> None:
    """What comes from before lives to its end, what is read afterwards from its beginning; what is of one iteration stays."""
    before, after, inner = _buffer(), _buffer(), _buffer()
    steps = [_step([before]), *_loop([_step([before, inner]), _step([inner, after])]), _step([after])]
    assert _extended(steps, [before, after, inner]) == [(0, 4), (1, 5), (2, 3)]


def test_loops_in_loops() -> None:
    """What both read lives until the outer one ends; what the inner one makes for the outer one, through the inner one."""
    before, between = _buffer(), _buffer()
    inner = _loop([_step([before]), _step([between])])
    steps = [_step([before]), *_loop([_step(), *inner, _step([between]), _step()])]
    assert _extended(steps, [before, between]) == [(0, 9), (3, 7)]


def test_a_loop_goes_back_to_its_body() -> None:
    """Its beginning goes to its end, without the body; the end to the first step of the body."""
    steps = [_step(), *_loop([_step(), _step()]), _step()]
    flow = Flow(steps)
    controls = [(index, step.control) for index, step in enumerate(steps) if step.control is not None]
    assert [flow.params(index, control, [7], Sizes({})) for index, control in controls] == [[2, 7], [-3, 0, 7]]
    assert [flow.is_conditional(index) for index in range(6)] == [False, False, True, True, False, False]


def test_branches_are_conditional() -> None:
    """A branch goes behind the jump at the end of its first part, the jump behind the last step."""
    at_branch, at_jump, at_join = Mark(), Mark(), Mark()
    steps = [
        _step(control=Control(at_branch, at_jump, True)),
        _step(),
        _step(control=Control(at_jump, at_join, True)),
        _step(),
        _step(),
        _step(control=Control(at_join, at_join, True)),
    ]
    flow = Flow(steps)
    controls = [(index, step.control) for index, step in enumerate(steps) if step.control is not None]
    assert [flow.params(index, control, [], Sizes({})) for index, control in controls] == [[2], [3], [0]]
    assert [flow.is_conditional(index) for index in range(6)] == [False, True, False, True, True, False]


def test_pointers_that_move_are_found() -> None:
    """Those of the buffer and of views of it, counted from the first pointer of the step that moves them."""
    whole, n = _buffer(), symbol("n")
    part = _buffer(whole)
    view, other = _buffer(part), _buffer(whole)
    body = [_step([whole, part]), _step([other, view])]
    steps = _loop(body, [Move(part, SLICE, 0, 4 * n), Move(other, READ, 2)])
    control = steps[-1].control
    assert control is not None
    words = Flow(steps).params(3, control, [], Sizes({"n": 3}))
    assert words == [-3, 3, -3, SLICE, 0, 0, 12, 0, -2, READ, 2, 0, 0, 0, -1, SLICE, 0, 0, 12, 0]


def test_a_line_has_no_bodies() -> None:
    """Where every step runs once."""
    assert not Flow([_step(), _step()]).has_bodies
    assert Flow(_loop([_step()])).has_bodies
