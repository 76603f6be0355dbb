"""Let other packages that import `onnxruntime` use sardonyx in this process.

    import sardonyx.as_onnxruntime          before anything imports onnxruntime
    import rapidocr                         whose `import onnxruntime` now finds sardonyx

An installed onnxruntime is left as it is on disk; it is only not imported, but for its sub-packages of Python code, such as
`onnxruntime.quantization`, which then run on sardonyx. `sardonyx exec -- COMMAND` does the same for a command.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any

import sardonyx
from sardonyx.errors import Fail
from sardonyx.version import ONNXRUNTIME_API

__all__ = ["install"]

_NAME = "onnxruntime"
_OWN = ("capi", "backend")
"""Sub-packages of onnxruntime that sardonyx has, and that always are its own."""
_TOOLS = {"quantization": "quantization", "tools": "tools", "transformers": "tools"}
"""Sub-packages of onnxruntime -> those of sardonyx that stand for them where no onnxruntime is installed."""
_TYPES = "bart bert_keras bert_tf clip conformer gpt2 mmdit phi sam2 t5 tnlr unet vae"
_ALIASES = {
    **{f"transformers.onnx_model_{name}": "tools.onnx_model_bert" for name in _TYPES.split()},
    **{f"quantization.{name}": "quantization.quantizers" for name in ("onnx_quantizer", "qdq_quantizer")},
}
"""Modules of onnxruntime that are parts of one of sardonyx."""
_ANY = DistributionFinder.Context()
"""A search for every distribution."""


def install() -> ModuleType:
    """Make `import onnxruntime` give sardonyx from here on, and return the module that it gives.

    Raises:
        Fail: this process has imported another onnxruntime before.
    """
    known = sys.modules.get(_NAME)
    if known is not None and getattr(known, "_is_sardonyx", False):
        return known
    if known is not None and hasattr(known, "InferenceSession"):
        raise Fail(f"{_NAME} is imported already, from {known.__file__}: import sardonyx.as_onnxruntime before it")
    module = known if known is not None else ModuleType(_NAME, sardonyx.__doc__)
    names = sardonyx.__all__
    held = vars(sardonyx)
    module.__dict__.update({name: held[name] for name in names if name in held})
    module.__dict__.update(_is_sardonyx=True, __version__=ONNXRUNTIME_API, __all__=list(names), __getattr__=_later, __dir__=_names)
    if "__path__" not in module.__dict__:
        module.__path__ = _folders()
    if module.__spec__ is None:
        _describe(module)
    sys.modules[_NAME] = module
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        made = isinstance(getattr(module.__spec__, "loader", None), _Made)
        sys.meta_path.insert(0, _Finder(module.__spec__ if made else None))
    module.__dict__["capi"] = importlib.import_module(f"{_NAME}.capi")
    validation = importlib.import_module(f"{_NAME}.capi.onnxruntime_validation")
    package_name, version, cuda_version = validation.get_package_name_and_version_info()
    module.__dict__.update(onnxruntime_validation=validation, package_name=package_name, version=version, cuda_version=cuda_version)
    return module


def _describe(module: ModuleType) -> None:
    """Let a module that no file made have what an imported one has: packages look for onnxruntime by `importlib.util.find_spec`."""
    spec = ModuleSpec(_NAME, _Made(module), origin=sardonyx.__file__, is_package=True)
    spec.submodule_search_locations = list(module.__path__)
    module.__dict__.update(__spec__=spec, __loader__=spec.loader, __package__=_NAME, __file__=sardonyx.__file__)


def _later(name: str) -> object:
    """Return a name that sardonyx imports when it is first asked for; raises AttributeError for one that it lacks."""
    if name not in sardonyx.__all__:
        raise AttributeError(f"module {_NAME!r} has no attribute {name!r}")
    return getattr(sardonyx, name)


def _names() -> list[str]:
    """Return the names of the module, also those that nobody asked for yet."""
    return sorted({*vars(sys.modules[_NAME]), *sardonyx.__all__})


def _folders() -> list[str]:
    """Return where an installed onnxruntime has its sub-packages in Python, such as `quantization` and `transformers`."""
    places = [os.path.join(place or os.curdir, _NAME) for place in sys.path]
    return [place for place in places if os.path.isfile(os.path.join(place, "__init__.py"))][:1]


def _stands_for(head: str) -> bool:
    """Return whether a sub-package is one of sardonyx's tools, as no folder of an installed onnxruntime has it."""
    folders = getattr(sys.modules.get(_NAME), "__path__", ())
    return head in _TOOLS and not any(os.path.isdir(os.path.join(folder, head)) for folder in folders)


class _Finder(DistributionFinder):
    """Finds `onnxruntime` and its sub-packages in sardonyx, and the record of an installed onnxruntime."""

    def __init__(self, spec: ModuleSpec | None) -> None:
        """Find the package itself by `spec`; where it is None, a file of another finder is the package."""
        self._spec = spec

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return where a module comes from, or None for what is not sardonyx's."""
        if fullname == _NAME:
            return self._spec
        package, _, rest = fullname.partition(".")
        head, dot, tail = rest.partition(".")
        if package != _NAME or (head not in _OWN and not _stands_for(head)):
            return None
        own = f"sardonyx.{_ALIASES.get(rest) or f'{_TOOLS.get(head, head)}{dot}{tail}'}"
        found = importlib.util.find_spec(own)
        return found and ModuleSpec(fullname, _Loader(own), is_package=found.submodule_search_locations is not None)

    def find_distributions(self, context: DistributionFinder.Context = _ANY) -> Iterable[Distribution]:
        """Return the record for `importlib.metadata.version("onnxruntime")`."""
        return [_Record()] if context.name in (None, _NAME) else []


class _Loader(importlib.abc.Loader):
    """Gives a module of sardonyx under its other name."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module; it keeps its own spec."""
        module = importlib.import_module(self._own)
        self._spec = module.__spec__, module.__loader__, module.__package__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is: it has run under its own name."""
        module.__spec__, module.__loader__, module.__package__ = self._spec

    def get_code(self, fullname: str) -> Any:
        """Return the code of the module, for `python -m`."""
        spec = importlib.util.find_spec(self._own)
        loader: Any = None if spec is None else spec.loader
        return None if loader is None else loader.get_code(self._own)


class _Made(importlib.abc.Loader):
    """Gives the module that `install` made, also to who imports it anew."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is."""


class _Record(Distribution):
    """What package tools ask of an installed onnxruntime."""

    def read_text(self, filename: str) -> str | None:
        """Return the metadata."""
        return (
            f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {ONNXRUNTIME_API}\n" if filename in ("METADATA", "PKG-INFO") else None
        )

    def locate_file(self, path: Any) -> Any:
        """Return the path: the record has no files."""
        return path


install()
