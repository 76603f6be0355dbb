"""Runs of a model, and what is built for them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.providers import FusingProvider

from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Graph, Model
from sardonyx.provider import Body, Partition, Program
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.options import SessionOptions
from sardonyx.session.runner import Runner
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source

TWO = "graph(x: float[n], z: float[n]) -> (a: float[n], b: int64[1]) {\na = Neg(x)\nb = Shape(z)\n}"
ONE = "graph(x: float[n]) -> (a: float[n]) {\na = Neg(x)\n}"


def _runner(given: Any, *providers: FusingProvider, skip: bool = False) -> Runner:
    options = SessionOptions()
    options.provider_failure = "skip" if skip else ""
    return Runner(Source.of(given), read_settings(options), ProviderList.of([*providers, ReferenceProvider()]))


def test_outputs_come_in_the_order_that_is_asked_for() -> None:
    """Whether all are computed or those only."""
    runner = _runner(to_bytes(model(TWO)))
    values = [np.float32([1, 2]), np.float32([3, 4])]
    for only in (False, True):
        found = runner.run(values, [1, 0, 1], only_wanted=only)
        assert [item.tolist() for item in found] == [[2], [-1, -2], [2]]
        assert [item.tolist() for item in runner.run(values, [0], only_wanted=only)] == [[-1, -2]]


def test_symbols_that_differ_need_a_model_that_can_be_read_again() -> None:
    """As bytes can, and a model that the caller may change cannot."""
    values = [np.float32([1, 2]), np.float32([3, 4, 5])]
    assert _runner(to_bytes(model(TWO))).run(values, [1], only_wanted=False)[0].tolist() == [3]
    with pytest.raises(InvalidArgument, match="two sizes; give the session a path or bytes"):
        _runner(model(TWO)).run(values, [1], only_wanted=False)


@pytest.mark.parametrize(("text", "skip", "kept"), [(ONE, False, False), (TWO, False, True), (ONE, True, True)])
def test_bytes_are_kept_where_a_run_may_need_them(text: str, skip: bool, kept: bool) -> None:
    """For several outputs, shared symbols, or a provider that may fail; else the memory of large ones can be given back."""
    held = model(text)
    held.doc = " " * (1 << 20)
    given = to_bytes(held)
    runner = _runner(given, skip=skip)
    gc.collect()
    assert any(isinstance(item, Source) for item in gc.get_referrers(given)) is kept
    assert (runner.source is not None) is kept


def test_no_model_is_kept() -> None:
    """Of the graphs that were built nothing is left but what programs hold."""
    gc.collect()
    before = sum(isinstance(item, Model) for item in gc.get_objects())
    runner = _runner(to_bytes(model(TWO)))
    gc.collect()
    assert sum(isinstance(item, Model) for item in gc.get_objects()) == before
    assert runner.trim() >= 0


class _Failing:
    makes_outputs = True

    def bind(self, shapes: Any) -> Any:
        raise RuntimeError("lost the device")

    def run(self, bound: Any, inputs: Any, outputs: Any, scratch: Any) -> Any:
        return outputs


class _Lost(FusingProvider):
    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        return _Failing()


def test_a_provider_that_fails_in_a_run_is_left_out_from_then_on() -> None:
    """Where the settings allow it, and the reason is reported."""
    runner = _runner(to_bytes(model(ONE)), _Lost({"Neg"}, "Lost"), skip=True)
    with pytest.warns(UserWarning, match="provider Lost failed and is left out"):
        assert runner.run([np.float32([1])], [0], only_wanted=False)[0].tolist() == [-1]
    assert [provider.name for provider in runner.built.providers.able] == ["ReferenceExecutionProvider"]
    assert "lost the device" in runner.built.providers.excluded["Lost"]


def test_values_that_are_no_outputs_come_by_name() -> None:
    """In the order asked for, one name as often as it is asked for; the plan for them is built once."""
    runner = _runner(to_bytes(model("graph(x: float[n]) -> (b: float[n]) {\na = Neg(x)\nb = Exp(a)\n}")))
    for _ in range(2):
        found = runner.run_named([np.float32([0, -1])], ["a", "x", "a"])
        assert [item.tolist() for item in found] == [[0, 1], [0, -1], [0, 1]]
    assert len(runner._variants) == 1


def test_values_by_name_need_a_model_that_can_be_read_again() -> None:
    """As bytes can, and a model that the caller may change cannot."""
    with pytest.raises(InvalidArgument, match=r"no output 'x'; its outputs are \['a'\].*give the session a path"):
        _runner(model(ONE)).run_named([np.float32([1])], ["a", "x"])
