"""The printer of the text form; what it prints is parsed again in test_text.py."""

from sardonyx.ir.text_parse import parse_graph
from sardonyx.ir.text_print import print_graph


def test_large_tensors_are_elided():
    """A constant with more elements than allowed prints as an ellipsis with its type."""
    graph = parse_graph("graph() -> () { w: float[3] = [1, 2, 3] }")
    assert "w: float[3] = ...\n" in print_graph(graph, max_elements=2)
    assert "w: float[3] = [1.0, 2.0, 3.0]\n" in print_graph(graph, max_elements=3)


def test_header_line_says_the_most_common_version():
    """Without imports given, the first line names each domain's commonest version and only others are marked."""
    graph = parse_graph("opset 13\ngraph(x) -> (z) { y = Relu(x) w = Relu:6(y) z = Relu(w) }")
    text = print_graph(graph)
    assert text.startswith("opset 13\n")
    assert text.count(":6(") == 1
    assert text.count(":13(") == 0


def test_unused_nameless_output_is_blank():
    """An output that nobody reads and nobody named is an underscore."""
    assert "    _, y = Dropout(x)\n" in print_graph(parse_graph("graph(x) -> (y) { _, y = Dropout(x) }"))
