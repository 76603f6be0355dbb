"""Random numbers of the CPU provider."""

import threading

import ml_dtypes
import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, run_cpu, steps_of

import sardonyx
from sardonyx.errors import SardonyxError

NUMPY = {1: np.float32, 11: np.float64, 10: np.float16, 16: ml_dtypes.bfloat16}
TWO = "graph(x: float[n]) -> (y, z) { y = RandomNormalLike(x) z = RandomUniformLike(x) }"


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("dtype", NUMPY)
def test_mean_scale_and_interval(dtype: int, isa: str) -> None:
    """In each type."""
    body = f"""graph(x: float[n]) -> (y, z) {{
    y = RandomNormal() {{shape = [200, 500], dtype = {dtype}, mean = 2.0, scale = 3.0, seed = 1.0}}
    z = RandomUniform() {{shape = [200, 500], dtype = {dtype}, low = -1.0, high = 3.0, seed = 1.0}} }}"""
    y, z = run_cpu(body, {"x": np.zeros(1, np.float32)}, isa=isa)
    assert (y.dtype, y.shape, z.dtype, z.shape) == (NUMPY[dtype], (200, 500), NUMPY[dtype], (200, 500))
    exact = y.astype(np.float64)
    assert abs(exact.mean() - 2) < 0.05
    assert abs(exact.std() - 3) < 0.05
    counts, _ = np.histogram(z.astype(np.float64), bins=4, range=(-1, 3))
    assert counts.sum() == z.size
    assert abs(counts - z.size / 4).max() < 1000


def test_the_shape_of_an_input() -> None:
    """As it is in each run, also empty; its elements are not read, so that they may be of any type."""
    session = cpu_session("graph(x: int8[n, m]) -> (y: float16[n, m]) { y = RandomNormalLike(x) {dtype = 10} }")
    for shape in ((2, 3), (0, 4), (5, 1)):
        assert session.run(None, {"x": np.zeros(shape, np.int8)})[0].shape == shape


def test_runs_differ_and_a_seed_repeats_them() -> None:
    """For all nodes that have no seed, in the order in which they run."""
    session, feeds = cpu_session(TWO), {"x": np.zeros(3, np.float32)}
    rounds = []
    for _ in range(2):
        sardonyx.set_seed(7)
        rounds.append([array.tolist() for _ in range(3) for array in session.run(None, feeds)])
    assert rounds[0] == rounds[1]
    assert len({tuple(numbers) for numbers in rounds[0]}) == 6


def test_a_seed_of_its_own_is_the_same_in_each_run_and_session() -> None:
    """Another seed gives others, however near."""
    body = "graph(x: float[n]) -> (y) {{ y = RandomNormalLike(x) {{seed = {}}} }}"
    feeds = {"x": np.zeros(9, np.float32)}
    session = cpu_session(body.format(1.5))
    first = session.run(None, feeds)[0].tolist()
    assert session.run(None, feeds)[0].tolist() == first == cpu_session(body.format(1.5)).run(None, feeds)[0].tolist()
    assert cpu_session(body.format(1.5000001)).run(None, feeds)[0].tolist() != first


def test_threads_of_a_run_change_nothing() -> None:
    """A large tensor is drawn in tasks."""
    body = "graph(x: float[n]) -> (y, z) { y = RandomNormalLike(x) {seed = 2.0} z = RandomUniformLike(x) {seed = 3.0} }"
    feeds = {"x": np.zeros(100_003, np.float32)}
    for one, two in zip(run_cpu(body, feeds), run_cpu(body, feeds, threads=2), strict=True):
        np.testing.assert_array_equal(one, two)


def test_runs_at_once_draw_different_numbers() -> None:
    """Each run takes streams of its own."""
    session, feeds, found = cpu_session(TWO), {"x": np.zeros(4, np.float32)}, []
    threads = [threading.Thread(target=lambda: found.extend(session.run(None, feeds))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({tuple(array.tolist()) for array in found}) == 16


def test_each_iteration_of_a_loop_draws_anew() -> None:
    """The body is part of the native run."""
    body = """graph(x: float[4]) -> (ys) {
    m: int64[] = 5 go: bool[] = 1
    ys = Loop(m, go) {body = graph(i: int64[], c: bool[]) -> (c, y) { y = RandomNormal() {shape = [2]} } } }"""
    (found,) = run_cpu(body, {"x": np.zeros(4, np.float32)})
    assert len({tuple(row) for row in found.tolist()}) == 5


def test_it_is_one_native_program() -> None:
    """What follows needs no other part: the noise of a decoder is scaled where it is drawn."""
    body = "graph(x: float[n], s: float[n]) -> (y) { z = RandomNormalLike(x) t = Mul(z, s) y = Add(x, t) }"
    assert steps_of(body) == ["RandomNormalLike", "RandomNormalLike", "Mul+Add"]


def test_what_is_left_to_others() -> None:
    """Numbers that are no floats."""
    assert "type int32" in declined("graph(x: int32[n]) -> (y: int32[n]) { y = RandomNormalLike(x) }")[0]


@pytest.mark.parametrize("shape", ["-1", "1099511627776, 1073741824"])
def test_impossible_shapes_are_refused(shape: str) -> None:
    """Before anything is drawn."""
    with pytest.raises(SardonyxError):
        run_cpu(f"graph(x: float[n]) -> (y) {{ y = RandomNormal() {{shape = [{shape}]}} }}", {"x": np.zeros(1, np.float32)})


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double", "float16"])
def test_classes_come_as_often_as_their_weights_say(kind: str, isa: str) -> None:
    """Rows with weights of their own, of which one has none."""
    weights = np.array([[1, 2, 5, 0, 2], [0, 0, 1, 1, 8]], np.float64)
    with np.errstate(divide="ignore"):
        x = np.log(weights).astype(NUMPY[{"float": 1, "double": 11, "float16": 10}[kind]])
    body = f"graph(x: {kind}[n, 5]) -> (y) {{ y = Multinomial(x) {{sample_size = 20000, seed = 3.0, dtype = 7}} }}"
    (y,) = run_cpu(body, {"x": x}, isa=isa)
    assert y.dtype == np.int64
    for row, wanted in zip(y, weights, strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=5) / 20000, wanted / 10, atol=0.02)


def test_what_is_drawn_is_a_class_whatever_the_logarithms_are() -> None:
    """NaN, infinities, and one class alone."""
    session = cpu_session("graph(x: float[n, c]) -> (y) { y = Multinomial(x) {sample_size = 9} }")
    for row in ([np.nan, 0], [np.inf, 0], [-np.inf, -np.inf], [3.4e38, -3.4e38], [1]):
        (y,) = session.run(None, {"x": np.array([row], np.float32)})
        assert y.dtype == np.int32
        assert ((y >= 0) & (y < len(row))).all()


def test_rows_without_classes_are_refused() -> None:
    """By their shape; no rows give no draws."""
    session = cpu_session("graph(x: float[n, c]) -> (y) { y = Multinomial(x) {sample_size = 9} }")
    with pytest.raises(sardonyx.errors.InvalidArgument, match="expected one class at least"):
        session.run(None, {"x": np.zeros((2, 0), np.float32)})
    assert session.run(None, {"x": np.zeros((0, 0), np.float32)})[0].shape == (0, 9)


def test_draws_do_not_depend_on_threads() -> None:
    """Of many rows, and of many draws of one."""
    for shape, samples in (((300, 40), 100), ((1, 7), 50000)):
        body = f"graph(x: float[n, c]) -> (y) {{ y = Multinomial(x) {{sample_size = {samples}, seed = 1.0}} }}"
        feeds = {"x": np.random.default_rng(0).standard_normal(shape, np.float32)}
        np.testing.assert_array_equal(run_cpu(body, feeds)[0], run_cpu(body, feeds, threads=2)[0])
