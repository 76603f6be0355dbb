"""`sardonyx where`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from sardonyx.cli.main import cli
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


def test_no_operator_is_not_all_of_them(invoke: Callable[..., Result]) -> None:
    """An empty text would be in every file."""
    result = invoke("where", " ")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "name an operator" in result.stderr


def test_json_lists_pairs(invoke: Callable[..., Result]) -> None:
    """What, and where."""
    assert all(set(row) == {"what", "where"} for row in json.loads(invoke("where", "Conv", "--json").stdout))


@pytest.mark.parametrize("text", ["conv", "CONV", "Conv-16", "ai.onnx.Conv", "AI.ONNX.conv-1"])
def test_an_operator_may_be_written_in_many_ways(invoke: Callable[..., Result], text: str) -> None:
    """In any case, with its domain or its version."""
    assert "sardonyx/ops/shapes/conv.py" in invoke("where", text).output


def test_a_domain_chooses(invoke: Callable[..., Result]) -> None:
    """Attention is an operator of two; ZipMap is of ai.onnx.ml, and not of com.microsoft."""
    assert "contrib/attention.py" in invoke("where", "com.microsoft.attention").output
    assert "contrib/attention.py" not in invoke("where", "ai.onnx.Attention").output.partition("rule")[0]
    assert "ml_feature.py" in invoke("where", "ai.onnx.ml.ZipMap").output
    assert "unknown operator 'com.microsoft.ZipMap'" in invoke("where", "com.microsoft.ZipMap").stderr


def test_it_fits_80_columns(invoke: Callable[..., Result]) -> None:
    """Long paths are folded."""
    lines = CliRunner().invoke(cli, ["where", "com.microsoft.Attention"], env={"COLUMNS": "80"}).output.splitlines()
    assert max(map(len, lines)) <= 80


def test_a_version_leaves_what_it_reads(invoke: Callable[..., Result]) -> None:
    """The schema and the kernel of Clip in opset 11, not those of 6 and 13; beyond the newest the newest."""
    rows = locate("Clip", "", 11)
    assert [place for what, place in rows if what.startswith("schema")] == ["the onnx package: Clip-11"]
    assert [what for what, _ in rows if what.startswith("reference")] == ["reference kernel, ai.onnx since 11"]
    assert locate("Clip", "", 999)[0] == ("schema, ai.onnx", "the onnx package: Clip-13")


def test_a_version_before_the_operator_is_an_error(invoke: Callable[..., Result]) -> None:
    """Rules and passes know no versions, and are no reason to show anything."""
    result = invoke("where", "ai.onnx.Gelu-19")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no Gelu in version 19; without -19" in result.stderr


def test_a_misspelt_domain_gets_its_operator(invoke: Callable[..., Result]) -> None:
    """With the domain that is meant."""
    assert "did you mean com.microsoft.Gelu?" in invoke("where", "com.microsft.Gelu").stderr
