"""A side of a comparison as text."""

from __future__ import annotations

import pytest

from sardonyx.diff.configuration import Configuration, parse_configuration
from sardonyx.errors import InvalidArgument


@pytest.mark.parametrize("text", ["", "default", " , "])
def test_nothing_is_a_session_without_options(text: str) -> None:
    """With all optimizations and the session's own providers."""
    assert parse_configuration(text) == Configuration()


def test_every_key_has_its_field() -> None:
    """Several providers, rules and passes are separated by a plus sign; what has a dot is a config entry."""
    found = parse_configuration(
        "level=basic,provider=CPU+Reference,precision=BF16,threads=2,isa=avx2,disable=a+b,session.executor=parallel"
    )
    assert found == Configuration(
        level="basic",
        providers=("CPU", "Reference"),
        precision="BF16",
        threads=2,
        isa="avx2",
        disabled=("a", "b"),
        entries={"session.executor": "parallel"},
    )


@pytest.mark.parametrize(
    "text", ["default", "level=none,provider=Reference", "onnxruntime,level=basic", "threads=2,isa=avx2,a.b=c"]
)
def test_the_text_comes_back(text: str) -> None:
    """Reports show it."""
    assert str(parse_configuration(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("levle=none", "no key 'levle', did you mean 'level'"),
        ("level=full", "no level 'full'.*none, basic"),
        ("onnxruntme", "no engine 'onnxruntme', did you mean 'onnxruntime'"),
        ("threads=many", "threads is a number of at least 0, got 'many'"),
        ("onnxruntime,isa=avx2", "onnxruntime takes no isa"),
        ("openvino,level=none,provider=CPU", "openvino takes no provider and no level"),
    ],
)
def test_what_is_unknown_is_refused(text: str, message: str) -> None:
    """With the nearest known name, and where another engine has no such thing."""
    with pytest.raises(InvalidArgument, match=message):
        parse_configuration(text)
