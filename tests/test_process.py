"""Functions about the whole process."""

from __future__ import annotations

import subprocess
import sys

import sardonyx as ort
from sardonyx.version import ONNXRUNTIME_API, __version__


def test_the_version_tells_the_api_and_the_package() -> None:
    """So that a gate written for onnxruntime holds."""
    assert ort.get_version_string() == ort.__version__ == f"{ONNXRUNTIME_API}+sardonyx.{__version__}"
    assert [int(part) for part in ort.__version__.split(".")[:2]] >= [1, 20]


def test_build_information_is_one_line() -> None:
    """With the package's version."""
    assert __version__ in ort.get_build_info()
    assert "\n" not in ort.get_build_info()


def test_what_has_no_meaning_is_accepted() -> None:
    """Nothing happens."""
    ort.enable_telemetry_events()
    ort.disable_telemetry_events()
    ort.preload_dlls(cuda=False, directory="")
    assert (ort.has_collective_ops(), ort.get_device()) == (False, "CPU")


def test_the_sizes_of_the_global_pool_are_set_before_it_is_used() -> None:
    """Negative ones leave a number open, later ones fail."""
    code = """
import sardonyx as ort
from sardonyx.process import global_thread_counts
ort.set_global_thread_pool_sizes(3, 2)
assert global_thread_counts() == (3, 2)
try:
    ort.set_global_thread_pool_sizes(1, 1)
except ort.Fail:
    print("refused")
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "refused\n"
