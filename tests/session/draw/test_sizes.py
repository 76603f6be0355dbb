"""Sizes for the symbolic dimensions of a model's inputs."""

from __future__ import annotations

from support.models import model

from sardonyx.session.draw.sizes import solve_sizes

MASKED = (
    "graph(q: float[b, s, 4], past: float[b, p, 4], mask: float[b, 1, t]) -> (y: float[b, s, t]) {\n"
    "k = Concat(past, q) {axis = 1}\nkt = Transpose(k) {perm = [0, 2, 1]}\nscores = MatMul(q, kt)\ny = Add(scores, mask)\n}"
)


def _solve(body: str, **fixed: int) -> dict[str, int]:
    parsed = model(body)
    sizes, _ = solve_sizes(parsed, parsed.graph.inputs, fixed)
    return {name: size for name, size in sizes.items() if isinstance(size, int)}


def test_what_nothing_bounds_is_1() -> None:
    """A batch of one."""
    assert _solve("graph(x: float[n, 3]) -> (y: float[n, 3]) {\ny = Relu(x)\n}") == {"n": 1}


def test_a_total_is_the_sum_of_past_and_new() -> None:
    """A mask is as long as the scores that it is added to."""
    assert _solve(MASKED) == {"b": 1, "s": 1, "p": 1, "t": 2}


def test_sizes_that_are_given_hold_and_others_follow() -> None:
    """Whichever of them is given."""
    assert _solve(MASKED, s=7, b=2) == {"b": 2, "s": 7, "p": 1, "t": 8}
    assert _solve(MASKED, t=7) == {"b": 1, "s": 1, "p": 6, "t": 7}
    assert _solve(MASKED, t=2000, p=1500) == {"b": 1, "s": 500, "p": 1500, "t": 2000}


def test_a_total_that_only_indices_show_is_found_too() -> None:
    """The mask is read at as many places as past and new keys have, given a length beyond what inference computes."""
    body = (
        "graph(x: float[b, s], past: float[b, p], mask: float[t]) -> (y: float[m]) {\n"
        "k = Concat(past, x) {axis = 1}\nsize = Shape(k) {start = 1}\none: int64[] = [1]\nzero: int64[] = [0]\nend = Squeeze(size)\n"
        "at = Range(zero, end, one)\ny = Gather(mask, at)\n}"
    )
    assert _solve(body) == {"b": 1, "s": 1, "p": 1, "t": 2}
    assert _solve(body, s=2000) == {"b": 1, "s": 2000, "p": 1, "t": 2001}


def test_a_network_that_shrinks_its_input_gets_a_larger_one() -> None:
    """With 1, a tensor would be empty."""
    body = (
        "graph(x: float[n, 1, h, w]) -> (y: float[n, 1, a, b]) {\np = MaxPool(x) {kernel_shape = [2, 2], strides = [2, 2]}\n"
        "y = MaxPool(p) {kernel_shape = [2, 2], strides = [2, 2]}\n}"
    )
    assert _solve(body) == {"n": 1, "h": 8, "w": 8}


def test_dimensions_without_names_are_solved_too() -> None:
    """A product says how many features there are."""
    parsed = model("graph(x: float[?, ?]) -> (y: float[?, 2]) {\nw: float[3, 2] = [1, 2, 3, 4, 5, 6]\ny = MatMul(x, w)\n}")
    sizes, _ = solve_sizes(parsed, parsed.graph.inputs, {})
    assert sorted(str(size) for size in sizes.values()) == ["1", "3"]


def test_sizes_that_contradict_the_model_are_left_to_the_run() -> None:
    """Which says what is wrong."""
    assert _solve("graph(x: float[n], y: float[m]) -> (z: float[n]) {\nz = Add(x, y)\n}", n=2, m=3) == {"n": 2, "m": 3}
