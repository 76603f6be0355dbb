"""The error tree, with the class names of onnxruntime's exceptions so that existing `except` clauses work.

    SardonyxError
    ├── InvalidProtobuf      the bytes are not an ONNX model
    ├── InvalidGraph         the model breaks a rule of the standard
    ├── InvalidArgument      a feed, an option or a run-time value is wrong                (also ValueError)
    ├── NoSuchFile           the model, or its external data, is not there                 (also FileNotFoundError)
    ├── NotImplemented       valid, but no provider runs it: an unknown operator or type
    ├── EPFail               an execution provider failed to compile or to run
    ├── RuntimeException     a kernel failed in the middle of a run
    └── Fail                 anything else

A message says what was found, where (model, node, operator), what was expected and what to do. `located` adds the place as
an error passes upwards, so that a kernel need not know which node of which model it serves.
"""

from __future__ import annotations

__all__ = [
    "EPFail",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
    "SardonyxError",
    "located",
]


class SardonyxError(Exception):
    """The root of every error that sardonyx raises on purpose."""


class Fail(SardonyxError):
    """Something failed that no other class describes."""


class InvalidArgument(SardonyxError, ValueError):
    """A feed, an option or a value met at run time is wrong."""


class InvalidGraph(SardonyxError):
    """The model breaks a rule of the standard."""


class InvalidProtobuf(SardonyxError):
    """The bytes are not an ONNX model."""


class NoSuchFile(SardonyxError, FileNotFoundError):
    """The model or its external data is not there."""


class NotImplemented(SardonyxError):
    """The model is valid, but no provider of the session runs a part of it."""


class EPFail(SardonyxError):
    """An execution provider failed to compile or to run its part."""


class RuntimeException(SardonyxError):
    """A kernel failed in the middle of a run."""


def located(error: SardonyxError, place: str) -> SardonyxError:
    """Return a copy of `error` whose message starts with `place`; the class stays, so `except` clauses see no difference."""
    message = str(error)
    return error if message.startswith(place) else type(error)(f"{place}: {message}")
