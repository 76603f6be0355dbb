"""Registration of reference kernels."""

from __future__ import annotations

import pytest

import sardonyx.providers.reference.kernels  # noqa: F401  registers the kernels
from sardonyx.ops.families import family_of
from sardonyx.ops.views.attention import Attention
from sardonyx.providers.reference import kernels as families
from sardonyx.providers.reference.registry import Given, find_kernel, kernel, kernels_of, registered_operators


def test_the_newest_meaning_not_above_the_version_is_found() -> None:
    """A schema bump without a new meaning needs no registration."""
    newest = find_kernel("", "Softmax", 13)
    assert newest is not None
    assert find_kernel("", "Softmax", 99) is newest
    assert find_kernel("", "Softmax", 12) is not newest


def test_an_unknown_operator_or_domain_has_no_kernel() -> None:
    """The domain is part of the name."""
    assert find_kernel("", "Nonsense", 1) is None
    assert find_kernel("some.domain", "Relu", 1) is None


def test_registering_one_version_twice_is_an_error() -> None:
    """Two meanings of one version would depend on the order of imports."""
    with pytest.raises(ValueError, match="two reference kernels for ai.onnx.Relu since 1"):
        kernel("Relu", since=kernels_of("Relu")[0].since)(lambda call, x: x)


def test_every_kernel_belongs_to_a_family() -> None:
    """`sardonyx where` finds the files of each operator."""
    assert not [name for _, name in registered_operators() if family_of(name) is None]


def test_a_kernel_may_take_a_view() -> None:
    """Its keywords are the view of the node, and the attributes that it names besides."""
    found = find_kernel("", "Attention", 23)
    assert found is not None
    assert found.view is Attention
    given = Given.of("Attention", 24, "", {"scale": 2.0, "q_num_heads": None, "left_window_size": 3})
    keywords = found.keywords(given, {"left_window_size": 3, "scale": 2.0})
    assert keywords.keys() == {"view", "left_window_size"}
    assert (keywords["view"].scale, keywords["view"].takes_short_masks) == (2.0, True)


def test_versions_with_one_function_are_two_meanings() -> None:
    """A view says what differs, so one function may serve several versions, but each is a kernel of its own."""
    old, new = find_kernel("", "Softmax", 12), find_kernel("", "Softmax", 13)
    assert old is not new
    assert old is find_kernel("", "Softmax", 1)


def test_what_is_given_without_a_value_is_left_out() -> None:
    """None and empty lists are not attributes."""
    assert Given.of("Conv", 11, "", {"pads": (), "strides": [], "group": None}).attributes == {}


def test_the_table_of_families_names_what_each_registers() -> None:
    """A kernel that it lacked would not be found."""
    found: dict[str, set[str]] = {}
    for domain, op_type in registered_operators():
        for entry in kernels_of(op_type):
            package, _, family = entry.function.__module__.partition("reference.kernels.")
            if entry.domain == domain and package == "sardonyx.providers.":
                found.setdefault(family, set()).add(f"{domain}.{op_type}" if domain else op_type)
    assert {name: set(operators.split()) for name, operators in families.FAMILIES.items()} == found
