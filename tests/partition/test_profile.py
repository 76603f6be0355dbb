"""What measuring found, and its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.models import graph

from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.partition.profile import (
    Copies,
    Profile,
    Sample,
    interpolated,
    key_of,
    key_of_graph,
    load_profile,
    save_profile,
    value_bytes,
)

RELUS = """graph(x: float[n, 4], z: float[8, 4]) -> (a: float[n, 4], b: float[n, 4], c: float[8, 4]) {
    a = Relu(x)
    b = Relu(a)
    c = Relu(z)
}"""
PROFILE = Profile(
    samples=(
        Sample("A", "Relu", "k", 100.0, 12.0, 10.0, (50.0,)),
        Sample("A", "Relu", "l", 300.0, 32.0, 30.0, (150.0,)),
        Sample("B", "Relu", "k", 100.0, 5.0, 4.0, (50.0,)),
    ),
    steps_us={"A": 3.0},
    copies={"device": Copies(((0.0, 1.0), (100.0, 2.0)), ((0.0, 10.0), (100.0, 20.0)))},
    sizes={"n": 8},
    models={"m": {"A": 1.0}},
)


def test_nodes_of_one_type_have_one_key() -> None:
    """Another size is another key; names do not matter."""
    first, second, third = graph(RELUS)
    assert key_of(first) == key_of(second) != key_of(third)
    assert key_of_graph(graph(RELUS)) == key_of_graph(graph(RELUS.replace("x", "q")))


def test_attributes_and_versions_are_part_of_the_key() -> None:
    """They change what a node takes."""
    text = "graph(x: float[2, 4]) -> (y: float[2, 4]) {\ny = Softmax(x) {axis = 0}\n}"
    (one,), (other,), (older,) = graph(text), graph(text.replace("= 0", "= 1")), graph(text, opset=11)
    assert len({key_of(node) for node in (one, other, older)}) == 3


def test_unknown_dimensions_have_one_name() -> None:
    """Their numbers differ from load to load."""
    text = "graph(x: float[?, 4]) -> (y: float[?, 4]) {\ny = Relu(x)\n}"
    assert key_of_graph(graph(text)) == key_of_graph(graph(text))


def test_sizes_of_symbols_are_those_of_the_profile() -> None:
    """0 where a symbol is not known."""
    x, z = graph(RELUS).inputs
    assert (value_bytes(x, {"n": 8}), value_bytes(x, {}), value_bytes(z, {})) == (128, 0, 128)


def test_a_node_that_was_not_measured_is_interpolated_over_its_bytes() -> None:
    """Among the samples of its provider and operator; without any there is no answer."""
    first, *_ = graph(RELUS)
    assert PROFILE.size_bytes(first) == 256
    assert PROFILE.inside_us("A", first) == pytest.approx(10 + 20 * 156 / 200)
    assert PROFILE.inside_us("B", first) == 4.0
    assert PROFILE.inside_us("C", first) is None
    assert PROFILE.output_bytes(first) == [128]


def test_a_measured_node_is_what_was_measured() -> None:
    """By its key."""
    first, *_ = graph(RELUS)
    sample = Sample("A", "Relu", key_of(first), 1.0, 7.0, 6.0, (9.0,))
    profile = Profile(samples=(*PROFILE.samples, sample))
    assert (profile.inside_us("A", first), profile.output_bytes(first)) == (6.0, [9.0])
    assert (profile.saved_us("A", first), profile.saved_us("B", first)) == (1.0, 0.0)


def test_a_profile_knows_nodes_of_which_it_has_any() -> None:
    """On one of the providers that are asked about; an empty graph needs nothing."""
    nodes = list(graph(RELUS))
    profile = Profile(samples=(Sample("A", "Relu", "of another size", 1.0, 7.0, 6.0),))
    assert [profile.knows(names, nodes) for names in (["A"], ["B", "A"], ["B"], [])] == [True, True, False, False]
    assert profile.knows(["B"], [])


def test_lines_go_on_beyond_the_last_point_and_stay_before_the_first() -> None:
    """And never fall below 0."""
    points = [(10.0, 5.0), (20.0, 7.0)]
    assert [interpolated(points, size) for size in (0, 10, 15, 20, 30)] == [5, 5, 6, 7, 9]
    assert interpolated([(10.0, 5.0), (20.0, 1.0)], 100) == 0
    assert interpolated([(10.0, 5.0)], 100) == 5


def test_copies_have_two_ways() -> None:
    """A memory that was not measured costs nothing."""
    assert PROFILE.copy_us("device", 50, to_host=True) == 1.5
    assert PROFILE.copy_us("device", 50, to_host=False) == 15
    assert PROFILE.copy_us("other", 50, to_host=False) == 0


FACTS = {"format": 1, "samples": [], "steps_us": {}, "copies": {}, "sizes": {}, "models": {}, "border_factor": 1}


def test_a_profile_comes_back_from_its_file(tmp_path: Path) -> None:
    """Equal in all parts."""
    save_profile(PROFILE, tmp_path / "p.json")
    assert load_profile(tmp_path / "p.json") == PROFILE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not what `sardonyx profile --placement` writes"),
        ("[]", "is not what"),
        ("{}", "is not what"),
        (json.dumps({"format": 0}), "it has format 0, this version reads 1; measure again"),
        (json.dumps({"format": 1, "samples": [{}], "copies": {}}), "is not what"),
        (json.dumps({"format": 1, "samples": [], "copies": {}, "colour": 1}), "is not what"),
        (json.dumps(FACTS | {"steps_us": 3}), "is not what"),
        (json.dumps(FACTS | {"models": {"m": 4}}), "is not what"),
        (json.dumps(FACTS | {"samples": [{"provider": "A", "operator": "Neg", "key": "k", "size_bytes": "much"}]}), "is not what"),
    ],
)
def test_a_file_that_is_no_profile_is_told(tmp_path: Path, text: str, message: str) -> None:
    """With its name."""
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InvalidArgument, match=rf"p\.json: .*{message}"):
        load_profile(tmp_path / "p.json")


def test_a_missing_profile_tells_how_to_make_one(tmp_path: Path) -> None:
    """By the command."""
    with pytest.raises(NoSuchFile, match=r"make it by `sardonyx profile --placement MODEL -o none\.json`"):
        load_profile(tmp_path / "none.json")
