"""What is known of operators before OpenVINO is asked."""

from __future__ import annotations

import pytest
from support.models import graph

from sardonyx.providers.openvino.operators import reason_against


def _reason(body: str) -> str | None:
    (node, *_) = graph(body)
    return reason_against(node)


@pytest.mark.parametrize(
    "body",
    [
        "graph(x: float[2]) -> (y: float[2]) { y = Relu(x) }",
        "graph(x: float16[2, 3], i: int64[1]) -> (y: float16[1, 3]) { y = Gather(x, i) }",
        "graph(x: int8[2, 3]) -> (y: int8[3, 2]) { y = Transpose(x) }",
        "graph(x: float[2, 3]) -> (y: int64[1, 3]) { y = ArgMax(x) }",
    ],
)
def test_floats_moved_integers_and_indices_are_asked_about(body: str) -> None:
    """Nothing is known against them."""
    assert _reason(body) is None


@pytest.mark.parametrize(
    "body",
    [
        "graph(x: int64[2]) -> (y: int64[2]) { y = Add(x, x) }",
        "graph(x: int32[2]) -> (y: int32[2]) { y = Add(x, x) }",
        "graph(x: double[2]) -> (y: double[2]) { y = Relu(x) }",
        "graph(x: int64[2, 3]) -> (y: int64[3, 2]) { y = Transpose(x) }",
        "graph(x: string[2]) -> (y: string[2]) { y = Identity(x) }",
    ],
)
def test_arithmetic_of_integers_and_wide_types_are_left_to_others(body: str) -> None:
    """The type that stands in the way is named."""
    assert "has elements of type" in (_reason(body) or "")


def test_empty_tensors_are_left_to_others() -> None:
    """A size of 0 is seen before OpenVINO is asked."""
    assert _reason("graph(x: float[0, 3]) -> (y: float[0, 3]) { y = Relu(x) }") == "it has empty tensors"


def test_random_numbers_are_left_to_others() -> None:
    """They would depend on who draws them."""
    assert "random numbers" in (_reason("graph(x: float[2]) -> (y: float[2]) { y = RandomNormalLike(x) }") or "")


@pytest.mark.parametrize(
    ("attributes", "differs"),
    [
        ('mode = "linear"', False),
        ('mode = "linear", antialias = 1', True),
        ('mode = "cubic", exclude_outside = 1', True),
        ('coordinate_transformation_mode = "align_corners"', True),
        ('keep_aspect_ratio_policy = "not_larger"', True),
    ],
)
def test_what_OpenVINO_resizes_differently_is_left_to_others(attributes: str, differs: bool) -> None:
    """A resize with scales that is not antialiased, keeps no ratio and aligns no corners is asked about."""
    reason = _reason(f"graph(x: float[1, 4], s: float[2]) -> (y: float[1, 8]) {{\ny = Resize(x, _, s) {{{attributes}}}\n}}")
    assert (reason is not None) == differs


@pytest.mark.parametrize(("sizes", "differs"), [("b, 8, s", True), ("1, 8, 3", False), ("b, 2, s", False)])
def test_grouped_heads_of_open_sizes_are_left_to_others(sizes: str, differs: bool) -> None:
    """Where OpenVINO loses the queries' sizes on the way, it takes the keys' heads for the result's."""
    reason = _reason(f"graph(q: float[{sizes}, 4], k: float[b, 2, t, 4]) -> (y: float[{sizes}, 4]) {{\ny = Attention(q, k, k)\n}}")
    assert (reason is not None) == differs


@pytest.mark.parametrize(
    ("shape", "axes", "made", "differs"),
    [
        ("n, 2, 4", "2", "n, 2, 1", True),
        ("5, 2, 4", "0", "1, 2, 4", True),
        ("n, 2, 4", "1", "n, 1, 4", False),
        ("n, 1, 4", "2", "n, 1, 1", False),
        ("n, t, 4", "2", "n, t, 1", False),
        ("n, 2, 4, 4", "2", "n, 2, 1, 4", False),
    ],
)
def test_reductions_that_keep_the_channels_of_matrices_are_left_to_others(shape: str, axes: str, made: str, differs: bool) -> None:
    """OpenVINO adds a constant that has a value for each channel to other channels there."""
    reason = _reason(f"graph(x: float[{shape}]) -> (y: float[{made}]) {{\nk: int64[1] = [{axes}]\ny = ReduceSum(x, k)\n}}")
    assert (reason is not None) == differs


@pytest.mark.parametrize(("name", "ceil", "differs"), [("AveragePool", 0, False), ("AveragePool", 1, True), ("LpPool", 1, True)])
def test_averages_whose_size_is_rounded_up_are_left_to_others(name: str, ceil: int, differs: bool) -> None:
    """OpenVINO counts padding beyond the end."""
    attributes = f"kernel_shape = [2], ceil_mode = {ceil}"
    reason = _reason(f"graph(x: float[1, 2, 8]) -> (y: float[1, 2, 7]) {{ y = {name}(x) {{{attributes}}} }}")
    assert (reason is not None) == differs


def test_normalizers_by_the_largest_are_left_to_others() -> None:
    """OpenVINO divides rows of negative numbers by another one."""
    assert "differs" in (_reason("graph(x: float[2, 3]) -> (y: float[2, 3]) { y = ai.onnx.ml.Normalizer(x) }") or "")
