"""Windows against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference


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


def test_what_is_left_to_others() -> None:
    """Windows of whole numbers."""
    body = "graph(x: float[A]) -> (y) { n = Shape(x) k = Squeeze(n) y = HannWindow(k) {output_datatype = 7} }"
    assert "type int64" in declined(body, opset=17)[0]
