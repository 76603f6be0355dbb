"""Facts about random numbers."""

import threading

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.kernels.random import set_seed

BIG = (200, 500)


@pytest.mark.parametrize(("dtype", "numpy"), [(1, np.float32), (11, np.float64), (10, np.float16), (16, ml_dtypes.bfloat16)])
def test_normal_has_mean_and_scale(dtype, numpy):
    """100,000 numbers have the mean and deviation asked for, in each type."""
    y = run_op("RandomNormal", shape=BIG, dtype=dtype, mean=2.0, scale=3.0, seed=1.0)
    assert (y.dtype, y.shape) == (numpy, BIG)
    exact = y.astype(np.float64)
    assert abs(exact.mean() - 2) < 0.05
    assert abs(exact.std() - 3) < 0.05


@pytest.mark.parametrize(("dtype", "numpy"), [(1, np.float32), (11, np.float64), (10, np.float16), (16, ml_dtypes.bfloat16)])
def test_uniform_fills_its_interval(dtype, numpy):
    """100,000 numbers spread over the interval evenly, in each type."""
    y = run_op("RandomUniform", shape=BIG, dtype=dtype, low=-1.0, high=3.0, seed=1.0)
    assert (y.dtype, y.shape) == (numpy, BIG)
    counts, _ = np.histogram(y.astype(np.float64), bins=4, range=(-1, 3))
    assert counts.sum() == y.size
    assert abs(counts - y.size / 4).max() < 1000


@pytest.mark.parametrize("name", ["RandomNormalLike", "RandomUniformLike"])
def test_like_takes_shape_and_type(name):
    """The input gives the shape, and the type unless dtype does."""
    assert run_op(name, np.zeros((2, 3), np.float64)).dtype == np.float64
    y = run_op(name, np.zeros((2, 3), np.int8), dtype=10)
    assert (y.dtype, y.shape) == (np.float16, (2, 3))
    with pytest.raises(InvalidArgument, match="type int8"):
        run_op(name, np.zeros((2, 3), np.int8))


def test_a_seed_repeats_and_its_absence_does_not():
    """The same seed gives the same numbers, another seed others, and no seed new ones each time."""
    draw = lambda **seed: run_op("RandomNormal", shape=(4,), **seed).tolist()  # noqa: E731  one line is clearer here
    assert draw(seed=1.5) == draw(seed=1.5) != draw(seed=2.5)
    assert draw() != draw()


def test_set_seed_repeats_the_whole_process():
    """After set_seed the nodes without a seed draw the same numbers again."""
    rounds = []
    for _ in range(2):
        set_seed(7)
        rounds.append([run_op("RandomUniform", shape=(3,)).tolist() for _ in range(3)])
    assert rounds[0] == rounds[1]
    assert rounds[0][0] != rounds[0][1]


def test_set_seed_takes_integers_of_any_sign():
    """A negative one is not its opposite; a text is none."""
    drawn = []
    for seed in (-1, 1, -1):
        set_seed(seed)
        drawn.append(run_op("RandomUniform", shape=(3,)).tolist())
    assert drawn[0] == drawn[2] != drawn[1]
    with pytest.raises(TypeError, match="seed is an integer"):
        set_seed("1")


def test_threads_draw_different_numbers():
    """Eight threads that draw at once get eight different results."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(run_op("RandomUniform", shape=(2,)).tolist())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({tuple(result) for result in results}) == 8


@pytest.mark.parametrize("shape", [(-1,), (1 << 40, 1 << 30)])
def test_impossible_shapes_are_refused(shape):
    """Negative and enormous sizes are refused before anything is drawn."""
    with pytest.raises(InvalidArgument):
        run_op("RandomNormal", shape=shape)


@pytest.mark.parametrize(("dtype", "numpy"), [(None, np.float32), (9, np.bool_), (7, np.int64), (16, ml_dtypes.bfloat16)])
def test_bernoulli_draws_by_probability(dtype, numpy):
    """Probabilities 0 and 1 are certain, 0.25 holds on average."""
    x = np.tile(np.array([0, 0.25, 1], np.float32), (20_000, 1))
    y = run_op("Bernoulli", x, seed=3.0, **({} if dtype is None else {"dtype": dtype}))
    assert y.dtype == numpy
    shares = y.astype(np.float64).mean(axis=0)
    assert (shares[0], shares[2]) == (0, 1)
    assert abs(shares[1] - 0.25) < 0.02


@pytest.mark.parametrize("dtype", [6, 7])
def test_multinomial_draws_by_weight(dtype):
    """Logarithms of the weights 1, 3 and 0 give shares of 1/4, 3/4 and none, per row."""
    with np.errstate(divide="ignore"):
        x = np.log(np.array([[1, 3, 0], [0, 0, 5]], np.float32))
    y = run_op("Multinomial", x, sample_size=20_000, dtype=dtype, seed=2.0)
    assert (y.dtype, y.shape) == ({6: np.int32, 7: np.int64}[dtype], (2, 20_000))
    shares = np.bincount(y[0], minlength=3) / 20_000
    np.testing.assert_allclose(shares, [0.25, 0.75, 0], atol=0.02)
    assert (y[1] == 2).all()


@pytest.mark.parametrize(
    ("x", "attributes"), [(np.ones(3), {}), (np.ones((1, 2)), {"sample_size": 0}), (np.ones((1, 2)), {"dtype": 1})]
)
def test_multinomial_checks_its_input(x, attributes):
    """Rank, sample size and type are checked."""
    with pytest.raises(InvalidArgument):
        run_op("Multinomial", x, **attributes)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_dropout_in_training_drops_a_share_and_scales_the_rest(dtype):
    """A quarter is zero, the rest is 4/3 of what it was, and the mask says which."""
    x = np.ones(BIG, dtype)
    y, mask = run_op("Dropout", x, np.float32(0.25), np.array(True), outputs=2, seed=5)
    assert (y.dtype, mask.dtype) == (dtype, np.bool_)
    assert abs(mask.mean() - 0.75) < 0.01
    np.testing.assert_array_equal(y, np.where(mask, np.array(4 / 3).astype(dtype), np.array(0).astype(dtype)))


def test_a_seeded_dropout_draws_as_the_suite_of_onnx_does():
    """The numbers are those of NumPy's Mersenne Twister; a negative seed counts from the end of 32 bits."""
    x = np.ones(20, np.float32)
    for seed, start in ((3, 3), (-1, (1 << 32) - 1)):
        _, mask = run_op("Dropout", x, np.float32(0.25), np.array(True), outputs=2, seed=seed)
        np.testing.assert_array_equal(mask, np.random.RandomState(start).uniform(size=20) >= 0.25)


def test_dropout_in_inference_is_the_identity():
    """Without training_mode nothing is dropped, whatever the ratio, and the mask is all True."""
    x = np.ones(4, np.float32)
    y, mask = run_op("Dropout", x, np.float32(0.9), outputs=2)
    assert y is x
    assert mask.dtype == np.bool_
    assert mask.all()
    assert len(run_op("Dropout", x)) == 1


def test_dropout_of_nothing_in_training():
    """A ratio of 0 copies; a ratio of 1 is refused."""
    x = np.ones(4, np.float32)
    np.testing.assert_array_equal(run_op("Dropout", x, np.float32(0), np.array(True))[0], x)
    with pytest.raises(InvalidArgument, match=r"ratio=1\.0"):
        run_op("Dropout", x, np.float32(1), np.array(True))


@pytest.mark.parametrize(("version", "mask_type"), [(7, np.float32), (10, np.bool_)])
def test_dropout_7_and_10_only_infer(version, mask_type):
    """Opset 7 has a mask in the input's type, opset 10 one of bool."""
    y, mask = run_op("Dropout", np.ones(3, np.float32), version=version, outputs=2)
    np.testing.assert_array_equal(y, np.ones(3))
    assert mask.dtype == mask_type


def test_dropout_1_trains_unless_is_test():
    """Before opset 7 the mode is an attribute, and the mask has the input's type."""
    x = np.ones(BIG, np.float32)
    y, mask = run_op("Dropout", x, version=6, outputs=2, ratio=0.5)
    np.testing.assert_array_equal(y, mask * 2)
    assert abs(mask.mean() - 0.5) < 0.01
    assert run_op("Dropout", x, version=1, is_test=1)[0] is x
