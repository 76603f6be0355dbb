"""Feeds are checked, results belong to the user."""

from __future__ import annotations

import types
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import SparseTensorType, Value
from sardonyx.session.feeds import (
    SharedSymbols,
    check_feeds,
    make_sparse,
    own_results,
    select_outputs,
    symbol_sizes,
    unknown_output,
    with_inner_values,
)
from sardonyx.values.dlpack import to_dlpack


def _inputs(text: str) -> list[Value]:
    return model(f"graph({text}) -> (y: float[]) {{\ny = Constant() {{value_float = 1.0}}\n}}").graph.inputs


def _check(text: str, feed: Any) -> list[Any]:
    return check_feeds(_inputs(text), {}, feed, "m.onnx")


def test_an_array_of_the_declared_type_passes_as_it_is() -> None:
    """Nothing is copied."""
    x = np.zeros((2, 3), np.float32)
    assert _check("x: float[n, 3]", {"x": x})[0] is x


def test_lists_and_numbers_become_arrays() -> None:
    """Where no value changes."""
    assert _check("x: float[2]", {"x": [1, 2]})[0].dtype == np.float32
    assert _check("x: int64[]", {"x": 3})[0].shape == ()


def test_whole_numbers_become_complex() -> None:
    """Without a warning of NumPy's."""
    assert _check("x: complex64[2]", {"x": [1, 2]})[0].tolist() == [1, 2]


def test_strings_come_as_any_string_array() -> None:
    """Fixed-width, bytes and object arrays become object arrays of str."""
    for array in (np.array(["a", "b"]), np.array([b"a", b"b"]), np.array(["a", "b"], object)):
        assert _check("x: string[2]", {"x": array})[0].tolist() == ["a", "b"]


class _Sparse:
    def toarray(self) -> Array:
        return np.zeros(2, np.float32)


@pytest.mark.parametrize(
    ("text", "feed", "message"),
    [
        ("x: float[2]", {}, r"Required inputs \(\['x'\]\) are missing"),
        ("pixels: float[2]", {"pixels": np.zeros(2, np.float32), "pixel": 1}, "no input 'pixel'.*did you mean 'pixels'"),
        ("x: float[2]", {"x": np.zeros(2)}, r"input 'x': expected tensor\(float\), got tensor\(double\) of shape \(2,\)"),
        ("x: float[2]", {"x": np.zeros((2, 1), np.float32)}, r"expected rank 1, shape \(2\), got rank 2, shape \(2, 1\)"),
        ("x: float[n, 3]", {"x": np.zeros((2, 4), np.float32)}, r"expected shape \(n, 3\), got \(2, 4\): axis 1 must be 3, not 4"),
        ("x: int64[2]", {"x": [1.5, 2]}, "numbers that do not fit"),
        ("x: float[2]", {"x": None}, r"expected tensor\(float\), got None"),
        ("x: float[2]", {"x": [[1], [1, 2]]}, "that is no array"),
        ("x: float[2]", {"x": np.array(["2020-01-01"], "datetime64[D]")}, "an array of datetime64"),
        ("x: seq(float[2])", {"x": np.zeros(2)}, r"expected a list for seq\(tensor\(float\)\), got ndarray"),
        ("x: seq(float[2])", {"x": [np.zeros(3, np.float32)]}, r"input 'x'\[0\]: expected shape"),
        ("x: map(int64, float[])", {"x": 3}, "expected a dict"),
        ("x: float[2]", {"x": np.array([1.5, 2.5], object)}, r"got an array of objects \(float\) of shape \(2,\); convert it"),
        ("x: float[2]", {"x": {"a": 1}}, "got a dict, which is no array; feed an array or a list"),
        ("x: float[2]", {"x": _Sparse()}, r"got a _Sparse, which is no array; feed what its toarray\(\) returns"),
        ("x: float[2]", [1], "must be a mapping of input names to values, got list; write {'x': …}"),
        (
            "x: float[2], z: float[2]",
            types.SimpleNamespace(columns=["x"]),
            r"feed \{name: table\[\[name\]\] for name in table.columns\}",
        ),
        ("x: float[n, 1]", {"x": np.zeros(3, np.float32)}, r"got rank 1, shape \(3,\); reshape\(-1, 1\) makes a column"),
        (
            "age: float[2]",
            {"Age": np.zeros(2, np.float32)},
            r"\['age'\]\) are missing from input feed \(\['Age'\]\); did you mean 'Age'",
        ),
    ],
)
def test_a_wrong_feed_is_told_what_was_expected(text: str, feed: Any, message: str) -> None:
    """Each message names the model and the input, what was found and what was expected."""
    with pytest.raises(InvalidArgument, match=f"model m.onnx.*{message}"):
        _check(text, feed)


def test_a_default_takes_the_place_of_a_missing_input() -> None:
    """Overridable initializers need not be fed."""
    default = np.zeros(2, np.float32)
    assert check_feeds(_inputs("x: float[2]"), {"x": default}, {}, "m")[0] is default


def test_optionals_sequences_and_maps_pass() -> None:
    """None, lists and dicts are values."""
    values = _check("o: optional(float[2]), s: seq(int64[]), m: map(string, float[])", {"o": None, "s": [1, 2], "m": {"a": 1.0}})
    assert values[0] is None
    assert [item.dtype for item in values[1]] == [np.int64] * 2
    assert values[2]["a"].dtype == np.float32


def test_swapped_bytes_are_brought_to_native_order() -> None:
    """Kernels see native arrays only."""
    (x,) = _check("x: float[2]", {"x": np.array([1, 2], ">f4")})
    assert x.dtype.isnative
    assert x.tolist() == [1, 2]


def test_outputs_are_selected_by_name_in_the_wanted_order() -> None:
    """None and an empty list mean all."""
    assert select_outputs(["b", "a"], ["a", "b"], "m") == [1, 0]
    assert select_outputs(None, ["a", "b"], "m") == select_outputs([], ["a", "b"], "m") == [0, 1]


def test_an_unknown_output_is_refused() -> None:
    """With the known ones and the nearest."""
    with pytest.raises(InvalidArgument, match=r"no output 'logit'; its outputs are \['logits'\]; did you mean 'logits'"):
        select_outputs(["logit"], ["logits"], "m")


def test_a_result_that_is_the_feed_is_copied() -> None:
    """The user may write to a result without changing what he fed."""
    x = np.zeros(4, np.float32)
    (y,) = own_results([x[:2]], [x])
    assert not np.shares_memory(x, y)


def test_a_result_of_its_own_memory_is_not_copied() -> None:
    """A view of a temporary that nobody else has stays."""
    y = np.zeros((2, 2), np.float32).reshape(4)
    assert own_results([y], [])[0] is y


def test_one_array_given_out_twice_is_copied_once() -> None:
    """Two results never share memory."""
    y = np.zeros(4, np.float32)
    first, second = own_results([y, y], [])
    assert first is y
    assert not np.shares_memory(first, second)


def test_two_views_of_one_array_do_not_share_it() -> None:
    """The first keeps the memory."""
    held = np.zeros((2, 2), np.float32)
    first, second = own_results([held.reshape(4), held.reshape(1, 4)], [])
    assert np.shares_memory(first, held)
    assert not np.shares_memory(first, second)


def test_read_only_and_transposed_results_are_copied() -> None:
    """Results are writeable and dense."""
    constant = np.zeros(3)
    constant.flags.writeable = False
    results = own_results([constant, np.zeros((2, 3)).T], [])
    assert all(result.flags.writeable and result.flags.c_contiguous for result in results)


def test_values_of_a_map_declared_with_one_element_are_scalars() -> None:
    """As converters of scikit-learn's models declare them, and onnxruntime takes them."""
    (values,) = _check("m: map(string, float[1])", {"m": {"a": 1.5, "b": 2}})
    assert {key: (item.shape, float(item)) for key, item in values.items()} == {"a": ((), 1.5), "b": ((), 2.0)}


def test_numbers_of_a_map_get_its_type_together() -> None:
    """Floats and ints become float32; a number that does not fit is named with its key."""
    floats, wholes = _check("f: map(int64, float[]), g: map(int64, int32[])", {"f": {3: 0.5, 1: 2.0}, "g": {7: 9}})
    assert list(floats.items()) == [(3, 0.5), (1, 2.0)]
    assert {value.dtype for value in floats.values()} == {np.dtype(np.float32)}
    assert wholes[7].dtype == np.int32
    with pytest.raises(InvalidArgument, match=r"'g'\[7\].*do not fit"):
        _check("f: map(int64, float[]), g: map(int64, int32[])", {"f": {}, "g": {1: 2, 7: 1 << 40}})


def test_results_inside_sequences_and_maps_are_owned_too() -> None:
    """At every depth."""
    x = np.zeros(2)
    listed, mapped = own_results([[x], {"a": x}], [x])
    assert not np.shares_memory(listed[0], x)
    assert not np.shares_memory(mapped["a"], listed[0])


def test_symbols_have_the_sizes_that_are_fed() -> None:
    """The first of several; unnamed dimensions and numbers are not among them."""
    assert symbol_sizes(_inputs("x: float[n, 4], z: float[m, n]"), [np.zeros((3, 4)), np.zeros((2, 5))]) == {"n": 3, "m": 2}


@pytest.mark.parametrize(("shape", "holds"), [((2, 3), True), ((4, 3), False), ((2, 4), False)])
def test_each_shared_symbol_has_one_size(shape: tuple[int, int], holds: bool) -> None:
    """Every one that occurs in several places is looked at."""
    symbols = SharedSymbols(_inputs("x: float[n, m], z: float[n, m], w: float[k]"))
    assert symbols.hold([np.zeros((2, 3)), np.zeros(shape), np.zeros(9)]) is holds


class _Torchlike:
    """A tensor as torch has it: without NumPy's form for bfloat16, with DLPack's."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def numpy(self) -> Array:
        if self._array.dtype.kind != "f":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._array

    def __dlpack__(self, **_options: object) -> object:
        return to_dlpack(self._array)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _fed(kind: str, value: object) -> object:
    return _check(f"x: {kind}", {"x": value})[0]


def test_another_packages_tensor_has_a_type_of_its_own() -> None:
    """Doubles are refused for floats, as NumPy's are."""
    assert _fed("float[2]", _Torchlike(np.float32([1, 2]))).tolist() == [1, 2]
    with pytest.raises(InvalidArgument, match="got tensor.double. of shape"):
        _fed("float[2]", _Torchlike(np.float64([1, 2])))


def test_another_packages_bfloat16_comes_by_dlpack() -> None:
    """NumPy has no such type."""
    assert _fed("bfloat16[2]", _Torchlike(np.array([1, 2], ml_dtypes.bfloat16))).tolist() == [1, 2]


def test_a_tensor_that_gives_no_array_is_refused() -> None:
    """With what it said."""

    class Distant:
        def numpy(self) -> None:
            raise TypeError("convert to cpu first")

    with pytest.raises(InvalidArgument, match="Distant is no array: TypeError: convert to cpu first"):
        _fed("float[2]", Distant())


def test_whatever_is_fed_to_a_tensor_of_strings_becomes_text() -> None:
    """Numbers, nothing, and bytes, also those of fixed length."""
    given = np.array([1, 2.5, None, float("nan"), b"ab", "x"], object)
    assert _fed("string[n]", given).tolist() == ["1", "2.5", "None", "nan", "ab", "x"]
    assert _fed("string[n]", [1, "b"]).tolist() == ["1", "b"]
    assert _fed("string[n]", np.array([b"a", b"bc"]).astype("V2")).tolist() == ["a\0", "bc"]
    texts = np.array(["a"], object)
    assert _fed("string[n]", texts) is texts


def test_bytes_that_are_no_text_are_refused() -> None:
    """Strings of ONNX are UTF-8."""
    with pytest.raises(InvalidArgument, match="expected text or its UTF-8 bytes"):
        _fed("string[n]", [b"\xff"])


def test_one_element_of_any_shape_is_a_scalar() -> None:
    """As onnxruntime takes it; two are none."""
    assert _fed("float[]", np.ones((1, 1), np.float32)).shape == ()
    with pytest.raises(InvalidArgument, match="expected rank 0"):
        _fed("float[]", np.ones(2, np.float32))


def test_an_optional_may_be_left_out() -> None:
    """It has no element then."""
    assert _check("x: optional(float[2])", {}) == [None]


@pytest.mark.parametrize("names", ["y", b"y", 3])
def test_output_names_that_are_no_list_are_a_type_error(names: Any) -> None:
    """One text is not taken letter by letter."""
    with pytest.raises(TypeError, match="output names are given in a list"):
        select_outputs(names, ["y"], "m")


@pytest.mark.parametrize("name", [3, None, ["y"], {}])
def test_output_names_that_are_no_texts_are_a_type_error(name: Any) -> None:
    """Also those that a dictionary cannot have for a key."""
    assert with_inner_values([name], frozenset(["y"])) == ()
    with pytest.raises(TypeError, match="output names are texts"):
        select_outputs([name], ["y"], "m")


@pytest.mark.parametrize("ragged", [[["a", "b"], ["c"]], [[1, 2], [3]], [np.ones(2), np.ones(3)], {"a": 1}])
def test_ragged_lists_are_no_texts(ragged: Any) -> None:
    """Nor are other collections: their text would be that of Python."""
    with pytest.raises(InvalidArgument, match="expected texts, got a (list|ndarray|dict) as an element"):
        _fed("string[n]", ragged)


def test_collections_in_an_array_of_objects_are_texts() -> None:
    """Those of Python, as in onnxruntime; nobody puts them there by mistake."""
    array = np.empty(2, object)
    array[0], array[1] = ["a"], {"b": 1}
    assert _fed("string[n]", array).tolist() == ["['a']", "{'b': 1}"]


def test_ragged_lists_are_no_array() -> None:
    """The error names the input and the type that it has."""
    with pytest.raises(InvalidArgument, match=r"'x': expected tensor\(float\), got a list that is no array"):
        _fed("float[n, m]", [[1.0, 2.0], [3.0]])


def test_results_that_are_declared_sparse_become_sparse() -> None:
    """They hold what differs from zero, by its place in the flat tensor; others stay as they are."""
    dense = np.array([[0, 2], [3, 0]], np.float32)
    found, same = make_sparse([dense, dense], [True, False])
    assert (found.values().tolist(), found.dense_shape()) == ([2, 3], [2, 2])
    assert found.get_coo_data().indices().tolist() == [1, 2]
    assert same is dense


@pytest.mark.parametrize("names", [None, [], ["y"], "x", ["y", 5]])
def test_names_of_outputs_only_are_no_inner_values(names: Any) -> None:
    """Nor is what names no output and is no list of texts, which is refused elsewhere."""
    assert with_inner_values(names, frozenset(["y"])) == ()


def test_a_name_beside_those_of_outputs_is_an_inner_value() -> None:
    """All names are returned, since one model computes them together."""
    assert with_inner_values(["y", "a"], frozenset(["y"])) == ("y", "a")


def test_an_unknown_output_is_said_with_the_nearest() -> None:
    """And with all there are."""
    assert unknown_output("logit", ["logits"]) == "there is no output 'logit'; its outputs are ['logits']; did you mean 'logits'?"


def test_a_sparse_tensor_is_fed_to_a_sparse_input() -> None:
    """As its elements and zeros; a dense array is taken too."""
    kind = SparseTensorType(DataType.FLOAT, (2, 3))
    sparse = ort.SparseTensor.sparse_coo_from_numpy([2, 3], np.float32([5, 6]), np.array([1, 5]))
    for given in (sparse, sparse.to_dense()):
        (found,) = check_feeds([Value("x", kind)], {}, {"x": given}, "m")
        assert found.tolist() == [[0, 5, 0], [0, 0, 6]]


def test_new_maps_are_the_callers_own_without_a_copy() -> None:
    """A list of maps to numbers that is one result alone, of a run that was fed arrays."""
    maps = [{1: 0.5}, {1: 0.25}]
    assert own_results([maps], [np.zeros(2)])[0] is maps
    first, second = own_results([maps, maps], [np.zeros(2)])
    assert first is maps
    assert second == maps
    assert second[0] is not maps[0]


def test_maps_that_were_fed_are_copied() -> None:
    """Whatever way they come back."""
    fed = [{1: 0.5}]
    (found,) = own_results([list(fed)], [fed])
    assert found == fed
    assert found[0] is not fed[0]


def test_an_optional_tensor_has_the_declared_shape() -> None:
    """Of an input of a session too, which leaves the shapes of a list's elements open."""
    text = "graph(o: optional(float[2])) -> (b: bool[]) {\nb = OptionalHasElement(o)\n}"
    session = ort.InferenceSession(to_bytes(model(text)))
    assert session.get_inputs()[0].shape == [2]
    assert session.run(None, {"o": np.zeros(2, np.float32)})[0]
    with pytest.raises(InvalidArgument, match=r"input 'o': expected shape \(2\), got \(3,\)"):
        session.run(None, {"o": np.zeros(3, np.float32)})


@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "ReferenceExecutionProvider"])
def test_subclasses_of_arrays_count_as_arrays(provider: str) -> None:
    """A matrix multiplies by elements, and masked elements are values, as in onnxruntime; results are plain arrays."""
    text = "graph(x: float[n, n]) -> (y: float[n, n]) {\ny = Mul(x, x)\n}"
    session = ort.InferenceSession(to_bytes(model(text)), providers=[provider])
    plain = np.float32([[1, 2], [3, 4]])
    for given in (plain.view(np.matrix), np.ma.masked_array(plain, plain > 2)):
        found = session.run(None, {"x": given})[0]
        assert (type(found), found.tolist()) == (np.ndarray, [[1, 4], [9, 16]])


@pytest.mark.parametrize("kind", ["meta", "sparse", "bfloat16", "requires_grad"])
def test_a_list_of_tensors_that_torch_does_not_convert_is_refused(kind: str) -> None:
    """The message is the session's, and keeps torch's words."""
    torch = pytest.importorskip("torch")
    made = {
        "meta": lambda: torch.ones(2, device="meta"),
        "sparse": lambda: torch.ones(2).to_sparse(),
        "bfloat16": lambda: torch.ones(2, dtype=torch.bfloat16),
        "requires_grad": lambda: torch.ones(2, requires_grad=True),
    }[kind]()
    with pytest.raises(InvalidArgument, match="'x': expected"):
        _check("x: float[1, 2]", {"x": [made]})


def test_an_ort_value_keeps_its_type() -> None:
    """Of float8 too, whose method numpy gives bytes."""
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x38, 0x40], np.uint8), int(DataType.FLOAT8E4M3FN))
    (array,) = _check("x: float8e4m3fn[2]", {"x": value})
    assert array.astype(np.float32).tolist() == [1, 2]
