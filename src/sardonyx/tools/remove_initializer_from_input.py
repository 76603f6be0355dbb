"""`python -m sardonyx.tools.remove_initializer_from_input --input model.onnx --output constant.onnx`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sardonyx.formats.protos import Message
from sardonyx.tools.models import read, save, to_proto

__all__ = ["main", "remove_initializer_from_input"]

_FIRST = 4
"""The IR version from which on a constant need not be an input."""


def remove_initializer_from_input(model: Message) -> bool:
    """Take the inputs out of an onnx.ModelProto that are initializers too, so that they are constants; return whether any went.

    A model before IR version 4 stays as it is: there each initializer is an input, and none can be fed.
    """
    if model.ir_version < _FIRST:
        return False
    names = {tensor.name for tensor in model.graph.initializer} | {tensor.values.name for tensor in model.graph.sparse_initializer}
    kept = [value for value in model.graph.input if value.name not in names]
    if len(kept) == len(model.graph.input):
        return False
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return True


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a model whose initializers cannot be fed."""
    parser = argparse.ArgumentParser(prog="python -m sardonyx.tools.remove_initializer_from_input", description=main.__doc__)
    parser.add_argument("--input", required=True, help="the model")
    parser.add_argument("--output", required=True, help="where the other model goes")
    given = parser.parse_args(arguments)
    model = to_proto(read(given.input))
    remove_initializer_from_input(model)
    save(model, given.output)


if __name__ == "__main__":
    main()
