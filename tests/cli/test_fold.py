"""Folding."""

from __future__ import annotations

import pytest

from sardonyx.cli.fold import column_widths, fold


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("short", 10, ["short"]),
        ("", 10, [""]),
        ("/model/layers.0/mlp/MatMul", 16, ["/model/layers.0/", "  mlp/MatMul"]),
        ("sardonyx.nhwc.Conv", 14, ["sardonyx.nhwc.", "  Conv"]),
        ("one two three", 9, ["one two", "  three"]),
        ("abcdefghijklmnopqrst", 10, ["abcdefghij", "  klmnopqr", "  st"]),
        ("first\nsecond line", 20, ["first", "second line"]),
        ("a\n  indented text here", 12, ["a", "  indented", "    text", "    here"]),
    ],
)
def test_lines_break_where_a_reader_would(text: str, width: int, lines: list[str]) -> None:
    """Behind separators; within a word only where it is too long."""
    assert fold(text, width) == lines


def test_no_line_is_too_long() -> None:
    """Whatever the text is, and nothing of it is lost."""
    text = "/a-very/long.name_of_a-node:with,everything+in it" * 3
    for width in range(3, 60):
        lines = fold(text, width)
        assert max(map(len, lines)) <= width
        assert "".join(line.strip() for line in lines).replace(" ", "") == text.replace(" ", "")


def test_the_widest_columns_give_way() -> None:
    """Those that are fixed stay, and none becomes narrower than the least."""
    assert column_widths([50, 10, 5], [False, False, True], 45) == [30, 10, 5]
    assert column_widths([50, 50], [False, False], 60) == [30, 30]
    assert column_widths([50, 50], [True, False], 20) == [50, 8]
    assert column_widths([5, 5], [False, False], 80) == [5, 5]
