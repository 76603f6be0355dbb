"""Reports as text, and what they call nodes."""

from support.optimizing import model_of

from sardonyx.optimize.contract import Level
from sardonyx.optimize.report import NodeLabel, PassRecord, Problem, Report, labels


def test_report_as_text():
    """A report says how far it went, what passes and rules did, and what was left out."""
    report = Report(Level.BASIC, 5, 3, {"fold_constants": PassRecord("fold_constants", 2, 1, 0.001)}, seconds=0.002)
    report.fired["fuse_gelu"] = 4
    report.problems.append(Problem("mine", "changes results: it gives other elements"))
    assert str(report).splitlines() == [
        "BASIC: 5 -> 3 nodes in 2.0 ms",
        "  fold_constants: changed in 1 of 2 runs, 1.0 ms",
        "  fuse_gelu: fired 4 times",
        "  left out: mine changes results: it gives other elements",
    ]


def test_nodes_are_called_by_name_or_by_what_they_make():
    """A label has the operator with its domain, and the node's name or else its first output's."""
    model = model_of("graph(x: float[2]) -> (y) { a = Neg(x) @first y = com.microsoft.Gelu(a) }", "21, com.microsoft 1")
    assert labels(model.graph) == (NodeLabel("Neg", "first"), NodeLabel("com.microsoft.Gelu", "y"))
