"""The names of the compiled module."""

from __future__ import annotations

import inspect

import pytest

import sardonyx as ort
from sardonyx.capi import onnxruntime_pybind11_state as state


def test_the_names_are_the_objects_of_the_package() -> None:
    """So that `isinstance` and `except` hold across both."""
    for name in ("OrtValue", "OrtDevice", "SessionOptions", "RunOptions", "SparseTensor", "InvalidArgument", "Fail", "NoSuchFile"):
        assert getattr(state, name) is getattr(ort, name)


def test_every_error_is_a_runtime_error() -> None:
    """As code catches them that knows no class."""
    errors = [item for _, item in inspect.getmembers(state, inspect.isclass) if issubclass(item, Exception)]
    assert len(errors) == 15
    assert all(issubclass(item, RuntimeError) for item in errors)


def test_no_name_of_the_original_is_missing() -> None:
    """But those of devices and packages that have no meaning here."""
    original = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    without_meaning = {"AdapterFormat", "LoraAdapter", "opkernel", "schemadef", "pack_fp4_weights_for_cuda_moe_gemm"}
    names = {name for name in dir(original) if not name.startswith(("_", "ModelPackage", "quantize_"))}
    assert names - set(state.__all__) <= without_meaning
