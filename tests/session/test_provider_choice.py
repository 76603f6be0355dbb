"""Which providers run what, as options and the order of placement say."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model
from support.providers import FusingProvider

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.options import SessionOptions
from sardonyx.session.provider_choice import ProviderChoice, ask_in_order, choose_providers
from sardonyx.session.settings.settings import read_settings

TEXT = "graph(x: float[2]) -> (y: float[2]) {\na = Neg(x) @first\nb = Exp(a) @second\ny = Relu(b) @third\n}"


def _options(**entries: str) -> SessionOptions:
    options = SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(f"session.{key}", value)
    return options


def _who(options: SessionOptions, *providers: FusingProvider) -> list[str]:
    session = ort.InferenceSession(to_bytes(model(TEXT)), options, providers=list(providers) or None)
    np.testing.assert_allclose(session.run(None, {"x": np.float32([0, 1])})[0], np.exp([0, -1]), rtol=1e-6)
    return [placement.provider for placement in session.explain()]


def test_a_placed_node_runs_where_it_is_placed() -> None:
    """The others go by the order of the providers."""
    options = SessionOptions()
    options.place("node:second", "Reference")
    everything = FusingProvider({"Neg", "Exp", "Relu"}, "Mine", fuse=False)
    assert _who(options, everything) == ["Mine", "ReferenceExecutionProvider", "Mine"]


def test_a_provider_that_declines_what_is_placed_on_it_is_an_error() -> None:
    """It names node, provider and reason; with `fall_through` the others are asked."""
    options = SessionOptions()
    options.place("Exp", "Mine")
    with pytest.raises(ort.NotImplemented, match=r'"second" \(Exp.*placed on Mine, which does not run it \(Exp is not among'):
        _who(options, FusingProvider({"Neg"}, "Mine", fuse=False))
    options.placement_fall_through = True
    assert _who(options, FusingProvider({"Neg"}, "Mine", fuse=False)) == ["Mine", *["CPUExecutionProvider"] * 2]


def test_the_optimizer_keeps_what_is_placed() -> None:
    """A node that takes the place of another runs where that was placed."""
    text = "graph(x: float[2]) -> (y: float[2]) {\ns = Sigmoid(x) @gate\ny = Mul(x, s) @product\n}"
    options = SessionOptions()
    options.place("node:gate", "Reference")
    (only,) = ort.InferenceSession(to_bytes(model(text)), options).explain()
    assert (only.op_type.rpartition(".")[2], only.provider) in {
        ("Swish", "ReferenceExecutionProvider"),
        ("QuickGelu", "ReferenceExecutionProvider"),
    }


def test_the_order_puts_providers_first() -> None:
    """Those that it does not name follow in their own order; without others it names them."""
    first, second = FusingProvider({"Neg", "Exp"}, "A", fuse=False), FusingProvider({"Exp", "Relu"}, "B", fuse=False)
    assert _who(_options(), first, second) == ["A", "A", "B"]
    assert _who(_options(placement_order="B;A"), first, second) == ["A", "B", "B"]
    assert _who(_options(placement_order="Reference")) == ["ReferenceExecutionProvider"] * 3


def test_an_order_of_strangers_is_refused() -> None:
    """With what is near."""
    with pytest.raises(ort.InvalidArgument, match="order of placement names provider 'Bb'"):
        ask_in_order([("B", {}, None)], ["Bb"])


def test_a_function_of_the_model_is_placed_by_its_name() -> None:
    """What comes of its calls runs there, though they are expanded; a call that is placed by its own name stays there."""
    text = """graph(x: float[2]) -> (y: float[2]) {\na = local.Turn(x) @one\nb = Relu(a)\ny = local.Turn(b) @two\n}
    function local.Turn(a) -> (b) {
        opset 21
        c = Neg(a)
        b = Exp(c)
    }"""
    options = _options(place="local.Turn=Other;node:two=Own")
    providers = [FusingProvider({"Neg", "Exp", "Relu"}, name, fuse=False) for name in ("Own", "Other")]
    session = ort.InferenceSession(to_bytes(model(text)), options, providers=providers)
    assert [place.provider for place in session.explain()] == ["Other", "Other", "Own", "Own", "Own"]


def _chosen(options: SessionOptions, *providers: FusingProvider) -> ProviderChoice:
    return choose_providers(list(providers) or None, None, options.providers, read_settings(options))


def test_providers_are_named_by_arguments_options_or_the_order() -> None:
    """Without any of these the built-in ones are asked, and none is named."""
    added = SessionOptions()
    added.add_provider("CPUExecutionProvider")
    built_in = ["CPUExecutionProvider", "ReferenceExecutionProvider"]
    assert (_chosen(SessionOptions()).providers.names, _chosen(SessionOptions()).named) == (built_in, frozenset())
    assert _chosen(SessionOptions(), FusingProvider((), "Mine")).named == {"Mine"}
    assert (_chosen(added).providers.names, _chosen(added).named) == (built_in, {"CPUExecutionProvider"})
    assert _chosen(_options(placement_order="Reference")).named == {"ReferenceExecutionProvider"}


def test_the_threads_of_the_session_are_those_of_the_cpu_provider() -> None:
    """Unless its own options say another number."""
    options = _options(intra_op_num_threads="3")
    assert _chosen(options).options["CPUExecutionProvider"] == {"intra_op_num_threads": "3"}
    options.add_provider("CPUExecutionProvider", {"intra_op_num_threads": "1"})
    assert _chosen(options).options["CPUExecutionProvider"] == {"intra_op_num_threads": "1"}


def test_a_provider_that_is_missing_is_warned_of_in_the_line_that_makes_the_session() -> None:
    """As one of onnxruntime's, which programs name wherever they run."""
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not available here") as caught:
        ort.InferenceSession(to_bytes(model(TEXT)), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert caught[0].filename == __file__
