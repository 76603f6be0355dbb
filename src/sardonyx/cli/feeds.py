"""Inputs of a model on the command line: read from files, or drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import click
import numpy as np

from sardonyx.cli.console import fail, readable_errors
from sardonyx.cli.input_files import Range, read_inputs
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.formats.models import load
from sardonyx.session.draw.feeds import random_feeds
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.values import node_arg

__all__ = ["describe_feed", "draw_feed", "input_options", "make_feed", "read_feed", "type_text"]


_INPUT_OPTIONS = (
    click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="NAME=FILE|VALUE",
        help="Feed an input from a .npy, .npz, .pb or .json file or an image, or a value in JSON, such as [[1, 2]]; repeat it. "
        "FILE.npz, or a test_data_set_0 folder, feeds several.",
    ),
    click.option("--seed", default=0, show_default=True, help="Seed of the random inputs."),
    click.option(
        "--dim",
        "dims",
        multiple=True,
        metavar="NAME=SIZE",
        help="Size of a symbolic dimension, INPUT:AXIS for one without a name; by default what the others imply, or 1.",
    ),
    click.option(
        "--range",
        "ranges",
        multiple=True,
        metavar="NAME=LOW:HIGH",
        help="Least and greatest value of a random input, or of an image; repeat it.",
    ),
)


def input_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options --input, --seed, --dim and --range."""
    for option in reversed(_INPUT_OPTIONS):
        command = option(command)
    return command


def make_feed(
    session: InferenceSession, files: Sequence[str], dims: Sequence[str], ranges: Sequence[str], seed: int | None
) -> dict[str, OnnxValue]:
    """Return a value for each of a session's inputs; what is wrong ends the command.

    Args:
        session: the session.
        files: those that are read, as `read_inputs` has them.
        dims: "NAME=SIZE" for symbolic dimensions of those that are drawn.
        ranges: "NAME=LOW:HIGH" for what is drawn.
        seed: what the others are drawn from; None where they must not be.
    """
    arguments = session.get_inputs()
    with readable_errors():
        sizes = _sizes(_pairs("--dim", dims))
        intervals = _intervals(_pairs("--range", ranges))
        feed = read_inputs(arguments, files, sizes, intervals)
        missing = [argument for argument in arguments if argument.name not in feed and not argument.type.startswith("optional(")]
        if seed is not None:
            return random_feeds(session, dims=sizes, ranges=intervals, seed=seed, given=feed)
        for argument in missing:
            shape = ", ".join("?" if dim is None else str(dim) for dim in argument.shape)
            fail(
                f"input {argument.name!r} ({argument.type}, shape [{shape}]) is not fed: "
                f"give --input {argument.name}=FILE.npy, or --random"
            )
    return feed


def draw_feed(
    model: str, files: Sequence[str], dims: Sequence[str], ranges: Sequence[str], seed: int
) -> Callable[[], dict[str, OnnxValue]]:
    """Return what draws a value for each input of a model that no session is made of, but for those that files give.

    Files are read at once, and what is wrong with them ends the command; drawing raises InvalidArgument.

    Args:
        model: the path of the model.
        files: as for `make_feed`.
        dims: as for `make_feed`.
        ranges: as for `make_feed`.
        seed: what the others are drawn from.
    """
    with readable_errors():
        loaded = load(model)
        sizes, intervals = _sizes(_pairs("--dim", dims)), _intervals(_pairs("--range", ranges))
        given = read_inputs([node_arg(value) for value in loaded.graph.inputs], files, sizes, intervals)
    return lambda: random_feeds(loaded, dims=sizes, ranges=intervals, seed=seed, given=given)


def read_feed(
    model: str, files: Sequence[str], dims: Sequence[str], ranges: Sequence[str], held: Mapping[str, OnnxValue], place: str
) -> dict[str, OnnxValue]:
    """Return a value for each input of a model, none of which is drawn: those that files give, and else those that are `held`.

    Raises:
        InvalidArgument: an input has neither; `place` is what holds the values.
    """
    values = [value for value in load(model).graph.inputs if value.constant is None]
    sizes, intervals = _sizes(_pairs("--dim", dims)), _intervals(_pairs("--range", ranges))
    given = read_inputs([node_arg(value) for value in values], files, sizes, intervals)
    feed = {value.name: held[value.name] for value in values if value.name in held} | given
    lacking = [repr(value.name) for value in values if value.name not in feed]
    if lacking:
        raise InvalidArgument(f"{place} has no input {', '.join(lacking)}: feed by --input what its values were computed of")
    return feed


def describe_feed(session: InferenceSession, feed: Mapping[str, OnnxValue]) -> tuple[dict[str, str], dict[str, int]]:
    """Return the types of what is fed, by input, and the sizes of the dimensions that the model leaves open, by name."""
    sizes: dict[str, int] = {}
    for argument in session.get_inputs():
        found = getattr(feed.get(argument.name), "shape", None) or ()
        for axis, (dim, size) in enumerate(zip(argument.shape, found, strict=False)):
            if not isinstance(dim, int):
                sizes.setdefault(dim or f"{argument.name}:{axis}", size)
    return {name: type_text(value) for name, value in feed.items()}, sizes


def type_text(value: object) -> str:
    """Return element type and shape of an array, such as float32[1,3]; of anything else the name of its class."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    return f"{'string' if value.dtype == object else value.dtype}[{','.join(map(str, value.shape))}]"


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    for text in texts:
        if "=" not in text:
            fail(f"{option}: expected NAME=VALUE, got {text!r}")
    return dict(text.rsplit("=", 1) for text in texts)


def _sizes(pairs: dict[str, str]) -> dict[str, int]:
    for name, text in pairs.items():
        if not (text.isascii() and text.isdigit()):
            fail(f"the size of dimension {name!r} must be 0 or a greater whole number, got {text!r}")
    return {name: int(text) for name, text in pairs.items()}


def _intervals(pairs: dict[str, str]) -> dict[str, Range]:
    found = {}
    for name, text in pairs.items():
        low, _separator, high = text.partition(":")
        try:
            found[name] = (float(low), float(high))
        except ValueError:
            fail(f"the range of input {name!r} must be LOW:HIGH, two numbers, got {text!r}")
    return found
