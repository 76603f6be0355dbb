"""`python -m sardonyx.tools.optimize_onnx_model --opt_level basic model.onnx optimized.onnx`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sardonyx.tools.onnx_model_utils import get_optimization_level, optimize_model

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Optimize a model for a file."""
    parser = argparse.ArgumentParser(prog="python -m sardonyx.tools.optimize_onnx_model", description=main.__doc__)
    levels = ("disable", "basic", "extended", "layout", "all")
    parser.add_argument("--opt_level", default="basic", choices=levels, help="how far to go")
    parser.add_argument("--log_level", default="error", choices=("debug", "info", "warning", "error"), help="accepted")
    parser.add_argument("input_model", help="the model")
    parser.add_argument("output_model", help="where the optimized model goes")
    given = parser.parse_args(arguments)
    optimize_model(given.input_model, given.output_model, get_optimization_level(given.opt_level))


if __name__ == "__main__":
    main()
