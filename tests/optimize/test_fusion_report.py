"""The report of why a node was fused or not."""

from __future__ import annotations

import dataclasses
import json

from sardonyx.optimize.fusion_report import Attempt, FusionReport, Outcome, label_text
from sardonyx.optimize.report import NodeLabel

CONV, NORM = NodeLabel("Conv", "c"), NodeLabel("BatchNormalization", "n")
STOPPED = Attempt(
    "fuse_conv_batchnorm",
    Outcome.STOPPED,
    (NORM, CONV),
    2,
    place="input W of Conv c",
    expected="a constant",
    found="w, an input of the graph, float[4, 3, 3, 3]",
)


def test_an_attempt_shows_what_matched_and_where_it_stopped() -> None:
    """A line for each, with what was expected there and what was found."""
    assert str(STOPPED).splitlines() == [
        "fuse_conv_batchnorm: stopped, 2 of 2 nodes matched",
        "    matched   BatchNormalization n, Conv c",
        "    at        input W of Conv c",
        "    expected  a constant",
        "    found     w, an input of the graph, float[4, 3, 3, 3]",
    ]


def test_a_rule_that_fired_shows_what_it_made() -> None:
    """Or that it made nothing new."""
    fired = Attempt("fuse_pad", Outcome.FIRED, (CONV,), 1, made=(CONV,))
    assert str(fired).splitlines() == ["fuse_pad: fired", "    matched   Conv c", "    made      Conv c"]
    assert str(dataclasses.replace(fired, made=())).splitlines()[-1] == "    made      no new node"


def test_the_text_has_80_columns() -> None:
    """A node and its operator stay in one line."""
    nodes = tuple(NodeLabel("Transpose", f"/encoder/layers.{index}/self_attn/Transpose") for index in range(4))
    lines = str(Attempt("merge", Outcome.DECLINED, nodes, 4, reason="it is long " * 30)).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("Transpose /encoder" in line for line in lines) == 4


def test_rules_that_matched_one_node_are_short() -> None:
    """The smallest patterns first, and those beyond the tenth by name."""
    single = [
        dataclasses.replace(STOPPED, optimization=f"rule_{size:02}", matched=(CONV,), pattern_size=size, expected="Pad", place="x")
        for size in range(13, 1, -1)
    ]
    text = str(FusionReport("m.onnx", CONV, (*single, STOPPED)))
    assert text.startswith("Conv c in m.onnx\n\nfuse_conv_batchnorm: stopped")
    assert "    rule_02: Pad at x\n    rule_03: Pad at x\n" in text
    assert text.endswith("2 more of these: rule_12, rule_13")


def test_a_node_that_no_rule_matches() -> None:
    """The report says so."""
    assert str(FusionReport("m.onnx", CONV, ())).endswith("Ask at a node beside it.")


def test_the_report_becomes_json() -> None:
    """All of it, outcomes as text."""
    facts = json.loads(json.dumps(dataclasses.asdict(FusionReport("m.onnx", CONV, (STOPPED,)))))
    assert facts["attempts"][0]["outcome"] == "stopped"
    assert facts["node"] == {"operator": "Conv", "name": "c"}


def test_a_node_without_a_name_is_called_by_its_operator() -> None:
    """Without a space at the end."""
    assert label_text(NodeLabel("Conv", "")) == "Conv"
