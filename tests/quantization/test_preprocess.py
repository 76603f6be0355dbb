"""The command line that prepares a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.quantizing import PRODUCTS, saved

from sardonyx.formats.onnx import load
from sardonyx.quantization.preprocess import main


@pytest.mark.parametrize("skip", ["True", "false"])
def test_a_model_is_prepared(tmp_path: Path, skip: str) -> None:
    """With types of the values inside."""
    output = tmp_path / "prepared.onnx"
    main(["--input", str(saved(PRODUCTS, tmp_path)), "--output", str(output), "--skip_optimization", skip, "--auto_merge"])
    assert all(value.type is not None for node in load(output).graph for value in node.outputs)


def test_a_flag_is_true_or_false() -> None:
    """Else argparse says so."""
    with pytest.raises(SystemExit):
        main(["--input", "a", "--output", "b", "--skip_optimization", "perhaps"])
