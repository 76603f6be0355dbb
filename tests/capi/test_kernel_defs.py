"""Kernels and schemas as data."""

from __future__ import annotations

from sardonyx.capi.kernel_defs import get_all_operator_schema, get_all_opkernel_def, get_registered_ep_kernel_defs


def test_a_kernel_lasts_until_the_next_meaning() -> None:
    """The last one has no end."""
    ranges = [kernel.version_range for kernel in get_all_opkernel_def() if (kernel.domain, kernel.op_name) == ("", "Softmax")]
    assert ranges == [(1, 12), (13, 2147483647)]


def test_types_are_those_of_the_schema() -> None:
    """By the schema's type parameter."""
    (found,) = [kernel for kernel in get_all_opkernel_def() if (kernel.domain, kernel.op_name) == ("", "Erf")]
    assert "tensor(float)" in found.type_constraints["T"]


def test_kernels_are_asked_for_by_provider() -> None:
    """An unknown one has none."""
    assert get_registered_ep_kernel_defs("FooExecutionProvider") == []


def test_every_version_of_a_schema_is_listed() -> None:
    """Of other domains too."""
    found = {(schema.domain, schema.name, schema.since_version) for schema in get_all_operator_schema()}
    assert {("", "Conv", 1), ("", "Conv", 11), ("com.microsoft", "BiasGelu", 1), ("ai.onnx.ml", "ZipMap", 1)} <= found
