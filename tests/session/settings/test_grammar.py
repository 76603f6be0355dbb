"""Config entries whose text is a list."""

from __future__ import annotations

from typing import Any

import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.option import Kind, Option
from sardonyx.partition.pins import Pins
from sardonyx.session.settings.grammar import LAYERS, LEVEL, LIMIT, LIMITS, PINS, SHAPES, Limit, read_limit


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (LIMIT, "5", Limit(5)),
        (LIMIT, " 5, stats.csv ", Limit(5, "stats.csv")),
        (LIMIT, ",stats.csv", Limit(None, "stats.csv")),
        (LIMITS, "P=65536; OpenVINO = 4096,stats.csv;", (("P", Limit(65536)), ("OpenVINO", Limit(4096, "stats.csv")))),
        (SHAPES, "input_ids:[8, 4096]; mask:[8,4096]", {"input_ids": (8, 4096), "mask": (8, 4096)}),
        (LAYERS, "cuda(encoder, =embed); cpu(decoder)", {"encoder": "cuda", "=embed": "cuda", "decoder": "cpu"}),
        (LEVEL, "ORT_ENABLE_BASIC", 1),
        (LEVEL, "99", 99),
        (PINS, "Conv=CPU; node:last=Reference", Pins({"Conv": "CPU"}, {"last": "Reference"})),
    ],
)
def test_a_list_becomes_values(kind: Kind[Any], text: str, value: object) -> None:
    """Parts are separated by semicolons."""
    assert Option("key", kind, None, "").read({"key": text}) == value


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (LIMIT, "much", "key is KIB, KIB,FILE or ,FILE, got 'much'"),
        (LIMITS, "P", "key is a list PROVIDER=KIB; PROVIDER=KIB,FILE; ..., got 'P'"),
        (LIMITS, "P=much", "the memory limit of P is KIB, KIB,FILE or ,FILE; got 'much'"),
        (SHAPES, "x:[1]; y", r"key is a list NAME:\[SIZE,SIZE\]; ... with sizes from 1 on, got 'y'"),
        (SHAPES, "x:[0, 4]", r"got 'x:\[0, 4\]'"),
        (SHAPES, "x:[]", r"got 'x:\[\]'"),
        (LAYERS, "cpu", r"key is a list of DEVICE\(TEXT, TEXT\), separated by semicolons, got 'cpu'"),
        (LAYERS, "cpu(a); gpu(a)", "the layer 'a' is assigned twice, to cpu and gpu"),
        (LEVEL, "most", "key is 0, 1, 2, 3, 99 or one of \"disable_all\", .* got 'most'"),
        (LEVEL, "4", "got '4'"),
        (PINS, "Conv", "a placement is OPERATOR=PROVIDER, .* got 'Conv'"),
    ],
)
def test_what_is_malformed_is_told(kind: Kind[Any], text: str, message: str) -> None:
    """With the part that is."""
    with pytest.raises(InvalidArgument, match=message):
        Option("key", kind, None, "").read({"key": text})


def test_a_limit_may_come_from_elsewhere() -> None:
    """Its message begins with where."""
    assert read_limit("the limit", "1,a.csv") == Limit(1, "a.csv")
    with pytest.raises(InvalidArgument, match="the limit is KIB, KIB,FILE or ,FILE; got ''"):
        read_limit("the limit", "")
