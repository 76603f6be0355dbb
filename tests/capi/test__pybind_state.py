"""The usual name of the compiled module."""

from __future__ import annotations

import subprocess
import sys

from sardonyx.capi import _pybind_state, onnxruntime_pybind11_state


def test_it_has_all_names() -> None:
    """Of the same objects."""
    for name in onnxruntime_pybind11_state.__all__:
        assert getattr(_pybind_state, name) is getattr(onnxruntime_pybind11_state, name)


def test_code_that_imports_the_package_alone_finds_its_modules() -> None:
    """`import sardonyx as ort` is enough for `ort.capi.onnxruntime_pybind11_state.Fail`, as with onnxruntime."""
    code = """
import sardonyx as ort
names = "_pybind_state build_and_package_info onnxruntime_inference_collection onnxruntime_pybind11_state onnxruntime_validation"
assert all(hasattr(ort.capi, name) for name in names.split())
try:
    ort.InferenceSession("no such file")
except ort.capi.onnxruntime_pybind11_state.NoSuchFile:
    print("found")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("found\n", 0), done.stderr
