"""The option `--load FILE.py`: operators of a Python file, for one command."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from sardonyx.custom_ops.definition import OperatorDefinition, OperatorSource
from sardonyx.custom_ops.registered import registered_operators
from sardonyx.errors import Fail, InvalidArgument, NoSuchFile, describe
from sardonyx.session.options import SessionOptions

__all__ = ["add_operators", "load_option"]

load_option = click.option(
    "--load",
    "loaded",
    multiple=True,
    metavar="FILE.py",
    help="Know the operators that this Python file makes by @sardonyx.op; repeat it for others.",
)


def add_operators(options: SessionOptions, paths: Iterable[str]) -> None:
    """Run each Python file of `paths` and add the operators that it names at its top level to `options`.

    Raises:
        NoSuchFile: a file is not there.
        InvalidArgument: a file names no operator, and registers none.
        Fail: a file cannot be run.
    """
    for path in paths:
        known = len(registered_operators())
        operators = _operators_of(path)
        for operator in operators:
            options.add_operator(operator)
        if not operators and len(registered_operators()) == known:
            raise InvalidArgument(f"{path} has no operator; put @sardonyx.op(domain, name) on a function at its top level")


def _operators_of(path: str) -> list[OperatorSource]:
    name = f"sardonyx_loaded_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if not Path(path).is_file():
        raise NoSuchFile(f"{path} is not there; --load takes a Python file")
    if spec is None or spec.loader is None:
        raise InvalidArgument(f"{path} is no Python file; --load takes one whose name ends in .py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Fail(f"{path} cannot be loaded: {describe(error)}") from error
    found: list[OperatorSource] = []
    for item in vars(module).values():
        definitions = getattr(item, "definitions", None)
        if isinstance(definitions, tuple) and definitions and isinstance(definitions[0], OperatorDefinition) and item not in found:
            found.append(item)
    return found
