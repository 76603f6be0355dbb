"""Windows against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, reference
from support.models import model

from sardonyx import InferenceSession
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("op", ["BlackmanWindow", "HammingWindow", "HannWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows_as_long_as_an_axis(op: str, periodic: int, isa: str) -> None:
    """Of float32 and float64, of no element and of one."""
    for number, dtype in ((1, "float32"), (11, "float64")):
        body = (
            f"graph(x: float[A]) -> (y) {{ n = Shape(x) k = Squeeze(n) y = {op}(k) "
            f"{{periodic = {periodic}, output_datatype = {number}}} }}"
        )
        session = cpu_session(body, opset=17, isa=isa)
        for length in (0, 1, 2, 3, 16, 17, 400, 5000):
            feeds = {"x": np.zeros(length, np.float32)}
            found, wanted = session.run(None, feeds)[0], reference(body, feeds, opset=17)[0]
            assert found.dtype == wanted.dtype == dtype
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7 if number == 1 else 1e-14)


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 7, 10, 12, 13, 16])
def test_windows_of_every_type(number: int) -> None:
    """float16 is rounded once, integers are truncated."""
    body = f"graph(n: int64[]) -> (y) {{ y = HammingWindow(n) {{output_datatype = {number}, periodic = 0}} }}"
    session = cpu_session(body, opset=17)
    for length in (1, 2, 9, 400):
        found, wanted = (run.run(None, {"n": np.array(length)})[0] for run in (session, _reference(body)))
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def _reference(body: str) -> InferenceSession:
    return InferenceSession(to_bytes(model(body, opset=17)), providers=["ReferenceExecutionProvider"])


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("number", [1, 7, 10, 11])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_filters_of_the_mel_scale(kind: str, number: int, isa: str) -> None:
    """Edges that coincide, a highest frequency below the lowest, and more filters than bins."""
    body = f"""graph(n: int64[], d: int64[], r: int64[], a: {kind}[], b: {kind}[]) -> (y) {{
        y = MelWeightMatrix(n, d, r, a, b) {{output_datatype = {number}}} }}"""
    session, exact = cpu_session(body, opset=17, isa=isa), _reference(body)
    for n, d, low, high in ((80, 400, 20, 7600), (40, 1023, 1000, 8000), (9, 4, 0, 4000), (3, 64, 4000, 20), (1, 0, 0, 8000)):
        edges = {name: np.array(hertz, "f4" if kind == "float" else "f8") for name, hertz in (("a", low), ("b", high))}
        feeds = {"n": np.array(n), "d": np.array(d), "r": np.array(16000), **edges}
        found, wanted = (run.run(None, feeds)[0] for run in (session, exact))
        assert (found.dtype, found.shape) == (wanted.dtype, (d // 2 + 1, n))
        np.testing.assert_allclose(found.astype(float), wanted.astype(float), atol=1e-3 if number == 10 else 1e-7)


def test_sizes_of_filters_that_there_cannot_be() -> None:
    """Are refused by what they are."""
    body = "graph(n: int64[], d: int64[], r: int64[], a: float[], b: float[]) -> (y) { y = MelWeightMatrix(n, d, r, a, b) }"
    feeds = {"n": np.array(3), "d": np.array(16), "r": np.array(0), "a": np.float32(0), "b": np.float32(8000)}
    with pytest.raises(InvalidArgument, match="sample_rate = 0"):
        cpu_session(body, opset=17).run(None, feeds)
