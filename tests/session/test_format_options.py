"""Options that a package brings."""

from pathlib import Path

import pytest
from support.packages import SQRT_AND_NEG, archive_of, make_package

import sardonyx as ort
from sardonyx.session.format_options import with_options_of_format

_CONFIG = "EXECUTOR=Dataflow\nNUM_THREADS=3\nTRACING_MODE=1\nTRACE_FILEPATH=mine\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Provide a package with a configuration."""
    return make_package(tmp_path / "p", {**SQRT_AND_NEG, "configs": ["a.cfg"]}, a_cfg=_CONFIG)


def _said(options: ort.SessionOptions) -> tuple[object, ...]:
    executor = options.session_config_entries.get("session.executor")
    return options.intra_op_num_threads, options.enable_profiling, options.profile_file_prefix, executor


def test_a_package_sets_options(package: Path, tmp_path: Path) -> None:
    """A folder, an archive, and the bytes of one; those that were given are left as they are."""
    given = ort.SessionOptions()
    archive = archive_of(package, tmp_path / "a.zip")
    for source in (package, str(archive), archive.read_bytes()):
        assert _said(with_options_of_format(source, given)) == (3, True, "mine", "dataflow")
    assert _said(given) == _said(ort.SessionOptions())


def test_what_the_user_sets_counts(package: Path) -> None:
    """Before what the package says."""
    given = ort.SessionOptions()
    given.intra_op_num_threads = 2
    given.add_session_config_entry("session.executor", "parallel")
    assert _said(with_options_of_format(package, given)) == (2, True, "mine", "parallel")


def test_other_models_bring_none(tmp_path: Path) -> None:
    """Nor does what is not there, or no package."""
    given = ort.SessionOptions()
    (tmp_path / "z").write_bytes(b"PK\3\4 no archive")
    for source in (tmp_path, tmp_path / "none", tmp_path / "z", b"PK", b"", 3):
        assert with_options_of_format(source, given) is given


def test_a_profile_is_recorded(package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the name that the package gives."""
    monkeypatch.chdir(tmp_path)
    assert ort.InferenceSession(package).end_profiling().startswith("mine")
