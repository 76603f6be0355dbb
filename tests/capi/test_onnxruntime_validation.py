"""Questions that the package asks about itself."""

from __future__ import annotations

from sardonyx.capi import onnxruntime_validation
from sardonyx.version import ONNXRUNTIME_API


def test_the_answers_are_those_of_a_cpu_build() -> None:
    """Name and version, no training, no CUDA."""
    onnxruntime_validation.check_distro_info()
    assert onnxruntime_validation.get_package_name_and_version_info() == ("onnxruntime", ONNXRUNTIME_API, "")
    assert onnxruntime_validation.check_training_module() == (False, None, "")
