"""The package's name, as onnxruntime's build writes it."""

from sardonyx.version import ONNXRUNTIME_API

__all__ = ["__version__", "package_name"]

package_name = "onnxruntime"
__version__ = ONNXRUNTIME_API
