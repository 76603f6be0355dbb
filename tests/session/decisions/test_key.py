"""Each thing that decisions depend on is part of their key."""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.models import model
from support.sessions import options_of

import sardonyx as ort
from sardonyx import installed
from sardonyx.formats.onnx import to_bytes
from sardonyx.formats.opened import open_model
from sardonyx.providers.cpu.provider import create
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.decisions import key as module
from sardonyx.session.decisions.key import installed_packages, key_of, plugin_sources, remembering
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import Settings, read_settings
from sardonyx.sources import stamp_of

_RELU = to_bytes(model("graph(x: float[2]) -> (y: float[2]) { y = Relu(x) }"))
_EXP = to_bytes(model("graph(x: float[2]) -> (y: float[2]) { y = Exp(x) }"))


def _key(content: bytes = _RELU, settings: Settings | None = None, threads: str = "2") -> str | None:
    providers = [create({"intra_op_num_threads": threads}), ReferenceProvider()]
    return key_of(open_model(content, None).digest(), settings or read_settings(SessionOptions()), providers)


def _options(change: Callable[[SessionOptions], object]) -> Settings:
    options = SessionOptions()
    change(options)
    return read_settings(options)


def test_the_key_is_that_of_all_processes() -> None:
    """It is a digest, and the same when it is asked for again."""
    found = _key()
    assert found is not None
    assert len(found) == 64
    assert found == _key()


def test_the_model_is_in_the_key() -> None:
    """Another operator is another key."""
    assert _key(_EXP) != _key()


@pytest.mark.parametrize(
    "change",
    [
        lambda options: setattr(options, "graph_optimization_level", ort.GraphOptimizationLevel.ORT_ENABLE_BASIC),
        lambda options: setattr(options, "execution_mode", ort.ExecutionMode.ORT_PARALLEL),
        lambda options: setattr(options, "intra_op_num_threads", 3),
        lambda options: options.add_free_dimension_override_by_name("n", 4),
        lambda options: options.add_free_dimension_override_by_denotation("DATA_BATCH", 4),
        lambda options: setattr(options, "optimizer_failure", "skip"),
    ],
)
def test_properties_of_the_options_are_in_the_key(change: Callable[[SessionOptions], object]) -> None:
    """Each is another key."""
    assert _key(settings=_options(change)) not in (None, _key())


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("optimization__disable_specified_optimizers", "fuse_gelu"),
        ("optimization__enable_gelu_approximation", "1"),
        ("optimization__constant_folding_max_output_size_in_bytes", "7"),
        ("session__keep_narrow_floats", "1"),
        ("session__graph_optimizations_loop_level", "2"),
        ("session__disable_cpu_ep_fallback", "1"),
    ],
)
def test_config_entries_are_in_the_key(entry: str, text: str) -> None:
    """Each is another key."""
    assert _key(settings=read_settings(options_of(**{entry: text}))) not in (None, _key())


def test_names_of_optimizers_to_leave_out_are_in_the_key() -> None:
    """Those of the session's argument, whatever their order."""
    one, other = (read_settings(SessionOptions(), names) for names in (["fuse_gelu", "merge_casts"], ["merge_casts", "fuse_gelu"]))
    assert _key(settings=one) == _key(settings=other)
    assert _key(settings=one) != _key()


def test_options_of_providers_are_in_the_key() -> None:
    """Such as the number of threads."""
    assert _key(threads="1") not in (None, _key())


def test_the_target_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lower instruction set is another key: variable and processor both count."""
    before = _key()
    monkeypatch.setenv("SARDONYX_ISA", "portable")
    assert _key() not in (None, before)
    provider, lower = create({}), create({})
    monkeypatch.delenv("SARDONYX_ISA")
    assert provider.decision_key() == lower.decision_key() != create({}).decision_key()


def test_the_order_of_providers_is_in_the_key() -> None:
    """Nodes go to who is asked first."""
    providers, settings = [create({}), ReferenceProvider()], read_settings(SessionOptions())
    opened = open_model(_RELU, None)
    assert key_of(opened.digest(), settings, providers) != key_of(opened.digest(), settings, providers[::-1])


@pytest.mark.parametrize("name", ["SARDONYX_MAX_ITERATIONS", "SARDONYX_GUARD", "SARDONYX_OF_A_LATER_VERSION"])
def test_variables_are_in_the_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are not known yet."""
    before = _key()
    monkeypatch.setenv(name, "1")
    assert _key() not in (None, before)


@pytest.mark.parametrize("name", ["SARDONYX_CACHE_DIR", "SARDONYX_CACHE_BYTES", "SARDONYX_KEEP_DECISIONS"])
def test_variables_about_the_folder_are_not_in_the_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They decide nothing of a model."""
    before = _key()
    monkeypatch.setenv(name, "1")
    assert _key() == before


@pytest.mark.parametrize(("name", "made"), [("stamp_of", "other sources"), ("installed_packages", "llvmlite-1.0.dist-info other")])
def test_sources_and_packages_are_in_the_key(name: str, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this package, and all that are installed, since some bring rules."""
    before = _key()
    monkeypatch.setattr(module, name, lambda *arguments: made)
    assert _key() not in (None, before)


def test_limits_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folding keeps to them."""
    before = _key()
    monkeypatch.setattr(module, "LIMITS", dataclasses.replace(module.LIMITS, fold_bytes=1))
    assert _key() not in (None, before)


def test_the_version_of_numpy_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """It folds constants."""
    before = _key()
    monkeypatch.setattr(module.np, "__version__", "0")
    assert _key() not in (None, before)


@pytest.mark.parametrize(
    "change",
    [
        lambda options: options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(__import__("numpy").zeros(2, "f4"))),
        lambda options: options.place("Relu", "ReferenceExecutionProvider"),
        lambda options: setattr(options, "optimized_model_filepath", "saved.onnx"),
        lambda options: setattr(options, "verify", True),
        lambda options: options.add_session_config_entry("ep.context_enable", "1"),
        lambda options: options.add_session_config_entry("session.memory_limits", "CPU=5"),
    ],
)
def test_sessions_that_read_or_write_more_have_no_key(change: Callable[[SessionOptions], object]) -> None:
    """Arrays, placements, files, checks and limits."""
    assert _key(settings=_options(change)) is None


def test_sessions_with_objects_of_the_user_have_no_key() -> None:
    """Rules and passes cannot be compared."""
    settings = read_settings(SessionOptions())
    changed = dataclasses.replace(settings, optimize=dataclasses.replace(settings.optimize, rules=(object(),)))
    assert _key(settings=changed) is None


def test_only_providers_of_this_package_remember() -> None:
    """One of the user's, also one that is derived of ours, may claim otherwise each time."""

    class Own(ReferenceProvider):
        """A user's."""

    assert remembering([create({}), ReferenceProvider()]) is not None
    assert remembering([Own()]) is None
    assert remembering([create({}), object()]) is None  # type: ignore[list-item]


def test_without_sources_or_a_record_of_llvm_there_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was kept could be another version's."""
    with monkeypatch.context() as patched:
        patched.setattr(module, "stamp_of", lambda package: None)
        assert _key() is None
    monkeypatch.setattr(module, "installed_packages", lambda path: "")
    assert _key() is None


def test_installing_a_package_changes_the_key(tmp_path: Path) -> None:
    """Its record is a new folder beside the others."""
    path = (*sys.path, str(tmp_path))
    before = installed_packages.__wrapped__(path)
    (tmp_path / "plugged-1.0.dist-info").mkdir()
    between = installed_packages.__wrapped__(path)
    (tmp_path / "plugged-1.0.dist-info").rename(tmp_path / "plugged-1.1.dist-info")
    assert len({before, between, installed_packages.__wrapped__(path)}) == 3


def test_a_package_that_is_worked_on_changes_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it brings rules, passes or operators: its sources count, although its record stays."""
    record = tmp_path / "worked_on-1.0.dist-info"
    record.mkdir()
    (record / "entry_points.txt").write_text("[console_scripts]\nx = other:main\n[sardonyx.rules]\nours = worked_on.rules:RULES\n")
    (tmp_path / "worked_on").mkdir()
    source = tmp_path / "worked_on" / "rules.py"
    source.write_text("RULES = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(module, "stamp_of", stamp_of.__wrapped__)
    before = plugin_sources.__wrapped__((str(tmp_path),))
    source.write_text("RULES = [1]\n")
    after = plugin_sources.__wrapped__((str(tmp_path),))
    assert before is not None
    assert before.startswith("worked_on ")
    assert after != before
    (record / "entry_points.txt").write_text("[sardonyx.passes]\nours = nowhere_to_be_found:PASS\n")
    installed._points_in.cache_clear()  # as in another process: a record changes with its folder
    assert plugin_sources.__wrapped__((str(tmp_path),)) is None
    (record / "entry_points.txt").write_text("[sardonyx.formats]\nours = nowhere_to_be_found:FORMAT\n")
    installed._points_in.cache_clear()
    assert plugin_sources.__wrapped__((str(tmp_path),)) == ""
