"""The notation of manual placement."""

from __future__ import annotations

import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.partition.pins import Pins, parse_pins


def test_the_notation_tells_operators_nodes_indices_and_annotations() -> None:
    """The provider stands after the last equals sign."""
    pins = parse_pins(["Conv=A", "com.microsoft.Gelu = B", "node:a=b=A", "7=B", "annotation:=enc=A"])
    assert pins == Pins({"Conv": "A", "com.microsoft.Gelu": "B"}, {"a=b": "A"}, {7: "B"}, {"=enc": "A"})


@pytest.mark.parametrize("text", ["Conv", "=A", "Conv=", "node:=A", "axis:1=A"])
def test_a_malformed_placement_is_refused(text: str) -> None:
    """With what was given."""
    with pytest.raises(InvalidArgument, match=text):
        parse_pins([text])


def test_later_pins_win() -> None:
    """Of two for one operator; falling through is asked for by either."""
    joined = parse_pins(["Relu=A", "Neg=A"]).joined(Pins({"Relu": "B"}, fall_through=True))
    assert joined == Pins({"Relu": "B", "Neg": "A"}, fall_through=True)
