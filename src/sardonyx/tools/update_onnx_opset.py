"""`python -m sardonyx.tools.update_onnx_opset --opset 18 model.onnx newer.onnx`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sardonyx.tools.onnx_model_utils import update_onnx_opset

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Raise a model to a newer version of ai.onnx."""
    parser = argparse.ArgumentParser(prog="python -m sardonyx.tools.update_onnx_opset", description=main.__doc__)
    parser.add_argument("--opset", type=int, default=15, help="the version")
    parser.add_argument("input_model", help="the model")
    parser.add_argument("output_model", help="where the newer model goes")
    given = parser.parse_args(arguments)
    update_onnx_opset(given.input_model, given.opset, given.output_model)


if __name__ == "__main__":
    main()
