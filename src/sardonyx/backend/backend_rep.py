"""A model that `prepare` has made ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.run_options import RunOptions

__all__ = ["OnnxRuntimeBackendRep", "SardonyxBackendRep"]

_RUN_OPTIONS = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches")


class SardonyxBackendRep:
    """A session under the interface of onnx.backend.BackendRep."""

    def __init__(self, session: InferenceSession) -> None:
        """Hold `session`."""
        self._session = session

    def run(self, inputs: OnnxValue, **options: Any) -> list[OnnxValue]:
        """Compute all outputs.

        Args:
            inputs: a list with a value for each input in order, a dictionary of input names, or the value of a model's one input,
                which may be a map itself (values are Any by their ONNX type).
            options: attributes of RunOptions; names that it lacks have no effect.

        Raises:
            InvalidArgument: there are too many or too few inputs, or an option is not permitted, such as `terminate`.
        """
        run_options = RunOptions()
        for name, value in options.items():
            if name in _RUN_OPTIONS:
                setattr(run_options, name, value)
            elif hasattr(run_options, name):
                raise InvalidArgument(
                    f"RunOptions attribute {name!r} is not permitted here; permitted are {', '.join(_RUN_OPTIONS)}"
                )
        return self._session.run(None, self._feed(inputs), run_options)

    def _feed(self, inputs: OnnxValue) -> Mapping[str, OnnxValue]:
        names = [argument.name for argument in self._session.get_inputs()]
        if isinstance(inputs, Mapping) and (len(names) != 1 or names[0] in inputs):
            return inputs
        values = inputs if isinstance(inputs, Sequence) and not isinstance(inputs, str) else [inputs]
        if len(values) != len(names):
            raise InvalidArgument(f"the model expects {len(names)} inputs, {names}; got {len(values)}")
        return dict(zip(names, values, strict=True))


OnnxRuntimeBackendRep = SardonyxBackendRep
"""The name that onnxruntime gives the class."""
