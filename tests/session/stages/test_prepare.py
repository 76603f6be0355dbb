"""The second stage: an optimized model."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.models import model
from support.providers import FusingProvider
from support.sessions import options_of

from sardonyx.errors import EPFail, Fail
from sardonyx.formats.onnx import load as load_file
from sardonyx.provider import Provider
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.load import load
from sardonyx.session.stages.prepare import Prepared, prepare
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source

TEXT = "graph(x: float[2, 3], k: float[2, 3]) -> (y: float[2, 3]) {\nk: float[2, 3] = ... 1\na = Transpose(x)\nb = Transpose(a)\ny = Add(b, k)\n}"


def _prepared(options: SessionOptions, *providers: Provider, text: str = TEXT) -> Prepared:
    settings = read_settings(options)
    loaded = load(Source(model(text)), settings.load)
    return prepare(loaded, settings, ProviderList.of([*providers, ReferenceProvider()]))


def test_the_model_is_optimized() -> None:
    """The report says by which rules; inputs and defaults are those of the file."""
    found = _prepared(SessionOptions())
    assert [node.op_type for node in found.model.view().graph] == ["Add"]
    assert found.report.fired == {"merge_transposes": 1}
    assert [value.name for value in found.inputs] == ["x", "k"]
    assert list(found.defaults) == ["k"]


def test_the_model_before_is_taken_over() -> None:
    """So that nobody reads what has been changed."""
    settings = read_settings(SessionOptions())
    loaded, providers = load(Source(model(TEXT)), settings.load), ProviderList.of([ReferenceProvider()])
    prepare(loaded, settings, providers)
    with pytest.raises(Fail, match="was taken over by the stage 'prepare'"):
        prepare(loaded, settings, providers)


def test_a_copy_is_saved_with_its_defaults(tmp_path: Path) -> None:
    """The model of the session stays without them."""
    found = _prepared(options_of(session__optimized_model_filepath=str(tmp_path / "o.onnx")))
    assert list(load_file(tmp_path / "o.onnx").graph.initializers) == ["k"]
    assert list(found.model.view().graph.initializers) == []


def test_narrow_floats_are_widened_unless_they_are_to_stay() -> None:
    """Where no provider before the last runs them."""
    text = "graph(x: float16[2]) -> (y: float16[2]) {\ny = Exp(x)\n}"

    class Wide(FusingProvider):
        def capabilities(self, view):  # type: ignore[no-untyped-def]  # as the base class
            from sardonyx.provider import Capability, Claims

            wide = [node for node in view.nodes if str(node.output.dtype) == "float" and node.op_type == "Exp"]
            return Claims([Capability((node,)) for node in wide])

    for keep, operators in (("0", ["Cast", "Exp", "Cast"]), ("1", ["Exp"])):
        found = _prepared(options_of(session__keep_narrow_floats=keep), Wide((), "Wide"), text=text)
        assert [node.op_type for node in found.model.view().graph] == operators


def test_an_object_that_is_no_provider_is_named() -> None:
    """Before it is asked for anything."""
    broken = FusingProvider((), "Broken")
    broken.preferred_layout = "NHWC"  # type: ignore[assignment]  # no Layout, which is the point
    with pytest.raises(EPFail, match="Broken prefers the layout 'NHWC'"):
        _prepared(SessionOptions(), broken)
