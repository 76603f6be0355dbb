"""Compiled libraries of custom operators: loading them, and every function that they may call, by a library in C."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.custom_ops import DOMAIN, custom_model, library_path, peer_session, run_custom, session_of
from support.models import model

import sardonyx
from sardonyx import errors
from sardonyx.custom_ops.library import api_base, load_library
from sardonyx.dtypes import DataType
from sardonyx.formats.onnx import to_bytes

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)
FLOAT, INT64, STRING = DataType.FLOAT, DataType.INT64, DataType.STRING


def test_a_missing_file_is_named() -> None:
    """The loader's text is part of the message, as onnxruntime's."""
    with pytest.raises(errors.Fail, match=r"/nowhere/libx\.so.*cannot open shared object"):
        load_library("/nowhere/libx.so", {})


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    """With the loader's text."""
    path = tmp_path / "libtext.so"
    path.write_text("not a library")
    with pytest.raises(errors.Fail, match="libtext"):
        load_library(path, {})


def test_a_library_without_the_function_is_refused() -> None:
    """The message names the function that is missing."""
    import _ctypes

    with pytest.raises(errors.Fail, match="has no function RegisterCustomOps"):
        load_library(_ctypes.__file__, {})


def test_the_operators_are_read_into_definitions() -> None:
    """Domain, name, types and arities come from the library's callbacks."""
    found = {item.name: item for item in load_library(library_path(), {}).definitions}
    assert {item.domain for item in found.values()} == {DOMAIN}
    assert [formal.dtype for formal in found["Attributes"].outputs] == [STRING, FLOAT, INT64, FLOAT]
    assert found["AddAll"].inputs[0].arity == 2
    assert found["AddAll"].inputs[0].min_arity == 2


def test_operators_for_a_device_are_left_out() -> None:
    """Their kernels would be given addresses of the host."""
    assert "OnDevice" not in {item.name for item in load_library(library_path(), {}).definitions}


def test_a_table_of_every_version_is_handed_out() -> None:
    """OrtApiBase lies at an address that does not change."""
    assert api_base() == api_base() != 0


CASES: dict[str, tuple[str, list[Any], list[DataType | None], dict[str, Any], list[Any]]] = {
    "kernels of version 1": ("Scale", [X], [FLOAT], {"factor": 2.0, "offset": 1}, [2 * X + 1]),
    "an empty tensor": ("Scale", [np.zeros((0, 3), np.float32)], [FLOAT], {"factor": 2.0, "offset": 1}, [np.zeros((0, 3))]),
    "a scalar": ("Scale", [np.float32(3)], [FLOAT], {"factor": 2.0, "offset": 1}, [np.float32(7)]),
    "attributes of all kinds": (
        "Attributes",
        [X],
        [STRING, FLOAT, INT64, FLOAT],
        {"text": "naïve", "floats": [0.5, 1.5], "ints": [3, 4, 5], "tensor": np.array([7, 8], np.float32)},
        [["naïve"], [0.5, 1.5], [3, 4, 5], [7, 8]],
    ),
    "variadic inputs": ("AddAll", [X, X, X], [FLOAT], {}, [3 * X]),
    "an optional input that is there": ("AddOptional", [X, 2 * X], [FLOAT], {}, [3 * X]),
    "an optional input that is left out": ("AddOptional", [X], [FLOAT], {}, [X]),
    "a parallel loop": ("Twice", [X[:, 0].copy()], [FLOAT], {"times": 2}, [[1, 1, 4, 4]]),
    "an operator of the runtime": ("Leaky", [X], [FLOAT], {}, [np.where(X < 0, X / 2, X)]),
    "texts": ("Shout", [np.array(["a", "", "ü"], object)], [STRING], {}, [["a!", "!", "ü!"]]),
    "no texts": ("Shout", [np.array([], object)], [STRING], {}, [[]]),
    "an open type, float": ("Same", [X], [FLOAT], {}, [X]),
    "an open type, bool": ("Same", [X > 0], [DataType.BOOL], {}, [X > 0]),
    "an open type, float16": ("Same", [X.astype(np.float16)], [DataType.FLOAT16], {}, [X]),
    "an open type, double": ("Same", [X.astype(np.float64)], [DataType.DOUBLE], {}, [X]),
    "an open type, int64": ("Same", [X.astype(np.int64)], [INT64], {}, [X]),
}


def _model(case: str) -> tuple[bytes, dict[str, Any]]:
    from onnx import numpy_helper

    op_type, inputs, outputs, attributes, _ = CASES[case]
    given = {name: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value for name, value in attributes.items()}
    return custom_model(op_type, inputs, outputs, **given), {f"x{index}": np.asarray(item) for index, item in enumerate(inputs)}


@pytest.mark.parametrize("case", CASES)
def test_operators_compute(case: str) -> None:
    """What the library in C computes for its node, in three runs of one session."""
    model, feed = _model(case)
    session = session_of(model)
    for _ in range(3):
        for result, expected in zip(session.run(None, feed), CASES[case][-1], strict=True):
            assert result.tolist() == np.asarray(expected).tolist()


@pytest.mark.parametrize("case", CASES)
def test_operators_compute_as_in_onnxruntime(case: str) -> None:
    """The same binary, run by onnxruntime, gives the same."""
    model, feed = _model(case)
    for result, expected in zip(session_of(model).run(None, feed), peer_session(model).run(None, feed), strict=True):
        assert result.dtype == expected.dtype
        assert result.tolist() == expected.tolist()


def test_shapes_may_change_from_run_to_run() -> None:
    """Outputs that were allocated for the shape before are allocated anew."""
    session = session_of(custom_model("Scale", [X], [FLOAT], factor=2.0, offset=0))
    results = [session.run(None, {"x0": np.ones(shape, np.float32)})[0] for shape in ((2, 3), (4, 1), (2, 3), (0, 5))]
    assert [result.shape for result in results] == [(2, 3), (4, 1), (2, 3), (0, 5)]
    assert all((result == 2).all() for result in results)


def test_results_are_the_users_own() -> None:
    """A later run does not write to what an earlier one gave."""
    session = session_of(custom_model("Scale", [X], [FLOAT], factor=2.0, offset=0))
    first = session.run(None, {"x0": X})[0]
    session.run(None, {"x0": X + 1})
    assert (first == 2 * X).all()


def test_inputs_need_not_be_dense() -> None:
    """A transposed array is copied for the library."""
    session = session_of(custom_model("Scale", [X], [FLOAT], factor=2.0, offset=0))
    assert (session.run(None, {"x0": X.T})[0] == 2 * X.T).all()


def test_a_kernel_knows_its_node() -> None:
    """Name, input names and constant inputs; the message that it logs is a trace event."""
    found = run_custom("Facts", [X, np.array([2.5], np.float32)], [STRING], constants=[1], name="my node")
    assert found[0].tolist() == ["my node", "x0", "2.5"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1, errors.Fail),
        (2, errors.InvalidArgument),
        (3, errors.NoSuchFile),
        (6, errors.RuntimeException),
        (9, errors.NotImplemented),
    ],
)
def test_a_status_becomes_the_error_of_its_code(code: int, kind: type[Exception]) -> None:
    """With the library's text, the node and the library."""
    with pytest.raises(kind, match=r"model .*\"node\" \(test\.ops\.Refuse.*libtestops\.so: the value is negative"):
        run_custom("Refuse", [X], [FLOAT], code=code)


def test_a_status_from_making_a_kernel_is_an_error_of_the_session() -> None:
    """It is there before the first run."""
    with pytest.raises(errors.InvalidArgument, match="refused when it was made"):
        session_of(custom_model("Refuse", [X], [FLOAT], code=2, early=1))


def test_a_function_that_is_not_there_is_named() -> None:
    """The library asks for CreateIoBinding, which no kernel needs."""
    with pytest.raises(errors.NotImplemented, match="the library calls CreateIoBinding of OrtApi, which sardonyx does not provide"):
        run_custom("Unfilled", [X], [FLOAT])


def test_a_kernel_may_run_a_model_of_its_own(tmp_path: Path) -> None:
    """By a session that it makes, on as many threads as the session around it has."""
    (tmp_path / "m.onnx").write_bytes(to_bytes(model("graph(x: float[n, 3]) -> (y: float[n, 3]) {\na = Exp(x)\ny = Neg(a)\n}")))
    session = session_of(custom_model("Inner", [X], [FLOAT], path=str(tmp_path / "m.onnx")))
    for scale in (1, 2, 3):
        np.testing.assert_allclose(session.run(None, {"x0": X * np.float32(scale)})[0], -np.exp(X * np.float32(scale)), rtol=1e-6)
    with pytest.raises(errors.NoSuchFile, match="no.onnx"):
        session_of(custom_model("Inner", [X], [FLOAT], path=str(tmp_path / "no.onnx")))


def test_a_session_goes_on_after_an_error() -> None:
    """An error leaves nothing behind in the kernel's frame."""
    session = session_of(custom_model("Shout", [np.array(["a"], object)], [STRING]))
    with pytest.raises(errors.InvalidArgument, match="too long"):
        session.run(None, {"x0": np.array(["x" * 300], object)})
    assert session.run(None, {"x0": np.array(["b"], object)})[0].tolist() == ["b!"]


def test_a_library_says_shapes() -> None:
    """InferOutputShapeFn makes the declared shape of an output that the model leaves open."""
    from sardonyx.custom_ops.catalog import Catalog
    from sardonyx.formats import onnx
    from sardonyx.ops.infer import infer_graph
    from sardonyx.ops.session_operators import session_operators

    model = onnx.load(custom_model("Twice", [np.zeros(3, np.float32)], [None], times=2))
    model.graph.inputs[0].type = type(model.graph.inputs[0].type)(FLOAT, (3,))  # type: ignore[call-arg, misc, union-attr]
    with session_operators(Catalog(load_library(library_path(), {}).definitions)):
        facts = infer_graph(model)
    assert facts[model.graph.outputs[0]].shape == (6,)


def test_wrong_types_name_the_library() -> None:
    """A node with an input of another type is refused when the session is made."""
    with pytest.raises(
        errors.InvalidGraph, match=r"input 0 is tensor\(int64\), but test\.ops\.Scale-1 of libtestops\.so takes tensor"
    ):
        session_of(custom_model("Scale", [X.astype(np.int64)], [FLOAT], factor=1.0, offset=0))


def test_too_few_inputs_name_the_library() -> None:
    """A variadic input has a least number of values."""
    with pytest.raises(errors.InvalidGraph, match=r"has 1 inputs, expected at least 2: test\.ops\.AddAll-1 of libtestops\.so"):
        session_of(custom_model("AddAll", [X], [FLOAT]))


def test_other_sessions_do_not_know_the_operators() -> None:
    """Registration is per session: without it the domain is unknown."""
    model = custom_model("Scale", [X], [FLOAT], factor=1.0, offset=0)
    session_of(model)
    with pytest.raises(errors.InvalidGraph, match="add it by SessionOptions.add_operator, register_custom_ops_library"):
        sardonyx.InferenceSession(model)


def test_many_threads_run_one_session() -> None:
    """Each run has values of its own."""
    from concurrent.futures import ThreadPoolExecutor

    session = session_of(custom_model("Twice", [X[0]], [FLOAT], times=2))

    def run(number: int) -> bool:
        return bool((session.run(None, {"x0": np.full(number, number, np.float32)})[0] == np.full(2 * number, number)).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, [1 + number % 7 for number in range(40)]))


def test_a_process_with_static_destructors_ends_cleanly() -> None:
    """A library that releases its domain when the process ends finds a function that does nothing."""
    path = library_path("-DEXIT_RELEASES")
    text = (
        "import sys, numpy as np, sardonyx\n"
        "options = sardonyx.SessionOptions()\n"
        "options.register_custom_ops_library(sys.argv[1])\n"
        "session = sardonyx.InferenceSession(sys.stdin.buffer.read(), options)\n"
        "print(session.run(None, {'x0': np.ones(2, np.float32)})[0].tolist())\n"
    )
    model = custom_model("Scale", [X[0]], [FLOAT], factor=2.0, offset=1)
    done = subprocess.run([sys.executable, "-c", text, path], input=model, capture_output=True, check=False)
    assert (done.returncode, done.stdout.decode().strip()) == (0, "[3.0, 3.0]"), done.stderr.decode()


@pytest.mark.parametrize("version", [1, 2, 9])
def test_the_last_version_of_an_operator_serves_later_ones(version: int) -> None:
    """A model that imports a newer version of the domain than the operator's last runs, as in onnxruntime."""
    proto = onnx.load_from_string(custom_model("Old", [X], [FLOAT]))
    proto.opset_import[1].version = version
    np.testing.assert_array_equal(session_of(proto.SerializeToString()).run(None, {"x0": X})[0], X)
