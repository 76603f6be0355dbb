"""Which providers there are, and how they are asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.models import model
from support.providers import FusingProvider

import sardonyx as ort
from sardonyx.errors import EPFail, InvalidArgument, InvalidGraph
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.providers import (
    CPU,
    REFERENCE,
    blaming,
    check_program,
    describe_providers,
    get_all_providers,
    get_available_providers,
    make_able_providers,
    make_providers,
    requested,
    with_cpu,
)


def test_the_reference_provider_is_available() -> None:
    """It is last, and comes with sardonyx."""
    assert get_available_providers()[-1] == REFERENCE
    assert set(get_available_providers()) <= set(get_all_providers())
    assert get_all_providers()[-1] == "CPUExecutionProvider"
    assert dict(describe_providers())[REFERENCE].startswith("sardonyx.providers.reference")


def test_the_reference_provider_is_always_asked_last() -> None:
    """Also where nobody asked for it."""
    names = [provider.name for provider in make_providers(requested([FusingProvider((), "A")], None, ()))]
    assert names == ["A", REFERENCE]


def test_options_come_with_the_name_or_beside_it() -> None:
    """Both ways give text."""
    assert requested([(REFERENCE, {"a": 1})], None, ()) == [(REFERENCE, {"a": "1"}, None)]
    assert requested([REFERENCE], [{"a": 1}], ()) == [(REFERENCE, {"a": "1"}, None)]


def test_a_provider_named_twice_counts_once() -> None:
    """The first mention decides."""
    assert len(requested([REFERENCE, (REFERENCE, {"a": "1"})], None, ())) == 1


def test_session_options_name_providers_too() -> None:
    """They count where the session is given none."""
    assert requested(None, None, [(REFERENCE, {"a": "1"})]) == [(REFERENCE, {"a": "1"}, None)]


def test_a_provider_that_is_not_available_is_passed_over_with_a_warning() -> None:
    """It names who takes over, and what a misspelt name may mean."""
    with pytest.warns(
        UserWarning, match=r"'CUDAExecutionProvider' is not available here, ReferenceExecutionProvider takes its place[^?]*$"
    ):
        assert requested(["CUDAExecutionProvider", REFERENCE], None, ()) == [(REFERENCE, {}, None)]
    with pytest.warns(UserWarning, match=r"CPUExecutionProvider takes its place.*did you mean 'CPUExecutionProvider'\?"):
        assert requested(["CPUExecutionprovider"], None, ()) == []


def test_a_class_is_no_provider() -> None:
    """The message says how to make one of it."""

    class Mine:
        name = "Mine"
        capabilities = compile = None

    with pytest.raises(InvalidArgument, match=r"got the class Mine; write Mine\(\)"):
        requested([Mine], None, ())  # type: ignore[list-item]


def test_options_without_providers_are_ignored() -> None:
    """As onnxruntime does."""
    assert [name for name, _, _ in requested(None, [{"a": 1}], ())] == [CPU, REFERENCE]


def test_the_cpu_provider_comes_before_the_reference_provider() -> None:
    """A list that names neither gets it; one that names the reference provider, or the CPU provider, stays as it is."""
    assert with_cpu([]) == [(CPU, {}, None)]
    assert [name for name, _, _ in with_cpu([("Mine", {}, None)])] == ["Mine", CPU]
    assert with_cpu([(REFERENCE, {}, None)]) == [(REFERENCE, {}, None)]
    assert with_cpu([(CPU, {"a": "1"}, None)]) == [(CPU, {"a": "1"}, None)]


def test_an_optional_provider_is_listed_behind_the_cpu_provider() -> None:
    """A program that asks for all that are available keeps its kernels where it installs OpenVINO."""
    names = [name for name in get_available_providers() if name in (CPU, "OpenVINOExecutionProvider", REFERENCE)]
    assert (names[0], names[-1]) == (CPU, REFERENCE)


@pytest.mark.parametrize(
    ("providers", "options", "message"),
    [
        ([REFERENCE], [{}, {}], "2 entries for 1 providers"),
        ([3], None, "a name, a .name, options. pair or a provider object, got 3"),
        ([(3, {})], None, "a name, a .name, options. pair or a provider object, got .3, {}"),
    ],
)
def test_a_malformed_request_is_refused(providers: list[str] | None, options: list[dict[str, str]] | None, message: str) -> None:
    """Each message says what was found."""
    with pytest.raises(InvalidArgument, match=message):
        requested(providers, options, ())


NEGATION = "graph(x: float[2]) -> (y: float[2]) { y = Neg(x) }"
PLUGIN = """
from sardonyx.provider import HOST, Claims, Layout
class Plugged:
    name, preferred_layout, memory = "PluggedProvider", Layout.NCHW, HOST
    def capabilities(self, view): return Claims()
    def compile(self, partition, bodies): raise AssertionError
def create(options): return Plugged()
def broken(options): raise OSError("no such chip")
"""


def test_an_entry_point_of_another_package_makes_its_provider_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with the entry-point group is found, listed first, made, and named where it cannot be made."""
    (tmp_path / "plugged_package.py").write_text(PLUGIN)
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[sardonyx.providers]\nPluggedProvider = plugged_package:create\nBrokenProvider = plugged_package:broken\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert get_available_providers()[:2] == ["BrokenProvider", "PluggedProvider"]
        assert make_providers(requested(["PluggedProvider"], None, ()))[0].name == "PluggedProvider"
        assert ("PluggedProvider", "plugged 1.0: plugged_package:create") in describe_providers()
        with pytest.raises(EPFail, match="BrokenProvider of plugged 1.0: .* could not be made .* OSError: no such chip"):
            make_providers(requested(["BrokenProvider"], None, ()))
        with pytest.warns(UserWarning, match="provider BrokenProvider failed and is left out"):
            able, failed = make_able_providers(requested(["BrokenProvider", "PluggedProvider"], None, ()))
        assert [provider.name for provider in able] == ["PluggedProvider", "ReferenceExecutionProvider"]
        assert list(failed) == ["BrokenProvider"]
        options = ort.SessionOptions()
        options.provider_failure = "skip"
        with pytest.warns(UserWarning, match="provider BrokenProvider failed and is left out"):
            session = ort.InferenceSession(to_bytes(model(NEGATION)), options, providers=["BrokenProvider", "PluggedProvider"])
        assert "OSError: no such chip" in session.explain()[0].declined["BrokenProvider"]
    finally:
        sys.modules.pop("plugged_package", None)


def test_two_providers_of_one_name_are_refused() -> None:
    """A provider that was made would be lost without a word."""
    with pytest.raises(InvalidArgument, match="two of the session's providers are called 'Own'"):
        requested([FusingProvider((), "Own"), FusingProvider((), "Own")], None, ())


def test_a_text_is_no_list_of_providers() -> None:
    """Its letters would be taken for names."""
    with pytest.raises(InvalidArgument, match=f"got the text '{REFERENCE}'; write \\['{REFERENCE}'\\]"):
        requested(REFERENCE, None, ())


def test_what_a_provider_raises_is_told_with_what_it_was_doing() -> None:
    """An error of ours stays what it is, and gets the provider's name."""
    provider = FusingProvider({"Relu"}, "Mine")
    with pytest.raises(EPFail, match="Mine failed to save part_0: KeyError: 'lost'") as caught, blaming(provider, "save part_0"):
        raise KeyError("lost")
    assert caught.value.provider == "Mine"
    with pytest.raises(InvalidGraph, match="^odd$") as found, blaming(provider, "save part_0"):
        raise InvalidGraph("odd")
    assert found.value.provider == "Mine"


def test_what_is_no_program_is_refused() -> None:
    """With what it lacks."""
    with pytest.raises(EPFail, match="Mine compiled part_0 to 7, no program: it lacks makes_outputs, bind, run"):
        check_program(7, FusingProvider({"Relu"}, "Mine"), "compiled part_0")


def test_a_pair_may_be_a_list() -> None:
    """As settings in JSON have it."""
    wanted = requested([["CPUExecutionProvider", {"a": 1}]], None, [])  # type: ignore[list-item]
    assert [(name, options) for name, options, _ in wanted] == [("CPUExecutionProvider", {"a": "1"})]
