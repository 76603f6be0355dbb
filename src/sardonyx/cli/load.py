"""The option `--load FILE.py`: operators, execution providers and file formats of a Python file, for one command."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import click

from sardonyx.custom_ops.definition import OperatorDefinition, OperatorSource
from sardonyx.custom_ops.registered import registered_operators
from sardonyx.errors import Fail, InvalidArgument, NoSuchFile, describe
from sardonyx.formats.model_format import ModelFormat
from sardonyx.formats.registry import register_format
from sardonyx.provider import Provider
from sardonyx.session.options import SessionOptions

__all__ = ["add_operators", "load_option", "module_name"]

load_option = click.option(
    "--load",
    "loaded",
    multiple=True,
    metavar="FILE.py",
    help="Know the operators that this Python file makes by @sardonyx.op, and its execution providers and file "
    "formats; repeat it for others.",
)


def add_operators(options: SessionOptions, paths: Iterable[str]) -> list[Provider]:
    """Run each Python file of `paths`, add the operators of its top level to `options`, and register the file formats there.

    Returns:
        The execution providers that the files name at their top level: objects, or classes that are made without arguments.

    Raises:
        NoSuchFile: a file is not there.
        InvalidArgument: a file names no operator, provider or format, and registers none.
        Fail: a file cannot be run.
    """
    providers: list[Provider] = []
    for path in paths:
        known = len(registered_operators())
        module = _module_of(path)
        operators, found = _operators_of(module), _providers_of(module, path)
        providers += found
        for operator in operators:
            options.add_operator(operator)
        formats = [item for item in vars(module).values() if isinstance(item, ModelFormat)]
        for item in formats:
            register_format(item)
        if not operators and not found and not formats and len(registered_operators()) == known:
            raise InvalidArgument(
                f"{path} has no operator; put @sardonyx.op(domain, name) on a function at its top level, or name a provider or a "
                "ModelFormat there"
            )
    return providers


def module_name(path: str) -> str:
    """Return the name of the module that `--load` makes of a Python file."""
    return f"sardonyx_loaded_{Path(path).stem}"


def _module_of(path: str) -> ModuleType:
    """Run a file as a module; it may import what lies beside it, as a script may, behind all else that there is."""
    name, folder = module_name(path), str(Path(path).resolve().parent)
    spec = importlib.util.spec_from_file_location(name, path)
    if not Path(path).is_file():
        raise NoSuchFile(f"{path} is not there; --load takes a Python file")
    if spec is None or spec.loader is None:
        raise InvalidArgument(f"{path} is no Python file; --load takes one whose name ends in .py")
    if folder not in sys.path:
        sys.path.append(folder)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Fail(f"{path} cannot be loaded: {describe(error)}") from error
    return module


def _operators_of(module: ModuleType) -> list[OperatorSource]:
    found: list[OperatorSource] = []
    for item in vars(module).values():
        definitions = getattr(item, "definitions", None)
        if isinstance(definitions, tuple) and definitions and isinstance(definitions[0], OperatorDefinition) and item not in found:
            found.append(item)
    return found


def _providers_of(module: ModuleType, path: str) -> list[Provider]:
    """Return the providers of a module, in its order; classes that it imports are not its own."""
    found: list[Provider] = []
    for item in vars(module).values():
        own = item.__module__ == module.__name__ if isinstance(item, type) else True
        if not own or not isinstance(getattr(item, "name", None), str):
            continue
        if not callable(getattr(item, "capabilities", None)) or not callable(getattr(item, "compile", None)):
            continue
        try:
            made: Provider = item() if isinstance(item, type) else item
        except Exception as error:
            raise Fail(f"{path}: the provider {item.__name__} cannot be made without arguments: {describe(error)}") from error
        if made.name not in (other.name for other in found):
            found.append(made)
    return found
