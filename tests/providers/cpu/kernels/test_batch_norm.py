"""BatchNormalization in inference."""

import numpy as np
import pytest
from support.cpu_run import assert_close, assert_same_bits, cpu_session, declined, reference, run_cpu, steps_of

from sardonyx.dtypes import Array
from sardonyx.provider import Layout


def _x(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _text(dims: str, channels: int, constant: bool) -> str:
    names = {"g": [1.5, -0.5, 2.0], "b": [0.5, 0.0, -1.0], "m": [0.1, -0.2, 3.0], "v": [1.0, 0.01, 4.0]}
    given = "" if constant else "".join(f", {name}: float[{channels}]" for name in names)
    made = " ".join(f"{name}: float[{channels}] = {numbers[:channels]}" for name, numbers in names.items()) if constant else ""
    return f"""graph(x: float[{dims}]{given}) -> (y: float[{dims}]) {{
        {made} h = BatchNormalization(x, g, b, m, v) y = Relu(h) }}"""


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (1, 3, 17, 9), (2, 3, 2, 3, 4)])
def test_statistics_of_both_kinds_in_both_layouts(shape: tuple[int, ...], constant: bool, layout: Layout) -> None:
    """Constants become a factor and a summand; what is computed is used as it is; an activation joins."""
    body = _text(", ".join(["n", *map(str, shape[1:])]), 3, constant)
    feeds = {"x": _x(*shape)}
    if not constant:
        feeds |= {"g": _x(3, seed=1), "b": _x(3, seed=2), "m": _x(3, seed=3), "v": np.abs(_x(3, seed=4)) + 0.1}
    session = cpu_session(body, layout=layout)
    assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 2e-6)
    once = feeds | {"x": feeds["x"][:1]}
    assert_same_bits(session.run(None, once)[0], session.run(None, feeds)[0][:1])


def test_nodes_that_follow_join() -> None:
    """With whole tensors and numbers for each channel beside."""
    body = """graph(x: float[2, 3, 5], r: float[2, 3, 5], f: float[3, 1]) -> (y: float[2, 3, 5]) {
        g: float[3] = [1.0, 2.0, 3.0] b: float[3] = [0.0, 1.0, 2.0] m: float[3] = [0.5, 0.5, 0.5] v: float[3] = [1.0, 2.0, 3.0]
        h = BatchNormalization(x, g, b, m, v) a = Add(h, r) y = Mul(a, f) }"""
    assert steps_of(body) == ["BatchNormalization+Add+Mul"]
    feeds = {"x": _x(2, 3, 5), "r": _x(2, 3, 5, seed=1), "f": _x(3, 1, seed=2)}
    assert_close(run_cpu(body, feeds)[0], reference(body, feeds, double=True)[0], 2e-6)


@pytest.mark.parametrize(
    ("body", "opset"),
    [
        ("graph(x: float[2, 3], g: float[3]) -> (y: float[2, 3]) { y = BatchNormalization(x, g, g, g, g) }", 6),
        (
            "graph(x: float[2, 3, 4], g: float[3, 4]) -> (y: float[2, 3, 4]) { y = BatchNormalization(x, g, g, g, g) {spatial = 0} }",
            7,
        ),
        ("graph(x: float16[2, 3], g: float16[3]) -> (y: float16[2, 3]) { y = BatchNormalization(x, g, g, g, g) }", 15),
        ("graph(x: float[2, c], g: float[n]) -> (y: float[2, c]) { y = BatchNormalization(x, g, g, g, g) }", 15),
    ],
)
def test_what_is_declined(body: str, opset: int) -> None:
    """Statistics for each activation, other types, sizes that are not known to agree."""
    assert declined(body, opset=opset)


@pytest.mark.parametrize("opset", [7, 13])
def test_outputs_that_are_listed_and_not_read_make_it_train(opset: int) -> None:
    """Before opset 14: the reference provider and this one agree, as one declines what the other trains."""
    body = """graph(x: float[4, 3, 5], g: float[3], b: float[3], m: float[3], v: float[3]) -> (y: float[4, 3, 5]) {
        y, mean, var, saved_mean, saved_var = BatchNormalization(x, g, b, m, v) }"""
    assert declined(body, opset=opset) == ["it trains"]
