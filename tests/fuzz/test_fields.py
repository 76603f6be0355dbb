"""Models of which fields were changed, whatever they mean."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.fields import drawn_model, messages

_SCRIPT = Path(__file__).with_name("fields.py")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_some_cases_end_well(tmp_path: Path) -> None:
    """In a result, or an error of ours."""
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path), "SARDONYX_CACHE_DIR": str(tmp_path), "SARDONYX_GUARD": "1"}
    command = [sys.executable, "-W", "ignore", str(_SCRIPT), "3", "--seed", "77"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'ok': " in done.stdout
    assert "'refused': " in done.stdout


def test_a_seed_is_one_model() -> None:
    """The same each time, and mostly another than that of the next."""
    drawn = [drawn_model(random.Random(seed)) for seed in range(8)]
    assert drawn == [drawn_model(random.Random(seed)) for seed in range(8)]
    assert len({content for _, content in drawn}) == 8


def test_all_messages_are_found() -> None:
    """Also those within others."""
    import onnx

    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=1)
    kinds = [type(message).__name__ for message in messages(onnx.helper.make_graph([node], "g", [], []))]
    assert kinds == ["GraphProto", "NodeProto", "AttributeProto"]
