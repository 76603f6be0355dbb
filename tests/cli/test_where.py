"""`sardonyx where`."""

from __future__ import annotations

import json
from collections.abc import Callable

from click.testing import Result

from sardonyx.cli.where import locate


def test_an_operator_has_its_schema_shape_function_kernel_and_tests() -> None:
    """One guess finds each room."""
    rows = dict(locate("Softmax"))
    assert rows["schema, ai.onnx"].startswith("the onnx package: Softmax-")
    assert "ops/shapes/softmax.py:" in rows["shape function, ai.onnx since 1"]
    assert "kernels/softmax.py:" in rows["reference kernel, ai.onnx since 13"]
    assert rows["tests"] == "tests/**/test_softmax.py"


def test_rules_that_name_the_operator_are_listed() -> None:
    """Rules and passes name operators literally."""
    assert any("fuse_conv_batchnorm" in place for _, place in locate("BatchNormalization"))


def test_an_unknown_operator_gets_near_names(invoke: Callable[..., Result]) -> None:
    """And exit status 1."""
    result = invoke("where", "Softmaxx")
    assert result.exit_code == 1
    assert "did you mean Softmax" in result.stderr


def test_json_lists_pairs(invoke: Callable[..., Result]) -> None:
    """What, and where."""
    assert all(set(row) == {"what", "where"} for row in json.loads(invoke("where", "Conv", "--json").stdout))
