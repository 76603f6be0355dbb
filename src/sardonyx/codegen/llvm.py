"""The border to llvmlite: imported on first use, so that `import sardonyx` stays fast; untyped, so everything behind it is Any."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["binding", "version"]


@functools.cache
def binding() -> Any:  # llvmlite has no type information
    """The module `llvmlite.binding`, with the host's code generator initialised."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def version() -> str:
    """The versions of llvmlite and LLVM, such as `0.50.0/22.1.0`: compiled objects are valid for one of them only."""
    import llvmlite

    return f"{llvmlite.__version__}/{'.'.join(map(str, binding().llvm_version_info))}"
