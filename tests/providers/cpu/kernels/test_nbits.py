"""MatMulNBits: widths, blocks, zero points, bias and tails against the reference; what is left to it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.cpu_run import LEVELS, assert_close

from sardonyx import InferenceSession, SessionOptions
from sardonyx.dtypes import Array
from sardonyx.errors import SardonyxError

_ATTRIBUTES = {"K": 70, "N": 67, "bits": 4, "block_size": 32}


def _weights(zeros: str = "", **attributes: int) -> dict[str, Array]:
    about = {**_ATTRIBUTES, **attributes}
    N, bits, block = about["N"], about["bits"], about["block_size"]
    blocks, generator = -(-about["K"] // block), np.random.default_rng(0)
    found: dict[str, Array] = {
        "b": generator.integers(0, 256, (N, blocks, block * bits // 8), dtype=np.uint8),
        "scales": generator.uniform(0.5, 1.5, (N, blocks)).astype(np.float32),
    }
    if zeros == "uint8":
        found["zeros"] = generator.integers(0, 256, (N, -(-blocks * bits // 8)), dtype=np.uint8)
    elif zeros == "float":
        found["zeros"] = generator.uniform(0, 15, (N, blocks)).astype(np.float32)
    return found


def _model(constants: dict[str, Array], given: tuple[str, ...] = (), tail: bool = False, **attributes: int) -> bytes:
    about = {**_ATTRIBUTES, **attributes}
    names = [name if name in constants or name in given else "" for name in ("b", "scales", "zeros", "g_idx", "bias")]
    node = helper.make_node("MatMulNBits", ["a", *names], ["p"], domain="com.microsoft", **about)
    last = [helper.make_node("Relu", ["p"], ["y"])] if tail else [helper.make_node("Identity", ["p"], ["y"])]
    inputs = [helper.make_tensor_value_info("a", TensorProto.FLOAT, ["m", about["K"]])]
    inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, [about["N"]]) for name in given]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", about["N"]])]
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(
        helper.make_graph([node, *last], "g", inputs, outputs, initializers), opset_imports=opsets, ir_version=8
    )
    return bytes(made.SerializeToString())


def _session(model: bytes, provider: str = "CPU", threads: int = 1) -> InferenceSession:
    options = SessionOptions()
    options.intra_op_num_threads = threads
    return InferenceSession(model, options, providers=[f"{provider}ExecutionProvider"])


def _runs_natively(session: InferenceSession) -> bool:
    return all(placement.provider == "CPUExecutionProvider" for placement in session.explain())


def _a(rows: int, K: int = 70) -> Array:
    return np.random.default_rng(rows).standard_normal((rows, K)).astype(np.float32)


@pytest.mark.parametrize("zeros", ["", "uint8", "float"])
@pytest.mark.parametrize(("bits", "block_size"), [(2, 16), (3, 16), (4, 32), (4, 128), (5, 32), (6, 64), (7, 16), (8, 64)])
@pytest.mark.parametrize("isa", LEVELS)
def test_results_are_those_of_the_definition(
    isa: str, bits: int, block_size: int, zeros: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For one row and many, in one session."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    about = {"bits": bits, "block_size": block_size, "K": 300}
    model = _model(_weights(zeros, **about), **about)
    session = _session(model)
    assert _runs_natively(session)
    for rows in (0, 1, 6, 13):
        a = _a(rows, 300)
        assert_close(session.run(None, {"a": a})[0], _session(model, "Reference").run(None, {"a": a})[0], 1e-5)


@pytest.mark.parametrize("zeros", ["", "uint8"])
@pytest.mark.parametrize(("bits", "block_size"), [(3, 32), (4, 32), (6, 16), (8, 64)])
@pytest.mark.parametrize("isa", LEVELS)
def test_accuracy_level_4_allows_rows_of_8_bits(
    isa: str, bits: int, block_size: int, zeros: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is that of rounding a row to 127 steps at most; a row alone has the bits that it has in a batch."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    about = {"bits": bits, "block_size": block_size, "K": 300, "accuracy_level": 4}
    model, a = _model(_weights(zeros, **about), tail=True, **about), _a(9, 300)
    session = _session(model)
    assert _runs_natively(session)
    found, exact = session.run(None, {"a": a})[0], _session(model, "Reference").run(None, {"a": a})[0]
    assert np.sqrt(np.square(found - exact).mean() / np.square(exact).mean()) < 0.01
    assert session.run(None, {"a": a[4:5]})[0].tobytes() == found[4:5].tobytes()
    assert _session(model, threads=2).run(None, {"a": a})[0].tobytes() == found.tobytes()


def test_a_bias_and_what_follows_are_in_the_store() -> None:
    """A constant bias or a computed one."""
    weights, bias = _weights("uint8"), _a(1, 67)[0]
    for model, feed in (
        (_model({**weights, "bias": bias}, tail=True), {"a": _a(5)}),
        (_model(weights, ("bias",), tail=True), {"a": _a(5), "bias": bias}),
    ):
        session = _session(model)
        assert _runs_natively(session)
        assert_close(session.run(None, feed)[0], _session(model, "Reference").run(None, feed)[0], 1e-5)


def test_a_row_has_the_same_bits_in_batches_of_up_to_four_of_more_and_on_two_threads() -> None:
    """Sums are made of the same chains, in each of the two ways to multiply."""
    about = {"K": 1000, "N": 200}
    model, a = _model(_weights(**about), **about), _a(9, 1000)
    whole = _session(model).run(None, {"a": a})[0]
    assert _session(model, threads=2).run(None, {"a": a})[0].tobytes() == whole.tobytes()
    assert _session(model).run(None, {"a": a[2:7]})[0].tobytes() == whole[2:7].tobytes()
    few = _session(model, threads=2).run(None, {"a": a[3:7]})[0]
    assert _session(model).run(None, {"a": a[3:7]})[0].tobytes() == few.tobytes()
    assert _session(model).run(None, {"a": a[4:5]})[0].tobytes() == few[1:2].tobytes()


@pytest.mark.parametrize("spread", [0, 6])
@pytest.mark.parametrize("isa", LEVELS)
def test_a_row_alone_is_no_less_exact_than_in_a_batch(isa: str, spread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is multiplied by digits; float64 judges."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    about = {"K": 2048, "N": 300}
    weights, generator = _weights(**about), np.random.default_rng(1)
    numbers = np.stack([weights["b"] & 15, weights["b"] >> 4], axis=-1).reshape(300, -1, 32).astype(np.float64) - 8
    exact_weights = (numbers * weights["scales"][:, :, None].astype(np.float64)).reshape(300, -1)
    a = (generator.standard_normal((5, 2048)) * 10.0 ** generator.uniform(-spread, spread, (5, 2048))).astype(np.float32)
    session = _session(_model(weights, **about))
    exact, magnitude = a[0].astype(np.float64) @ exact_weights.T, np.abs(a[0]).astype(np.float64) @ np.abs(exact_weights).T
    alone, among = (np.square((session.run(None, {"a": rows})[0][0] - exact) / magnitude).mean() for rows in (a[:1], a))
    assert alone <= among * 1.01


@pytest.mark.parametrize("what", ["g_idx", "small scales", "small zeros", "bits of 9"])
def test_other_forms_are_left_to_the_reference(what: str) -> None:
    """Groups of rows in any order run there, and what fits no weights is its error."""
    weights, about = _weights("uint8"), {}
    if what == "g_idx":
        weights["g_idx"] = np.zeros(70, np.int32)
    elif what == "small scales":
        weights["scales"] = weights["scales"][:-1]
    elif what == "small zeros":
        weights["zeros"] = weights["zeros"][:-1]
    else:
        about = {"bits": 9}
    session = _session(_model(weights, **about))
    assert not _runs_natively(session)
    if what == "g_idx":
        assert session.run(None, {"a": _a(2)})[0].shape == (2, 67)
    else:
        with pytest.raises(SardonyxError):
            session.run(None, {"a": _a(2)})
