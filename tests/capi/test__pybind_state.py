"""The usual name of the compiled module."""

from __future__ import annotations

from sardonyx.capi import _pybind_state, onnxruntime_pybind11_state


def test_it_has_all_names() -> None:
    """Of the same objects."""
    for name in onnxruntime_pybind11_state.__all__:
        assert getattr(_pybind_state, name) is getattr(onnxruntime_pybind11_state, name)
