"""ArrayFeatureExtractor, FeatureVectorizer and OneHotEncoder in operators of ai.onnx."""

import numpy as np
import pytest
from support.ml_models import ml_session, native
from support.optimizing import apply_rule, declines, operators

import sardonyx
from sardonyx.optimize.rules.ml.expand_columns import (
    EXPAND_ARRAY_FEATURE_EXTRACTOR,
    EXPAND_FEATURE_VECTORIZER,
    EXPAND_ONE_HOT_ENCODER,
)

OPSET = "21, ai.onnx.ml 3"


def extractor(places, shape="2,5", kind="float"):
    return f"graph(x: {kind}[{shape}]) -> (y) {{ p: int64[{len(places)}] = {list(places)} \n y = ai.onnx.ml.ArrayFeatureExtractor(x, p) }}"


@pytest.mark.parametrize(
    ("places", "made"), [((1, 2, 3), "Slice"), ((4,), "Slice"), ((3, 1), "Gather"), ((0, 0), "Gather"), ((0, 2, 4), "Gather")]
)
@pytest.mark.parametrize("shape", ["2,5", "n,5", "2,3,5"])
def test_places_are_a_slice_where_they_follow_one_another(places, made, shape):
    """Else they are gathered."""
    model, fired = apply_rule(EXPAND_ARRAY_FEATURE_EXTRACTOR, extractor(places, shape), opset=OPSET, symbols={"n": 3}, rtol=0)
    assert (fired, operators(model)) == (1, [made])


@pytest.mark.parametrize("kind", ["double", "int64", "int32"])
def test_a_vector_becomes_a_row(kind):
    """Of any type of numbers."""
    _, fired = apply_rule(EXPAND_ARRAY_FEATURE_EXTRACTOR, extractor((3, 1), "5", kind), opset=OPSET, rtol=0)
    assert fired == 1


def test_computed_places_are_checked_in_the_run():
    """Negative ones do not count from the end."""
    session = ml_session("graph(x: float[n,m], p: int64[k]) -> (y: float[n,k]) { y = ai.onnx.ml.ArrayFeatureExtractor(x, p) }")
    assert native(session)
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    np.testing.assert_array_equal(session.run(None, {"x": x, "p": np.array([4, 0])})[0], x[:, [4, 0]])
    for place in (-1, 5, np.iinfo(np.int64).min, np.iinfo(np.int64).max):
        with pytest.raises(sardonyx.InvalidArgument):
            session.run(None, {"x": x, "p": np.array([0, place])})


def test_places_that_an_argmax_made_are_not_checked_twice():
    """It makes none that is negative."""
    text = """graph(x: float[n,3]) -> (y: int64[1,n]) { c: int64[3] = [7, 8, 9] \n p = ArgMax(x) {axis = 1, keepdims = 0}
        y = ai.onnx.ml.ArrayFeatureExtractor(c, p) }"""
    model, _ = apply_rule(EXPAND_ARRAY_FEATURE_EXTRACTOR, text, opset=OPSET, symbols={"n": 3})
    assert operators(model) == ["ArgMax", "Gather", "Unsqueeze"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [(extractor((5,)), "outside an axis of 5"), (extractor((-1, 2)), "negative"), (extractor((1,), kind="string"), "type string")],
)
def test_an_extractor_that_does_not_fit_is_left_alone(text, reason):
    """The reference provider refuses it, or has its type."""
    assert reason in declines(EXPAND_ARRAY_FEATURE_EXTRACTOR, text, opset=OPSET)


def vectorizer(attributes="", a="n,2", b="n,3,2"):
    return f"graph(a: float[{a}], b: int64[{b}]) -> (y) {{ y = ai.onnx.ml.FeatureVectorizer(a, b) {{{attributes}}} }}"


@pytest.mark.parametrize("attributes", ["", "inputdimensions = [2, 6]", "inputdimensions = [1, 9]", "inputdimensions = [4, 0]"])
@pytest.mark.parametrize(("a", "b"), [("n,2", "n,3,2"), ("2", "6"), ("1,2", "6")])
def test_a_vectorizer_joins_columns(attributes, a, b):
    """Each cut or padded to its width."""
    _, fired = apply_rule(EXPAND_FEATURE_VECTORIZER, vectorizer(attributes, a, b), opset=OPSET, symbols={"n": 3}, rtol=0)
    assert fired == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (vectorizer("inputdimensions = [2]"), "2 inputs, widths (2,)"),
        (vectorizer("inputdimensions = [2, -1]"), "widths (2, -1)"),
        (vectorizer("inputdimensions = [2, 3]", b="n,m"), "columns of unknown number"),
    ],
)
def test_a_vectorizer_that_does_not_fit_is_left_alone(text, reason):
    """The reference provider refuses it, or needs the sizes."""
    assert reason in declines(EXPAND_FEATURE_VECTORIZER, text, opset=OPSET)


@pytest.mark.parametrize("b", ["?,3,2", "n,3,2"])
def test_a_vectorizer_of_unknown_rows_is_left(b):
    """No name says that they are as many; the operator itself runs."""
    assert "may differ" in declines(EXPAND_FEATURE_VECTORIZER, vectorizer(a="?,2", b=b), opset=OPSET)
    session = ml_session(f"graph(a: float[?,2], b: float[{b}]) -> (y: float[k,8]) {{ y = ai.onnx.ml.FeatureVectorizer(a, b) }}")
    assert session.run(None, {"a": np.ones((4, 2), np.float32), "b": np.ones((4, 3, 2), np.float32)})[0].shape == (4, 8)


def test_other_numbers_of_rows_are_refused():
    """In the run."""
    session = ml_session("graph(a: float[n,2], b: float[m,2]) -> (y: float[k,4]) { y = ai.onnx.ml.FeatureVectorizer(a, b) }")
    with pytest.raises(sardonyx.SardonyxError):
        session.run(None, {"a": np.ones((2, 2), np.float32), "b": np.ones((1, 2), np.float32)})


@pytest.mark.parametrize("kind", ["float", "double", "int64", "int32"])
@pytest.mark.parametrize("shape", ["4,1", "n,3", "5", "2,2,2"])
def test_an_encoder_compares_with_its_categories(kind, shape):
    """Floats are cut to integers."""
    text = f"graph(x: {kind}[{shape}]) -> (y) {{ y = ai.onnx.ml.OneHotEncoder(x) {{cats_int64s = [0, 2, -1]}} }}"
    _, fired = apply_rule(EXPAND_ONE_HOT_ENCODER, text, opset=OPSET, symbols={"n": 3}, rtol=0)
    assert fired == 1


def test_an_encoder_that_refuses_unknown_elements_gets_integers():
    """As its kernel takes them."""
    text = "graph(x: float[3]) -> (y) { y = ai.onnx.ml.OneHotEncoder(x) {cats_int64s = [0, 1], zeros = 0} }"
    model, fired = apply_rule(EXPAND_ONE_HOT_ENCODER, text, opset=OPSET, compare=False)
    assert (fired, operators(model)) == (1, ["Cast", "OneHotEncoder"])


@pytest.mark.parametrize(
    ("attributes", "kind", "reason"),
    [
        ("cats_int64s = [1, 1]", "int64", "twice"),
        ("cats_int64s = [1], zeros = 0", "int64", "refused"),
        ('cats_strings = ["a"]', "string", "type string"),
        ("zeros = 1", "int64", "no categories"),
    ],
)
def test_an_encoder_of_another_kind_is_left_alone(attributes, kind, reason):
    """The reference provider has it."""
    text = f"graph(x: {kind}[3]) -> (y) {{ y = ai.onnx.ml.OneHotEncoder(x) {{{attributes}}} }}"
    assert reason in declines(EXPAND_ONE_HOT_ENCODER, text, opset=OPSET)
