"""The version of sardonyx, read by the build, and of the API that it offers."""

__version__ = "0.1.0"
ONNXRUNTIME_API = "1.32.0"
"""The release of onnxruntime whose Python API sardonyx offers."""
