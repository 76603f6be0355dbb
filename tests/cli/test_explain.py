"""`sardonyx explain`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from support.models import model

from sardonyx.formats.onnx import save


def test_the_table_has_a_line_for_each_node(invoke: Callable[..., Result], model_file: Path) -> None:
    """And counts before."""
    output = invoke("explain", model_file, "--provider", "ReferenceExecutionProvider").output
    assert "Relu-21" in output
    assert "2 nodes in 1 partition\n" in output
    assert "2 on ReferenceExecutionProvider" in output


def test_json_has_all_of_a_placement(invoke: Callable[..., Result], model_file: Path) -> None:
    """Provider, partition and the reasons of others."""
    first = json.loads(invoke("explain", model_file, "--provider", "ReferenceExecutionProvider", "--json").stdout)[0]
    assert (first["node"], first["op_type"], first["provider"]) == ("first", "Relu", "ReferenceExecutionProvider")
    assert first["declined"] == {}


def test_an_unknown_provider_is_told(invoke: Callable[..., Result], model_file: Path) -> None:
    """With those that are available."""
    assert "available are" in invoke("explain", model_file, "--provider", "Nonsense").stderr


def test_nodes_are_placed_by_options(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """By what is given, or by a file."""
    placed = json.loads(invoke("explain", model_file, "--place", "node:first=Reference", "--json").stdout)
    assert {item["node"]: item["provider"] for item in placed}["first"] == "ReferenceExecutionProvider"
    (tmp_path / "p.toml").write_text('[operators]\nRelu = "Reference"\nAdd = "Reference"\n')
    placed = json.loads(invoke("explain", model_file, "--placement-file", tmp_path / "p.toml", "--json").stdout)
    assert {item["provider"] for item in placed} == {"ReferenceExecutionProvider"}


def test_memory_is_limited_by_an_option(invoke: Callable[..., Result], model_file: Path) -> None:
    """A provider without memory gets nothing, for the reason that is shown."""
    output = invoke("explain", model_file, "--provider", "CPUExecutionProvider", "--memory-limit", "CPU=0", "--json").stdout
    placed = json.loads(output)
    assert {item["provider"] for item in placed} == {"ReferenceExecutionProvider"}
    assert "its memory is full" in placed[0]["declined"]["CPUExecutionProvider"]


def test_config_entries_are_set_by_an_option(invoke: Callable[..., Result], model_file: Path) -> None:
    """Any of a session's; what is no entry is told."""
    assert "got 'fast'" in invoke("explain", model_file, "--config", "session.executor=fast").stderr
    placed = json.loads(invoke("explain", model_file, "--config", "session.placement_order=Reference", "--json").stdout)
    assert {item["provider"] for item in placed} == {"ReferenceExecutionProvider"}
    assert "--config takes KEY=TEXT, got 'session.executor'" in invoke("explain", model_file, "--config", "session.executor").stderr


def test_a_wrong_placement_is_told(invoke: Callable[..., Result], model_file: Path) -> None:
    """With what is near."""
    assert "did you mean 'Relu'" in invoke("explain", model_file, "--place", "Rellu=CPU").stderr
    assert "a placement is OPERATOR=PROVIDER" in invoke("explain", model_file, "--place", "Relu").stderr
    assert "there is no profile 'none.json'" in invoke("explain", model_file, "--placement-profile", "none.json").stderr


def test_fusions_of_a_node(invoke: Callable[..., Result], model_file: Path) -> None:
    """As text, and as JSON."""
    output = invoke("explain", model_file, "--fusions", "first").output
    assert output.startswith("Relu first in small.onnx\n\nRules that matched one node")
    facts = json.loads(invoke("explain", model_file, "--fusions", "first", "--json").stdout)
    assert facts["node"] == {"operator": "Relu", "name": "first"}
    assert {attempt["outcome"] for attempt in facts["attempts"]} == {"stopped"}


def test_fusions_by_providers_are_pointed_to(invoke: Callable[..., Result], model_file: Path) -> None:
    """Where no rule fires a kernel may compute the node with others all the same."""
    assert (
        "providers fuse what they compile: `sardonyx profile MODEL`" in invoke("explain", model_file, "--fusions", "first").output
    )


def test_fusions_of_a_node_that_is_not_there(invoke: Callable[..., Result], model_file: Path) -> None:
    """Near names are offered, and the status is 1."""
    result = invoke("explain", model_file, "--fusions", "fist")
    assert result.exit_code == 1
    assert "near it are first" in result.stderr


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        (("--operator", "relu"), ["first"]),
        (("--operator", "ai.onnx.Add"), ["y"]),
        (("--name", "fir"), ["first"]),
        (("--name", "f*t"), ["first"]),
        (("--on", "cpu"), ["first", "y"]),
        (("--on", "CPUExecutionProvider", "--operator", "Relu", "--operator", "Add"), ["first", "y"]),
        (("--on", "Reference"), []),
    ],
)
def test_nodes_are_filtered(invoke: Callable[..., Result], model_file: Path, filters: tuple[str, ...], kept: list[str]) -> None:
    """By operator, provider and name; all must hold."""
    assert [item["node"] for item in json.loads(invoke("explain", model_file, *filters, "--json").stdout)] == kept


def test_filters_that_nothing_has_are_named_with_the_nearest(invoke: Callable[..., Result], model_file: Path) -> None:
    """Each by itself; one that some node has is not."""
    said = invoke("explain", model_file, "--operator", "Reluu", "--operator", "Conv", "--on", "Refrence").stderr
    assert "it has no operator 'Reluu', did you mean Relu?; it has no operator 'Conv'; it has no provider 'Refrence'; its" in said
    assert "it has no operator" not in invoke("explain", model_file, "--operator", "Relu", "--name", "none").stderr


def test_the_summary_comes_first(invoke: Callable[..., Result], model_file: Path) -> None:
    """Of all nodes, whatever is listed then; or nothing is."""
    shown = invoke("explain", model_file, "--operator", "Relu").output
    assert shown.splitlines()[0].endswith("2 nodes in 1 partition")
    assert "1 of 2 nodes listed" in shown
    short = invoke("explain", model_file, "--summary").output
    assert "2 on CPUExecutionProvider" in short
    assert "Relu-21" not in short


def test_filters_that_leave_nothing_are_told(invoke: Callable[..., Result], model_file: Path) -> None:
    """With what there is."""
    done = invoke("explain", model_file, "--operator", "Conv")
    assert done.exit_code == 1
    assert "its operators are Add, Relu" in done.stderr


def test_the_precision_of_products_is_a_column(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """And counted in the summary; without products there is neither."""
    save(
        model("graph(x: float[4, 4]) -> (y: float[4, 4]) { w: float[4, 4] = ... 1 a = MatMul(x, w) y = Relu(a) }"),
        tmp_path / "p.onnx",
    )
    output = invoke("explain", tmp_path / "p.onnx").output
    assert "1 product " in output
    assert "partition  precision" in output
    first, second = json.loads(invoke("explain", tmp_path / "p.onnx", "--json").stdout)
    assert (first["precision"], second["precision"]) == ("float32", "")
    save(model("graph(x: float[4]) -> (y: float[4]) { y = Relu(x) }"), tmp_path / "q.onnx")
    assert "partition  precision" not in invoke("explain", tmp_path / "q.onnx").output


def test_partitions_have_numbers_where_there_is_one_graph(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """Its name, which converters make of digits, fills no column."""
    path = tmp_path / "named.onnx"
    named = model("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}")
    named.graph.name = "a1b2c3d4e5f6"
    save(named, path)
    output = invoke("explain", path).output
    assert "a1b2c3d4e5f6" not in output
    assert re.search(r"Relu-\d+ +CPU +0$", output, re.MULTILINE)


def test_nodes_that_are_no_custom_operators_are_not_listed_as_declined(
    invoke: Callable[..., Result], model_file: Path, tmp_path: Path
) -> None:
    """Where a file of operators is loaded; JSON has the reason."""
    (tmp_path / "mine.py").write_text("import sardonyx\n\n\n@sardonyx.op('mine', 'F')\ndef f(x):\n    return x\n")
    assert "no custom operator" not in invoke("explain", model_file, "--load", tmp_path / "mine.py").output
    assert "no custom operator" in invoke("explain", model_file, "--load", tmp_path / "mine.py", "--json").output
