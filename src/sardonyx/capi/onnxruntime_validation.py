"""Questions that onnxruntime's package asks about itself."""

from __future__ import annotations

from sardonyx.version import ONNXRUNTIME_API

__all__ = ["check_distro_info", "check_training_module", "get_package_name_and_version_info"]


def check_distro_info() -> None:
    """Accept any distribution of Linux."""


def check_training_module() -> tuple[bool, None, str]:
    """Return that there is no training module."""
    return False, None, ""


def get_package_name_and_version_info() -> tuple[str, str, str]:
    """Return the package's name, the version of its API, and no version of CUDA."""
    return "onnxruntime", ONNXRUNTIME_API, ""
