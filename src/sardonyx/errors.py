"""The error tree, with the class names of onnxruntime's exceptions so that existing `except` clauses work.

    SardonyxError            (also RuntimeError)
    ├── InvalidProtobuf      the bytes are not an ONNX model
    ├── InvalidGraph         the model breaks a rule of the standard
    ├── InvalidArgument      a feed, an option or a run-time value is wrong                (also ValueError)
    ├── NoSuchFile           the model, or its external data, is not there                 (also FileNotFoundError)
    ├── NotImplemented       valid, but no provider runs it: an unknown operator or type
    ├── EPFail               an execution provider failed to compile or to run
    ├── ModelRequiresCompilation  a part is not compiled yet, and may not be compiled now
    ├── RuntimeException     a kernel failed in the middle of a run
    ├── ModelLoadCanceled    loading was ended by `SessionOptions.set_load_cancellation_flag`
    │   └── ModelLoadTimedOut    it took longer than `SessionOptions.load_timeout_ms`       (also TimeoutError)
    ├── NotFound, NoModel, ModelLoaded, EngineError, DeviceReset    onnxruntime's names for what does not happen here
    └── Fail                 anything else
        ├── InvalidFlatBuffer    the bytes are no model of a format of flat buffers (TFLite, Circle, ORT)
        ├── UnknownOperator      a node's operator is in no operator set of its domain      (also InvalidGraph)
        ├── OptimizationError    a rewrite rule or a pass failed, or left an invalid model
        └── RunTerminated        a run was ended by `RunOptions.terminate`
            └── RunTimedOut      it took longer than `RunOptions.timeout_ms`               (also TimeoutError)

A message says what was found, where (model, node, operator), what was expected and what to do. `located` adds the place as
an error passes upwards, so that a kernel need not know which node of which model it serves. `blamed` adds the provider whose
fault it is, so that a session can go on without it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

__all__ = [
    "DeviceReset",
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidFlatBuffer",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoadTimedOut",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NotFound",
    "NotImplemented",
    "OptimizationError",
    "RunTerminated",
    "RunTimedOut",
    "RuntimeException",
    "SardonyxError",
    "UnknownOperator",
    "blamed",
    "describe",
    "explained",
    "lacks_memory",
    "located",
    "locating",
]


class SardonyxError(RuntimeError):
    """The root of every error that sardonyx raises on purpose."""

    provider: str = ""
    """The execution provider whose fault it is, where it is one's."""


class Fail(SardonyxError):
    """Something failed that no other class describes."""


class InvalidFlatBuffer(Fail):
    """The bytes are no model of a format of flat buffers, or contradict themselves."""


class OptimizationError(Fail):
    """A rewrite rule or a pass raised, or left an invalid model."""

    optimization = ""
    """Its name, by which it can be disabled."""


class RunTerminated(Fail):
    """A run was ended by the flag of its options."""


class RunTimedOut(RunTerminated, TimeoutError):
    """A run took longer than its options allow."""


class InvalidArgument(SardonyxError, ValueError):
    """A feed, an option or a value met at run time is wrong."""


class SizesNotInferred(InvalidArgument):
    """Sizes of a run for which shapes are not what was inferred of them: the model must be built anew for these."""


class InvalidGraph(SardonyxError):
    """The model breaks a rule of the standard."""


class UnknownOperator(InvalidGraph, Fail):
    """A node's operator is unknown in a domain beside the standard's; onnxruntime raises one of these, by the model's imports."""


class InvalidProtobuf(SardonyxError):
    """The bytes are not an ONNX model."""


class NoSuchFile(SardonyxError, FileNotFoundError):
    """The model or its external data is not there."""


class NotImplemented(SardonyxError):
    """The model is valid, but no provider of the session runs a part of it."""


class EPFail(SardonyxError):
    """An execution provider failed to compile or to run its part."""


class ModelRequiresCompilation(SardonyxError):
    """A part of the model is not compiled yet, and the session's options forbid to compile it."""


class RuntimeException(SardonyxError):
    """A kernel failed in the middle of a run."""


class ModelLoadCanceled(SardonyxError):
    """Loading was cancelled by the flag of the session options."""


class ModelLoadTimedOut(ModelLoadCanceled, TimeoutError):
    """Loading took longer than the session options allow."""


class NotFound(SardonyxError):
    """A thing asked for by name does not exist; for `except` clauses written for onnxruntime."""


class NoModel(SardonyxError):
    """A session has no model; for `except` clauses written for onnxruntime."""


class ModelLoaded(SardonyxError):
    """A session has a model already; for `except` clauses written for onnxruntime."""


class EngineError(SardonyxError):
    """A device's engine failed; for `except` clauses written for onnxruntime."""


class DeviceReset(SardonyxError):
    """A device was reset; for `except` clauses written for onnxruntime."""


def blamed(error: SardonyxError, provider: str) -> SardonyxError:
    """Name the provider whose fault `error` is, where nobody has done so, and return `error`."""
    error.provider = error.provider or provider
    return error


def describe(error: BaseException) -> str:
    """Return the class of an error and what it says, also where it is somebody else's and cannot even say that."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as failure:  # noqa: BLE001  a plug-in's class may do anything
        return f"{type(error).__name__}, whose text raises {type(failure).__name__}"


def located(error: SardonyxError, place: str) -> SardonyxError:
    """Return a copy of `error` whose message starts with `place`; the class stays, so `except` clauses see no difference."""
    message = str(error)
    return _saying(error, message if message.startswith(place) else f"{place}: {message}")


def lacks_memory(doing: str, error: MemoryError) -> RuntimeException:
    """Return an error that says what needed more memory than there is."""
    return RuntimeException(
        f"{doing} needs more memory than there is ({describe(error)}): use a smaller model or smaller inputs, or raise the memory "
        "limit of the process"
    )


def explained(error: SardonyxError, cause: str) -> SardonyxError:
    """Return a copy of `error`, of its class, whose message ends with what may be its cause."""
    return _saying(error, f"{error}; {cause}")


def _saying(error: SardonyxError, message: str) -> SardonyxError:
    copy = type(error)(message)
    vars(copy).update(vars(error))
    return copy


def locating(place: str) -> AbstractContextManager[None]:
    """Have the messages of errors that the block raises start with `place`, such as "model m.onnx"."""
    return _Locating(place)


class _Locating:
    """The block of `locating`.

    No generator: since Python 3.12 the frame of one that replaces an error keeps both, and all that their frames hold, in a cycle.
    """

    def __init__(self, place: str) -> None:
        """Say where the block is."""
        self._place = place

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Raise the error with its place."""
        if isinstance(error, SardonyxError):
            raise located(error, self._place) from error
