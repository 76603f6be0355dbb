"""The name under which most code imports the compiled module's names."""

from sardonyx.capi.onnxruntime_pybind11_state import *  # noqa: F403  the module is an alias
