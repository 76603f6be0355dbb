"""Support vector machines, against the reference provider."""

import numpy as np
import pytest
from support.ml_models import ml_session, native
from support.optimizing import model_of

import sardonyx
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model
from sardonyx.providers.cpu.kernels.ml_linear import claim_classifier, claim_regressor

RNG = np.random.default_rng(5)
KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
F = 5
X = (RNG.standard_normal((21, F)) / 2).astype(np.float32)


def listed(*shape, scale=1.0):
    return [round(float(number), 4) for number in (RNG.standard_normal(shape) * scale).reshape(-1)]


def regressor(kernel="RBF", V=37, *, degree=3.0, more="", shape="n,5", kind="float"):
    return f"""graph(x: {kind}[{shape}]) -> (y: float[k,1]) {{ y = ai.onnx.ml.SVMRegressor(x) {{ coefficients = {listed(V)},
        support_vectors = {listed(V, F, scale=0.5)}, n_supports = {V}, rho = [0.25], kernel_type = "{kernel}",
        kernel_params = [0.5, 0.125, {degree}] {more} }} }}"""


def classifier(counts, kernel="RBF", *, more="", labels="", shape="n,5", kind="float", label="int64", probabilities=False):
    V, C = sum(counts), len(counts)
    pairs = C * (C - 1) // 2
    given = f", prob_a = {[-1.5] * pairs}, prob_b = {listed(pairs, scale=0.2)}" if probabilities else ""
    return f"""graph(x: {kind}[{shape}]) -> (l: {label}[k], y: float[k,c]) {{ l, y = ai.onnx.ml.SVMClassifier(x) {{
        coefficients = {listed(C - 1, V)}, support_vectors = {listed(V, F, scale=0.5)}, vectors_per_class = {list(counts)},
        rho = {listed(pairs)}, kernel_type = "{kernel}", kernel_params = [0.5, 0.125, 2.0] {given},
        {labels or f"classlabels_ints = {list(range(3, 3 + C))}"} {more} }} }}"""


def compare(text, x=X, *, atol=2e-6, rtol=2e-5):
    ours, reference = ml_session(text), ml_session(text, is_reference=True)
    for rows in (x, x[:1], x[:0], x[:9]) if x.ndim == 2 else (x,):
        for found, expected in zip(ours.run(None, {"x": rows}), reference.run(None, {"x": rows}), strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            if found.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol * (np.nanmax(np.abs(expected), initial=1)))
            else:
                np.testing.assert_array_equal(found, expected)
    return ours


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("V", [1, 16, 37])
def test_a_regressor_of_every_kernel(kernel, V):
    """For any number of rows, none too."""
    assert native(compare(regressor(kernel, V)))


@pytest.mark.parametrize("degree", [0.0, 1.0, 2.0, 4.0, 5.0, 2.5])
def test_polynomials_of_any_degree(degree):
    """Small whole ones are multiplied out; a negative base has no broken power."""
    assert native(compare(regressor("POLY", degree=degree)))


@pytest.mark.parametrize("post_transform", ["NONE", "LOGISTIC", "SOFTMAX", "PROBIT"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_a_regressors_transform_and_sign(one_class, post_transform):
    """One class gives 1 or -1, whatever the transform."""
    assert native(compare(regressor(more=f', one_class = {one_class}, post_transform = "{post_transform}"'), X / 64))


@pytest.mark.parametrize(("kind", "dtype"), [("double", np.float64), ("int64", np.int64), ("int32", np.int32)])
def test_other_types_become_float32(kind, dtype):
    """As by the reference provider."""
    x = (X * 4).astype(dtype)
    assert native(compare(regressor(kind=kind), x))
    assert native(compare(classifier([3, 4], kind=kind), x))


def test_a_vector_is_one_row():
    """Of both models."""
    compare(regressor(shape="5"), X[0])
    compare(classifier([3, 4, 5], shape="5"), X[0])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [(2, 1), (17, 20), (5, 6, 7), (1, 40, 3, 2)])
@pytest.mark.parametrize("probabilities", [False, True])
def test_a_classifier_of_every_kernel(kernel, counts, probabilities):
    """Decisions or probabilities, and the labels of most votes."""
    assert native(compare(classifier(counts, kernel, probabilities=probabilities), rtol=1e-4, atol=1e-5))


@pytest.mark.parametrize("post_transform", ["LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])
@pytest.mark.parametrize(("counts", "probabilities"), [((9, 8), False), ((9, 8), True), ((4, 5, 6), False), ((4, 5, 6), True)])
def test_a_classifiers_transforms(counts, probabilities, post_transform):
    """Of pairs, of decisions and of probabilities."""
    more = f', post_transform = "{post_transform}"'
    assert native(compare(classifier(counts, probabilities=probabilities, more=more), rtol=1e-3, atol=1e-5))


def test_labels_of_text_are_looked_up_behind_the_native_program():
    """Scores and places are compiled."""
    session = compare(classifier([3, 4, 5], labels='classlabels_strings = ["x", "", "yz"]', label="string"))
    assert [place.op_type for place in session.explain() if place.provider != "CPUExecutionProvider"] == ["Gather"]


def test_nan_gives_no_votes():
    """The first label is chosen."""
    x = X[:3].copy()
    x[1, 2] = np.nan
    compare(classifier([3, 4, 5]), x)


def test_one_set_of_bits_for_any_number_of_threads():
    """And in a batch as alone."""
    found = []
    text, x = classifier([300, 400, 200], probabilities=True), np.tile(X, (40, 1))
    content = to_bytes(model_of(text, "17, ai.onnx.ml 3"))
    for threads in (1, 3):
        options = sardonyx.SessionOptions()
        options.intra_op_num_threads = threads
        session = sardonyx.InferenceSession(content, options)
        found.append(session.run(None, {"x": x})[1])
        np.testing.assert_array_equal(session.run(None, {"x": x[5:6]})[1], found[-1][5:6])
    np.testing.assert_array_equal(*found)


def test_another_number_of_features_is_refused():
    """In the run, where only that shows it."""
    session = ml_session(regressor(shape="n,m"))
    assert native(session)
    for size in (0, 4, 6):
        with pytest.raises(sardonyx.InvalidArgument, match=f"the input has {size} features, the support vectors have 5"):
            session.run(None, {"x": np.zeros((2, size), np.float32)})


def reason(text, claim):
    (node,) = parse_model(f"opset 17, ai.onnx.ml 3\n{text}").graph
    return claim(node)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("n_supports = 4", "n_supports = 0", "4 coefficients for n_supports=0"),
        ("n_supports = 4", "n_supports = 3", "4 coefficients for n_supports=3"),
        ("rho = [0.25]", "rho: floats = []", "coefficients"),
        ('"RBF"', '"CUBIC"', "kernel_type=CUBIC"),
        ("[n,5]", "[n,4]", "4 features for support vectors of 5"),
        ("float[n,5]", "double[n,5]", "data of type double"),
        ("support_vectors = [", "support_vectors = [0.5, ", "21 numbers for 4 support vectors"),
    ],
)
def test_what_is_left_to_the_reference_provider(old, new, expected):
    """It refuses what does not fit with an error of its own."""
    text = regressor(V=4)
    assert old in text
    assert expected in reason(text.replace(old, new), claim_regressor)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("classlabels_ints = [3, 4]", "classlabels_ints = [3]", "1 integer labels"),
        ("classlabels_ints = [3, 4]", "classlabels_ints: ints = []", "0 integer labels"),
        ("vectors_per_class = [2, 3]", "vectors_per_class = [2, 3, 1]", "(2, 3, 1) for 2 classes"),
        ("vectors_per_class = [2, 3]", "vectors_per_class = [-2, 7]", "(-2, 7) for 2 classes"),
        ("vectors_per_class = [2, 3]", "vectors_per_class = [2, 4]", "too few coefficients"),
        ("rho = [", "rho: floats = [], strange = [", "too few coefficients or rho"),
        ("kernel_params", "prob_a = [1.0], kernel_params", "too few numbers of probabilities"),
    ],
)
def test_classifiers_that_are_left_to_the_reference_provider(old, new, expected):
    """It refuses what does not fit with an error of its own."""
    text = classifier([2, 3])
    assert old in text
    assert expected in reason(text.replace(old, new), claim_classifier)
