"""The file that says where operators run."""

from __future__ import annotations

from pathlib import Path

import pytest

from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.session.settings.grammar import Limit
from sardonyx.session.settings.placement_file import MODES, PlacementFile, hint, read_placement_file

FILE = """
placement = "measured"
profile = "profile.json"
order = ["Reference", "CPUExecutionProvider"]
fall_through = true
[operators]
Conv = "CPUExecutionProvider"
Relu = "CPUExecutionProvider"
[nodes]
"/a/b=c" = "ReferenceExecutionProvider"
[indices]
7 = "CPU"
[annotations]
encoder = "CPU"
[memory]
CPU = "64,stats.csv"
"""


def test_a_file_says_all_of_it(tmp_path: Path) -> None:
    """The profile is found beside the file."""
    (tmp_path / "p.toml").write_text(FILE)
    found = read_placement_file(tmp_path / "p.toml")
    assert (found.mode, found.profile) == ("measured", str(tmp_path / "profile.json"))
    assert found.order == ("Reference", "CPUExecutionProvider")
    assert found.pins.operators == {"Conv": "CPUExecutionProvider", "Relu": "CPUExecutionProvider"}
    assert (found.pins.nodes, found.pins.indices) == ({"/a/b=c": "ReferenceExecutionProvider"}, {7: "CPU"})
    assert (found.pins.annotations, found.pins.fall_through) == ({"encoder": "CPU"}, True)
    assert found.limits == (("CPU", Limit(64, "stats.csv")),)


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    """As if there were none."""
    (tmp_path / "p.toml").write_text("")
    assert read_placement_file(tmp_path / "p.toml") == PlacementFile()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("operator = 1", "p.toml: there is no key 'operator'; did you mean 'operators'"),
        ("fall_through = 1", "p.toml: fall_through must be true or false, got 1"),
        ("[operators]\nConv = 1", "operators must be a table of texts"),
        ("[indices]\nfirst = 'A'", "an index is a number of at least 0, got 'first'"),
        ("[memory]\nA = 'much'", "p.toml: the memory limit of A is KIB, KIB,FILE or ,FILE; got 'much'"),
        ("= 3", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, text: str, message: str) -> None:
    """With its key."""
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(InvalidArgument, match=message):
        read_placement_file(tmp_path / "p.toml")


def test_a_missing_file_is_told() -> None:
    """As other missing files."""
    with pytest.raises(NoSuchFile, match=r"no-such\.toml"):
        read_placement_file("no-such.toml")


def test_a_hint_names_the_nearest_or_all() -> None:
    """For the end of a message."""
    assert hint("measure", MODES) == "; did you mean 'measured'?"
    assert hint("x", MODES) == "; known are priority, measured"
