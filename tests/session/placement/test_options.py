"""What options, config entries and a file say about placement, put together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.models import model
from support.providers import FusingProvider

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.options import SessionOptions
from sardonyx.session.placement.options import ask_in_order, read_placement, wanted_providers

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
"""
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


def test_a_file_says_all_of_it(tmp_path: Path) -> None:
    """The profile is found beside the file."""
    (tmp_path / "p.toml").write_text(FILE)
    options = SessionOptions()
    options.placement_file = str(tmp_path / "p.toml")
    choice = read_placement(options)
    assert (choice.measured, choice.profile) == (True, str(tmp_path / "profile.json"))
    assert choice.order == ("ReferenceExecutionProvider", "CPUExecutionProvider")
    assert choice.pins.operators == {"Conv": "CPUExecutionProvider", "Relu": "CPUExecutionProvider"}
    assert (choice.pins.nodes, choice.pins.indices) == ({"/a/b=c": "ReferenceExecutionProvider"}, {7: "CPU"})
    assert (choice.pins.annotations, choice.pins.fall_through) == ({"encoder": "CPU"}, True)


def test_entries_win_over_the_file_and_calls_over_entries(tmp_path: Path) -> None:
    """For each operator by itself."""
    (tmp_path / "p.toml").write_text(FILE)
    options = _options(placement_file=str(tmp_path / "p.toml"), place="Relu=B; Neg=B", placement="priority", placement_order="X;Y")
    options.place("Neg", "C")
    choice = read_placement(options)
    assert choice.pins.operators == {"Conv": "CPUExecutionProvider", "Relu": "B", "Neg": "C"}
    assert (choice.measured, choice.order) == (False, ("X", "Y"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("operator = 1", "there is no key 'operator'; did you mean 'operators'"),
        ("fall_through = 1", "fall_through must be true or false, got 1"),
        ("[operators]\nConv = 1", "operators must be a table of texts"),
        ("[indices]\nfirst = 'A'", "an index is a number of at least 0, got 'first'"),
        ("placement = 'fast'", "placement is one of priority, measured, got 'fast'"),
        ("placement = 'measured'", "needs a profile"),
        ("= 3", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, text: str, message: str) -> None:
    """With its key."""
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(ort.InvalidArgument, match=message):
        read_placement(_options(placement_file=str(tmp_path / "p.toml")))


def test_a_missing_file_is_told() -> None:
    """As other missing files."""
    with pytest.raises(ort.NoSuchFile, match=r"no-such\.toml"):
        read_placement(_options(placement_file="no-such.toml"))


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
    assert _who(options, FusingProvider({"Neg"}, "Mine", fuse=False)) == ["Mine", *["ReferenceExecutionProvider"] * 2]


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


def test_the_wanted_providers_are_those_of_the_argument_the_options_or_the_order() -> None:
    """Whichever is given first; else the built-in ones."""
    options = SessionOptions()
    built_in = ["CPUExecutionProvider", "ReferenceExecutionProvider"]
    assert [name for name, _, _ in wanted_providers(None, None, options)] == built_in
    options.add_session_config_entry("session.placement_order", "Reference")
    assert [name for name, _, _ in wanted_providers(None, None, options)] == ["ReferenceExecutionProvider"]
    named = wanted_providers(["CPUExecutionProvider", "ReferenceExecutionProvider"], None, options)
    assert [name for name, _, _ in named] == built_in[::-1]
