"""The error tree."""

from __future__ import annotations

import pytest

from sardonyx import errors
from sardonyx.errors import SardonyxError, blamed, located

OWN = {"InvalidFlatBuffer", "ModelLoadTimedOut", "OptimizationError", "RunTerminated", "RunTimedOut", "UnknownOperator"}
CLASSES = [getattr(errors, name) for name in errors.__all__ if name[0].isupper()]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_is_one_of_ours(kind: type[SardonyxError]) -> None:
    """One except clause catches them all, and the message is kept."""
    with pytest.raises(SardonyxError, match="message"):
        raise kind("message")


def test_errors_are_also_what_python_calls_them() -> None:
    """Code that expects Python's own errors catches ours."""
    assert issubclass(errors.InvalidArgument, ValueError)
    assert issubclass(errors.NoSuchFile, FileNotFoundError)
    assert issubclass(errors.RunTimedOut, TimeoutError)
    assert issubclass(errors.ModelLoadTimedOut, TimeoutError)


def test_ended_work_has_onnxruntime_s_errors() -> None:
    """What ends runs and loads is caught by the classes that onnxruntime raises."""
    assert issubclass(errors.RunTimedOut, errors.RunTerminated)
    assert issubclass(errors.RunTerminated, errors.Fail)
    assert issubclass(errors.ModelLoadTimedOut, errors.ModelLoadCanceled)


def test_names_are_those_of_onnxruntime() -> None:
    """Each class is called as onnxruntime calls its exception, but the root and those that say more than onnxruntime's."""
    onnxruntime = pytest.importorskip("onnxruntime")
    theirs = set(dir(onnxruntime.capi.onnxruntime_pybind11_state))
    assert {kind.__name__ for kind in CLASSES} - {"SardonyxError", *OWN} <= theirs


@pytest.mark.parametrize("kind", CLASSES)
def test_a_place_is_put_before_the_message(kind: type[SardonyxError]) -> None:
    """The class stays, so that except clauses see no difference."""
    error = located(located(kind("it broke"), "node 'a'"), "m.onnx")
    assert type(error) is kind
    assert str(error) == "m.onnx: node 'a': it broke"


def test_a_place_is_put_there_once() -> None:
    """Such a message stays; the copy can be raised from the error, which is then not its own cause."""
    error = errors.Fail("m.onnx: it broke")
    copy = located(error, "m.onnx")
    assert str(copy) == str(error)
    assert copy is not error


def test_errors_of_others_are_described() -> None:
    """By class and text; a class whose text raises does no harm."""
    silent = type("Silent", (Exception,), {"__str__": lambda self: str(1 // 0)})
    assert errors.describe(KeyError("a")) == "KeyError: 'a'"
    assert errors.describe(silent()) == "Silent, whose text raises ZeroDivisionError"


def test_a_provider_is_blamed_once_and_the_blame_goes_with_the_error() -> None:
    """The first provider named stays, also on the copy that has a place."""
    error = located(blamed(blamed(errors.EPFail("it broke"), "A"), "B"), "m.onnx")
    assert (error.provider, str(error)) == ("A", "m.onnx: it broke")
    assert errors.Fail("x").provider == ""


def test_what_needed_more_memory_is_said() -> None:
    """And what can be done about it."""
    error = errors.lacks_memory("model m: a run", MemoryError())
    assert type(error) is errors.RuntimeException
    assert str(error).startswith("model m: a run needs more memory than there is (MemoryError")
