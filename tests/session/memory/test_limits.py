"""Options that say how much of their memory providers may take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.models import graph, model
from support.providers import FusingProvider

import sardonyx as ort
from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.formats.onnx import save, to_bytes
from sardonyx.session.memory.limits import accountant_for, beside, sizes_of
from sardonyx.session.settings.grammar import Limit
from sardonyx.session.settings.settings import MemorySettings

CUDA_ENTRY, SHAPES_ENTRY = "session.resource_cuda_partitioning_settings", "session.max_shape_override"
LIMITS_ENTRY, COLLECT_ENTRY = "session.memory_limits", "session.collect_node_memory_stats_to_file"
TEXT = """graph(x: float[n, 256]) -> (y: float[n, 256]) {
    a = Neg(x) @first
    b = Exp(a) @second
    y = Neg(b) @last
}"""
FEED = {"x": np.zeros((2, 256), np.float32)}


def _runners(folder: Path, entries: dict[str, str], name: str = "P", placement_file: str = "") -> dict[str, str]:
    """Who runs each node of a model in `folder`."""
    save(model(TEXT), folder / "m.onnx")
    options = ort.SessionOptions()
    options.placement_file = placement_file
    for key, text in entries.items():
        options.add_session_config_entry(key, text)
    providers = [FusingProvider({"Neg", "Exp"}, name, fuse=False), "ReferenceExecutionProvider"]
    session = ort.InferenceSession(folder / "m.onnx", options, providers=providers)
    session.run(None, FEED)
    return {place.node: place.provider.removesuffix("ExecutionProvider") for place in session.explain()}


@pytest.mark.parametrize(("name", "entry"), [("P", LIMITS_ENTRY), ("CUDAExecutionProvider", CUDA_ENTRY)])
def test_what_a_run_recorded_limits_later_sessions(tmp_path: Path, name: str, entry: str) -> None:
    """Files are beside the model; a node needs two KiB for two rows."""
    prefix = f"{name}=" if entry == LIMITS_ENTRY else ""
    own = name.removesuffix("ExecutionProvider")
    assert set(_runners(tmp_path, {COLLECT_ENTRY: "stats.csv"}, name).values()) == {own}
    assert _runners(tmp_path, {entry: f"{prefix}5,stats.csv"}, name) == {"first": own, "second": own, "last": "Reference"}
    assert set(_runners(tmp_path, {entry: f"{prefix}5, "}, name).values()) == {own}


def test_shapes_can_be_given(tmp_path: Path) -> None:
    """What is reckoned from them is half as much again."""
    entries = {LIMITS_ENTRY: "P=5", SHAPES_ENTRY: "x:[2, 256]"}
    assert _runners(tmp_path, entries) == {"first": "P", "second": "Reference", "last": "Reference"}


def test_a_placement_file_can_say_it(tmp_path: Path) -> None:
    """The config entry stands above it."""
    (tmp_path / "p.toml").write_text('[memory]\nP = "0"\n')
    path = str(tmp_path / "p.toml")
    assert set(_runners(tmp_path, {SHAPES_ENTRY: "x:[2,256]"}, placement_file=path).values()) == {"Reference"}
    assert set(_runners(tmp_path, {LIMITS_ENTRY: "P=99"}, placement_file=path).values()) == {"P"}


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("P", InvalidArgument, "a list PROVIDER=KIB; PROVIDER=KIB,FILE; .* got 'P'"),
        ("P=much", InvalidArgument, "the memory limit of P is KIB, KIB,FILE or ,FILE; got 'much'"),
        ("P=", InvalidArgument, "the memory limit of P is KIB, KIB,FILE or ,FILE; got ''"),
        ("P=,stats.csv", InvalidArgument, "has no number, but P does not say what it has"),
        ("Q=1", InvalidArgument, "a memory limit names provider 'Q', which the session does not have"),
        ("P=1,none.csv", NoSuchFile, "there is no file .*none.csv"),
    ],
)
def test_what_is_malformed_is_told(tmp_path: Path, text: str, kind: type[Exception], message: str) -> None:
    """With what was given, and what is expected."""
    with pytest.raises(kind, match=message):
        _runners(tmp_path, {LIMITS_ENTRY: text})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"z": (1,)}, "names 'z', which is no input of the model"),
        ({"x": (1,)}, "gives 'x' 1 dimensions, the model 2"),
        ({"x": (1, 5)}, r"gives 'x' the shape \[1, 5\], but a dimension is 4"),
        ({"x": (1, 4), "s": (2,)}, r"gives 's' the shape \[2\], but n is 1"),
    ],
)
def test_shapes_that_inputs_cannot_have_are_refused(shapes: dict[str, tuple[int, ...]], message: str) -> None:
    """With the input and both shapes."""
    with pytest.raises(InvalidArgument, match=message):
        sizes_of(shapes, graph("graph(x: float[n, 4], s: float[n]) -> (y: float[n, 4]) {\ny = Neg(x)\n}").inputs)


class _Knowing(FusingProvider):
    def available_bytes(self) -> int:
        return 3 * 1024


def test_a_provider_can_say_how_much_it_has(tmp_path: Path) -> None:
    """It is asked where the limit has no number."""
    options = ort.SessionOptions()
    for key, text in {LIMITS_ENTRY: "P=,", SHAPES_ENTRY: "x:[2,256]"}.items():
        options.add_session_config_entry(key, text)
    session = ort.InferenceSession(
        to_bytes(model(TEXT)), options, providers=[_Knowing({"Neg", "Exp"}, "P", fuse=False), "ReferenceExecutionProvider"]
    )
    assert [place.provider for place in session.explain()] == ["P", "ReferenceExecutionProvider", "ReferenceExecutionProvider"]
    lost = type("Lost", (_Knowing,), {"available_bytes": lambda self: 1 // 0})({"Neg"}, "P")
    with pytest.raises(ort.EPFail, match="P failed when asked how much memory it has: ZeroDivisionError"):
        ort.InferenceSession(to_bytes(model(TEXT)), options, providers=[lost])


def test_without_limits_nothing_is_counted(tmp_path: Path) -> None:
    """A model from no file has its files in the working folder."""
    held = model(TEXT)
    assert accountant_for(held, MemorySettings(cuda=Limit(1)), [FusingProvider((), "P")]) is None
    assert beside(held, "stats.csv") == Path("stats.csv")
    assert beside(held, str(tmp_path / "stats.csv")) == tmp_path / "stats.csv"
