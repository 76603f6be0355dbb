"""The package's name."""

from __future__ import annotations

from sardonyx.capi import build_and_package_info


def test_the_name_is_onnxruntimes() -> None:
    """With the version of the API."""
    assert (build_and_package_info.package_name, build_and_package_info.__version__[:2]) == ("onnxruntime", "1.")
