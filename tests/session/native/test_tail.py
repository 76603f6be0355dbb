"""Native runs of sessions whose last nodes need Python: maps of scores, and labels that are text."""

import numpy as np
import pytest
from support.ml_models import ml_session
from support.native_runs import learned, only_native, run_in_python

import sardonyx

COEFFICIENTS = "coefficients = [0.5, -0.25, 1.0, 0.25, -1.0, 0.5], intercepts = [0.1, 0.2, -0.1]"
INTEGERS = f"""graph(x: float[n,2]) -> (l: int64[n], z: seq(map(int64, float))) {{
    l, s = ai.onnx.ml.LinearClassifier(x) {{{COEFFICIENTS}, classlabels_ints = [7, 8, 9], post_transform = "SOFTMAX"}}
    z = ai.onnx.ml.ZipMap(s) {{classlabels_int64s = [7, 8, 9]}} }}"""
TEXTS = f"""graph(x: float[n,2]) -> (l: string[n], z: seq(map(string, float))) {{
    l, s = ai.onnx.ml.LinearClassifier(x) {{{COEFFICIENTS}, classlabels_strings = ["a", "b", ""], post_transform = "SOFTMAX"}}
    z = ai.onnx.ml.ZipMap(s) {{classlabels_strings = ["a", "b", ""]}} }}"""
X = np.random.default_rng(2).standard_normal((5, 2)).astype(np.float32)


@pytest.fixture(params=[INTEGERS, TEXTS], ids=["integers", "texts"])
def session(request):
    return ml_session(request.param)


def same(left, right):
    assert [type(item) for item in left] == [type(item) for item in right]
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("names", [None, ["l"], ["z"], ["z", "l"], ("l",), [], ["l", "l"]])
def test_results_are_those_of_python(session, names):
    """For any names, and any number of rows."""
    for rows in (X, X[:1], X[:0]):
        learned(session, {"x": rows})
        same(session.run(names, {"x": rows}), run_in_python(session, names, {"x": rows}))


@pytest.mark.parametrize("names", [None, ["l"], ["z"], ["z", "l"]])
def test_known_shapes_run_without_the_path_in_python(session, names):
    """With all outputs, or those that a list names."""
    learned(session, {"x": X})
    with only_native(session):
        session.run(names, {"x": X})


def test_a_new_shape_is_learned(session):
    """By a run in Python."""
    learned(session, {"x": X})
    session.run(None, {"x": X[:3]})
    with only_native(session):
        session.run(None, {"x": X[:3]})
        session.run(None, {"x": X})


@pytest.mark.parametrize("names", [["q"], [3], "l", [["l"]], {"l": 1}])
def test_names_that_are_none_are_refused_in_python(session, names):
    """With the same errors."""
    learned(session, {"x": X})
    errors = []
    for run in (lambda: session.run(names, {"x": X}), lambda: run_in_python(session, names, {"x": X})):
        try:
            errors.append(str(run()))
        except (TypeError, sardonyx.SardonyxError) as error:
            errors.append(str(error))
    assert errors[0] == errors[1]


def test_results_are_the_callers_own(session):
    """Every run makes new maps and arrays."""
    learned(session, {"x": X})
    first, second = (session.run(None, {"x": X}) for _ in range(2))
    first[1][0].clear()
    first[0][:] = first[0][0]
    same(second, run_in_python(session, None, {"x": X}))


def test_an_error_behind_the_native_program_is_worded_in_python():
    """By the run in Python, which fails there too."""
    session = ml_session("""graph(x: int64[n]) -> (y: string[n]) { c: string[3] = ["a", "b", "c"]
        p = Add(x, x) \n y = Gather(c, p) }""")
    learned(session, {"x": np.array([0, 1])})
    with only_native(session):
        assert session.run(None, {"x": np.array([1, 0])})[0].tolist() == ["c", "a"]
    with pytest.raises(sardonyx.InvalidArgument, match=r"node '' \(Gather-17\) on \(object\[3\], int64\[2\]\)"):
        session.run(None, {"x": np.array([0, 2])})


def test_a_binding_is_run_in_python(session):
    """Maps have no memory to bind."""
    learned(session, {"x": X})
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("l", "cpu")
    for _ in range(3):
        session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), session.run(["l"], {"x": X})[0])


def test_shapes_are_forgotten(session):
    """And learned again."""
    learned(session, {"x": X})
    session.trim()
    same(session.run(None, {"x": X}), run_in_python(session, None, {"x": X}))
    learned(session, {"x": X})
    with only_native(session):
        session.run(None, {"x": X})


def test_a_session_with_other_providers_runs_by_them(session):
    """What was known of the former ones is not used."""
    learned(session, {"x": X})
    expected = session.run(None, {"x": X})
    session.set_providers(["ReferenceExecutionProvider"])
    for found, wanted in zip(session.run(["l"], {"x": X}), expected[:1], strict=True):
        np.testing.assert_array_equal(found, wanted)
