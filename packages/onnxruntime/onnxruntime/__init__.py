"""The names of onnxruntime, which sardonyx has; sub-packages of this name in other folders of sys.path are found too."""

import pkgutil

__path__ = pkgutil.extend_path(__path__, __name__)

import sardonyx.as_onnxruntime  # noqa: F401  fills this module
