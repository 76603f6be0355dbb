"""Which matrices are eliminated by compiled kernels."""

import pytest
from support.cpu_run import declined


@pytest.mark.parametrize("operator", ["Det", "com.microsoft.Inverse"])
@pytest.mark.parametrize(
    ("given", "reason"),
    [("float16[3, 3]", "matrices of type float16"), ("float[A, 3, M]", "that matrices are square")],
)
def test_others_are_left_with_the_reason(operator: str, given: str, reason: str) -> None:
    """Half types, which are widened elsewhere, and matrices that may not be square."""
    assert any(reason in found for found in declined(f"graph(x: {given}) -> (y) {{ y = {operator}(x) }}", opset=22))
