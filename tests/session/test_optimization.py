"""What a session's options say about optimization."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.models import model
from support.sessions import options_of

import sardonyx as ort
from sardonyx.errors import InvalidArgument, InvalidGraph, OptimizationError, SardonyxError
from sardonyx.formats.onnx import load, save, to_bytes
from sardonyx.ir import Model
from sardonyx.optimize.contract import Context
from sardonyx.optimize.rule import Rule
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.optimization import target_of
from sardonyx.session.options import GraphOptimizationLevel, SessionOptions

BYTES = to_bytes(model("graph(x: float[2]) -> (y: float[2]) { a = Neg(x) b = Relu(a) y = Exp(b) }"))
WRONG = Rule("use_abs", lambda op, x: op.Relu(op.Neg(x)), lambda op, match, learned: op.Abs(match["x"]))
RAISES = Rule("raises", lambda op, x: op.Relu(op.Neg(x)), lambda op, match, learned: 1 // 0)
FEED = {"x": np.array([-1, 2], np.float32)}


def _options(*rules: Rule, **entries: str) -> SessionOptions:
    options = options_of(**entries)
    for rule in rules:
        options.add_rule(rule)
    return options


class _Prefers(ReferenceProvider):
    """A provider that prefers some operators."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.preferred_operators = frozenset(names)


def test_the_first_provider_that_speaks_of_quantization_decides() -> None:
    """One that reads Q and DQ itself would not take what another has them made to; what else they prefer adds up."""
    reads, computes = _Prefers("QuantizeLinear", "FusedConv"), _Prefers("QLinearConv", "com.microsoft.QGemm", "FusedGemm")
    assert target_of([ReferenceProvider(), reads, computes]).preferred == {"QuantizeLinear", "FusedConv", "FusedGemm"}
    assert target_of([computes, reads]).preferred == {"QLinearConv", "com.microsoft.QGemm", "FusedGemm", "FusedConv"}


def test_a_rule_that_changes_results_is_left_out_of_the_session() -> None:
    """With verify the session warns, goes on without the rule and computes what the model says."""
    options = _options(WRONG)
    options.verify = True
    with pytest.warns(UserWarning, match="optimization use_abs changes results: .*; the session goes on without it"):
        session = InferenceSession(BYTES, options)
    np.testing.assert_allclose(session.run(None, FEED)[0], np.exp([1, 0]), rtol=1e-6)
    assert [problem.optimization for problem in session.optimization_report.problems] == ["use_abs"]


def test_the_model_that_shows_a_problem_is_saved(tmp_path: Path) -> None:
    """With a folder, the replaced nodes and what took their place are saved as models."""
    options = _options(WRONG, optimization__verify="1", optimization__verify_folder=str(tmp_path / "found"))
    with pytest.warns(UserWarning, match=r"use_abs\.onnx shows it"):
        InferenceSession(BYTES, options)
    assert [node.op_type for node in load(tmp_path / "found" / "use_abs.onnx").graph] == ["Neg", "Relu"]
    assert [node.op_type for node in load(tmp_path / "found" / "use_abs.after.onnx").graph] == ["Abs"]


def test_a_rule_that_raises_is_an_error_or_left_out() -> None:
    """By default it is named in an error; with "skip" the session goes on and warns."""
    with pytest.raises(OptimizationError, match="rule raises at .*: ZeroDivisionError"):
        InferenceSession(BYTES, _options(RAISES))
    options = _options(RAISES)
    options.optimizer_failure = "skip"
    with pytest.warns(UserWarning, match="optimization raises failed: "):
        session = InferenceSession(BYTES, options)
    np.testing.assert_allclose(session.run(None, FEED)[0], np.exp([1, 0]), rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "graph(x: bfloat16[1, 1, 4]) -> (y) { w: float[1, 1, 1] = [2] k: float[1] = [3] c = Conv(x, w) y = Mul(c, k) }",
            "inputs 0 and 1 are",
        ),
        (
            'graph(x: float[1, 9, 1]) -> (y) { s: string[] = "x" l: int64[] = 4 y = STFT(x, s, _, l) }',
            "input 1 is tensor",
        ),
    ],
    ids=["types differ", "a text for a number"],
)
def test_types_that_do_not_fit_are_the_models_fault(text: str, message: str) -> None:
    """A rule that fails on them is not blamed: InvalidGraph names the node."""
    with pytest.raises(InvalidGraph, match=message):
        InferenceSession(to_bytes(model(text)))


@pytest.mark.parametrize(
    "text",
    [
        "graph(q: float[1, 2, 6]) -> (y) { y = com.microsoft.MultiHeadAttention(q, q, q) {num_heads = 0} }",
        """graph(x: uint8[1, 2, 4], s: float[], b: float[12], z: uint8[]) -> (y) { w: uint8[4, 12] = ... 1
        y = com.microsoft.QAttention(x, w, b, s, s, _, z, z) {num_heads = 0} }""",
        """graph(x: float[1, 2, 4]) -> (y) { w: int8[1, 4, 400] = ... 1 r: int8[1, 2, 8] = ... 1 s: float[1] = [0.5]
        z: int8[1] = [0] y = com.microsoft.DynamicQuantizeLSTM(x, w, r, _, _, _, _, _, s, z, s, z) {hidden_size = 100} }""",
    ],
    ids=["attention without heads", "quantized attention without heads", "another hidden size"],
)
def test_a_rule_of_our_own_never_fails_on_a_model_at_fault(text: str) -> None:
    """The rule leaves the node alone, and the provider or the run says what is wrong."""
    with pytest.raises(SardonyxError) as caught:
        _run_with_ones(InferenceSession(to_bytes(model(text))))
    assert not isinstance(caught.value, OptimizationError)


def _run_with_ones(session: InferenceSession) -> None:
    session.run(
        None, {item.name: np.ones(item.shape, item.type[7:-1].replace("float", "float32")) for item in session.get_inputs()}
    )


def test_a_pass_that_raises_is_named_once() -> None:
    """In the warning of a session that goes on without it."""

    class Broken:
        name = "broken"

        def run(self, model: Model, context: Context) -> bool:
            raise KeyError("x")

    options = SessionOptions()
    options.add_pass(Broken())
    options.optimizer_failure = "skip"
    with pytest.warns(UserWarning, match="^optimization broken failed: KeyError: 'x'; disable it by its name; the session goes on"):
        InferenceSession(BYTES, options)


def test_unknown_entries_are_accepted() -> None:
    """Entries that concern something else, or nothing, are no error, as in onnxruntime."""
    options = _options(session__disable_prepacking="1", mine__no_such_thing="x", mlas__use_lut_gemm="1")
    assert InferenceSession(BYTES, options).run(None, FEED)[0].shape == (2,)


def test_levels_and_names_reach_the_optimizer() -> None:
    """The level and what is disabled decide what fires."""
    source = to_bytes(model("graph(x: float[2, 3]) -> (y: float[2, 3]) { a = Transpose(x) y = Transpose(a) }"))
    assert InferenceSession(source).optimization_report.fired == {"merge_transposes": 1}
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    assert InferenceSession(source, options).optimization_report.fired == {}
    options = _options(optimization__disable_specified_optimizers="merge_transposes")
    assert InferenceSession(source, options).optimization_report.fired == {}


@pytest.fixture
def large() -> bytes:
    """A model with a weight of 40 kB and one of 8 bytes."""
    return to_bytes(
        model(
            "graph(x: float[2, 100]) -> (y: float[2, 100]) { w: float[100, 100] = ... 1 b: float[2, 1] = [[1], [2]]\n"
            "a = MatMul(x, w) y = Add(a, b) }"
        )
    )


@pytest.mark.parametrize(
    ("entries", "files"),
    [
        ({}, {"opt.onnx"}),
        ({"session__optimized_model_external_initializers_file_name": "opt.bin"}, {"opt.onnx", "opt.bin"}),
    ],
)
def test_the_optimized_model_is_saved(tmp_path: Path, large: bytes, entries: dict[str, str], files: set[str]) -> None:
    """With its data inside or in a file of its own, to be loaded by anyone, with the same results."""
    options = _options(**entries)
    options.optimized_model_filepath = str(tmp_path / "opt.onnx")
    feed: dict[str, Any] = {"x": np.ones((2, 100), np.float32)}
    expected = InferenceSession(large, options).run(None, feed)[0]
    assert {path.name for path in tmp_path.iterdir()} == files
    onnx.checker.check_model(tmp_path / "opt.onnx")
    np.testing.assert_allclose(ort.InferenceSession(tmp_path / "opt.onnx").run(None, feed)[0], expected, rtol=1e-6)
    if "opt.bin" in files:
        assert (tmp_path / "opt.onnx").stat().st_size < 2000


def test_saving_changes_nothing_of_the_session(tmp_path: Path) -> None:
    """The file has the operators of its opset; the session goes as far as without it."""
    text = "graph(x: float[2, 4]) -> (y: float[2, 4]) { a = Softplus(x) b = Tanh(a) y = Mul(x, b) }"
    content, options = to_bytes(model(text, opset=14)), _options()
    options.optimized_model_filepath = str(tmp_path / "opt.onnx")
    assert [place.op_type for place in InferenceSession(content, options).explain()] == ["Mish"]
    assert [node.op_type for node in load(tmp_path / "opt.onnx").graph] == ["Softplus", "Tanh", "Mul"]


def test_defaults_of_inputs_are_saved(tmp_path: Path) -> None:
    """What a feed may leave out before, it may leave out after."""
    source = to_bytes(model("graph(x: float[2], k: float[2]) -> (y: float[2]) { k: float[2] = [2, 3] a = Mul(x, k) y = Relu(a) }"))
    options = _options()
    options.optimized_model_filepath = str(tmp_path / "opt.onnx")
    InferenceSession(source, options)
    feed: dict[str, Any] = {"x": np.array([1, -1], np.float32)}
    assert InferenceSession(tmp_path / "opt.onnx").run(None, feed)[0].tolist() == [2, 0]
    feed["k"] = np.array([5, 5], np.float32)
    assert InferenceSession(tmp_path / "opt.onnx").run(None, feed)[0].tolist() == [5, 0]


def test_small_initializers_stay_inside(tmp_path: Path, large: bytes) -> None:
    """Only tensors of the least size and more go to the data file."""
    options = _options(
        session__optimized_model_external_initializers_file_name="opt.bin",
        session__optimized_model_external_initializers_min_size_in_bytes="50000",
    )
    options.optimized_model_filepath = str(tmp_path / "opt.onnx")
    InferenceSession(large, options)
    assert (tmp_path / "opt.bin").stat().st_size == 0


def test_the_data_file_lies_beside_the_model(tmp_path: Path, large: bytes) -> None:
    """A name with a folder is refused."""
    options = _options(session__optimized_model_external_initializers_file_name="../opt.bin")
    options.optimized_model_filepath = str(tmp_path / "opt.onnx")
    with pytest.raises(InvalidArgument, match="a file name without a folder"):
        InferenceSession(large, options)


def test_what_is_no_rule_is_refused() -> None:
    """add_rule and add_pass say what they take."""
    with pytest.raises(InvalidArgument, match=r"add_rule takes a sardonyx\.optimize\.rule\.Rule"):
        SessionOptions().add_rule("use_abs")
    with pytest.raises(InvalidArgument, match="add_pass takes an object with a name"):
        SessionOptions().add_pass(len)


QUANTIZED = to_bytes(
    model("""graph(x: uint8[n,3,6,6]) -> (y: uint8[n,2,6,6]) {
    s: float[] = 0.1 z: uint8[] = 3 w: int8[2,3,3,3] = ... 7 t: float[2] = [0.05, 0.025] v: int8[2] = [0, 0] r: float[] = 0.2
    o: uint8[] = 100 a = DequantizeLinear(x, s, z) b = DequantizeLinear(w, t, v) {axis = 0}
    c = Conv(a, b) {pads = [1, 1, 1, 1]} y = QuantizeLinear(c, r, o) }""")
)
PIXELS = {"x": np.random.default_rng(7).integers(0, 256, (2, 3, 6, 6)).astype(np.uint8)}


class _Integers(ReferenceProvider):
    """A provider that says it is better at integers."""

    name = "IntegerExecutionProvider"
    preferred_operators = frozenset(["QLinearConv"])


def _operators(session: InferenceSession) -> list[str]:
    """Without those that the layout step adds, or puts into a domain of its own."""
    names = [placement.op_type.rpartition(".")[2] for placement in session.explain()]
    return [name for name in names if name != "Transpose"]


def test_quantized_models_run_in_floats_unless_a_provider_prefers_integers() -> None:
    """Either way the result is the same to a step; the CPU provider prefers integers."""
    plain, integers = (
        InferenceSession(QUANTIZED, providers=[ReferenceProvider()]),
        InferenceSession(QUANTIZED, providers=[_Integers()]),
    )
    assert _operators(plain) == ["DequantizeLinear", "Conv", "Mul", "QuantizeLinear"]
    assert _operators(integers) == _operators(InferenceSession(QUANTIZED)) == ["QLinearConv"]
    (one,), (other,) = plain.run(None, PIXELS), integers.run(None, PIXELS)
    assert np.abs(one.astype(int) - other.astype(int)).max() <= 1


def test_a_saved_model_has_quantized_operators(tmp_path: Path) -> None:
    """The session that saves it, and one that loads it, go on from there for their own providers."""
    options = SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    session = InferenceSession(QUANTIZED, options, providers=[ReferenceProvider()])
    assert [node.op_type for node in onnx.load(tmp_path / "saved.onnx").graph.node] == ["QLinearConv"]
    again = InferenceSession(str(tmp_path / "saved.onnx"), providers=[ReferenceProvider()])
    assert _operators(session) == _operators(again) == ["DequantizeLinear", "Conv", "Mul", "QuantizeLinear"]
    np.testing.assert_array_equal(again.run(None, PIXELS)[0], session.run(None, PIXELS)[0])


def test_quantized_operators_may_be_kept_out_of_files(tmp_path: Path) -> None:
    """With the entry that onnxruntime has for it."""
    options = _options(session__disable_quant_qdq="1")
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    InferenceSession(QUANTIZED, options)
    found = [node.op_type for node in onnx.load(tmp_path / "saved.onnx").graph.node]
    assert found == ["DequantizeLinear", "DequantizeLinear", "Conv", "QuantizeLinear"]


def test_external_data_may_lie_in_another_folder(tmp_path: Path, large: bytes) -> None:
    """A config entry names the folder of the data of a model that is given as bytes."""
    (tmp_path / "data").mkdir()
    save(load(large), tmp_path / "data" / "m.onnx", external_data=True)
    source = (tmp_path / "data" / "m.onnx").read_bytes()
    options = _options(session__model_external_initializers_file_folder_path=str(tmp_path / "data"))
    assert InferenceSession(source, options).run(None, {"x": np.ones((2, 100), np.float32)})[0].shape == (2, 100)
    with pytest.raises(InvalidArgument, match="external_dir"):
        InferenceSession(source)


def test_verify_may_be_an_argument() -> None:
    """`InferenceSession(..., verify=True)` is the option for one session; the options that were given stay as they are."""
    options = _options(WRONG)
    with pytest.warns(UserWarning, match="use_abs changes results"):
        session = InferenceSession(BYTES, options, verify=True)
    np.testing.assert_allclose(session.run(None, FEED)[0], np.exp([1, 0]), rtol=1e-6)
    assert not options.verify


def test_one_text_is_no_list_of_names() -> None:
    """A text where a list of names belongs is told."""
    with pytest.raises(InvalidArgument, match="named in a list, got the text 'merge_casts'"):
        InferenceSession(BYTES, disabled_optimizers="merge_casts")
