"""`python -m sardonyx.tools.make_dynamic_shape_fixed --dim_param batch --dim_value 1 model.onnx fixed.onnx`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sardonyx.tools.models import read, save, to_proto
from sardonyx.tools.onnx_model_utils import fix_output_shapes, make_dim_param_fixed, make_input_shape_fixed

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Give a symbolic dimension a size, or an input a shape; outputs get the sizes that follow."""
    parser = argparse.ArgumentParser(prog="python -m sardonyx.tools.make_dynamic_shape_fixed", description=main.__doc__)
    parser.add_argument("--dim_param", help="the symbolic dimension")
    parser.add_argument("--dim_value", type=int, help="its size")
    parser.add_argument("--input_name", help="the input")
    parser.add_argument("--input_shape", type=_shape, help="its sizes, as 1,3,224,224")
    parser.add_argument("input_model", help="the model")
    parser.add_argument("output_model", help="where the model with fixed sizes goes")
    given = parser.parse_args(arguments)
    dimension, shape = (given.dim_param, given.dim_value), (given.input_name, given.input_shape)
    if (None in dimension) == (None in shape):
        parser.error("give --dim_param with --dim_value, or --input_name with --input_shape")
    model = to_proto(read(given.input_model))
    if given.dim_param is not None:
        make_dim_param_fixed(model.graph, given.dim_param, given.dim_value)
    else:
        make_input_shape_fixed(model.graph, given.input_name, given.input_shape)
    fix_output_shapes(model)
    save(model, given.output_model)


def _shape(text: str) -> list[int]:
    return [int(size) for size in text.split(",")]


if __name__ == "__main__":
    main()
