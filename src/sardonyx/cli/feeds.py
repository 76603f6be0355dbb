"""Inputs of a model on the command line: from .npy files, or drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click
import numpy as np

from sardonyx.cli.console import fail
from sardonyx.dtypes import Array, DataType, OnnxValue, is_float
from sardonyx.session.values import NodeArg

__all__ = ["input_options", "make_feed"]


_INPUT_OPTIONS = (
    click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Feed an input from a file of NumPy's format."),
    click.option("--seed", default=0, show_default=True, help="Seed of the random inputs."),
    click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a symbolic dimension (default 1)."),
)


def input_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options --input, --seed and --dim."""
    for option in reversed(_INPUT_OPTIONS):
        command = option(command)
    return command


def make_feed(arguments: Sequence[NodeArg], files: Sequence[str], dims: Sequence[str], seed: int | None) -> dict[str, OnnxValue]:
    """Return an array for each of the inputs; what is wrong ends the command.

    Args:
        arguments: the inputs.
        files: "NAME=FILE.npy" for those that are read.
        dims: "NAME=SIZE" for symbolic dimensions of those that are drawn; others are 1.
        seed: what the others are drawn from; None where they must not be.
    """
    feed: dict[str, OnnxValue] = {name: _read(path) for name, path in _pairs(files).items()}
    sizes = _sizes(_pairs(dims))
    rng = np.random.default_rng(seed)
    for argument in arguments:
        if argument.name in feed:
            continue
        if seed is None:
            fail(
                f"input {argument.name!r} ({argument.type}, shape {argument.shape}) is not fed: "
                f"give --input {argument.name}=FILE.npy, or --random"
            )
        feed[argument.name] = _draw(argument, rng, sizes)
    return feed


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    for text in texts:
        if "=" not in text:
            fail(f"expected NAME=VALUE, got {text!r}")
    return dict(text.split("=", 1) for text in texts)


def _sizes(pairs: dict[str, str]) -> dict[str, int]:
    for name, text in pairs.items():
        if not text.isdigit():
            fail(f"the size of dimension {name!r} must be a number, got {text!r}")
    return {name: int(text) for name, text in pairs.items()}


def _read(path: str) -> Array:
    try:
        array: Array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        fail(f"{path} is no .npy file that can be read safely: {error}")
    return array


def _draw(argument: NodeArg, rng: np.random.Generator, sizes: dict[str, int]) -> Array:
    if not argument.type.startswith("tensor("):
        fail(f"input {argument.name!r} is a {argument.type}; --random draws tensors only")
    dtype = DataType.parse(argument.type.removeprefix("tensor(").removesuffix(")"))
    shape = [dim if isinstance(dim, int) else sizes.get(dim or "", 1) for dim in argument.shape]
    if dtype is DataType.STRING:
        return np.full(shape, "text", dtype=object)
    if is_float(dtype) or dtype in (DataType.COMPLEX64, DataType.COMPLEX128):
        return np.asarray(rng.standard_normal(shape)).astype(dtype.numpy)
    return np.asarray(rng.integers(0, 2, shape)).astype(dtype.numpy)
