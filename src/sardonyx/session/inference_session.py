"""`InferenceSession`: a model, built once, run from any number of threads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sardonyx.config import reads_options_of_models
from sardonyx.forks import without_fork
from sardonyx.logs import user_stacklevel
from sardonyx.session.decisions.preparation import prepare_process
from sardonyx.session.options import SessionOptions, copied_options
from sardonyx.session.providers import ProviderRequest
from sardonyx.session.remaking import Arguments, model_of
from sardonyx.session.session import Session

__all__ = ["InferenceSession"]

prepare_process()


class InferenceSession(Session):
    """A model ready to run; the interface of onnxruntime's InferenceSession."""

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str] | Any,
        sess_options: SessionOptions | None = None,
        providers: Sequence[ProviderRequest] | None = None,
        provider_options: Sequence[Mapping[str, object]] | None = None,
        *,
        disabled_optimizers: Iterable[str] | None = None,
        verify: bool = False,
        **unknown: object,
    ) -> None:
        """Load, optimize, partition and compile a model.

        Args:
            path_or_bytes: a path, the bytes of a file, a file object, or a ModelProto (Any: `onnx` is not imported here).
            sess_options: how to build and run; defaults where None. They are copied: later changes have no effect.
            providers: names, (name, options) pairs or provider objects, in the order of priority; the built-in ones where None.
            provider_options: options for each of `providers`.
            disabled_optimizers: names of rules and passes that are not to run, ours or onnxruntime's.
            verify: compare each rewrite with what it replaces, as `SessionOptions.verify` does.
            unknown: other arguments of onnxruntime's. `read_config_from_model` takes the options that the model's metadata have
                under `ort_config`; `enable_fallback` has no effect, and those that onnxruntime lacks are warned of.

        Raises:
            TypeError: an argument is of a type that holds no model, or no options.
            NoSuchFile, InvalidProtobuf, InvalidGraph: the model cannot be loaded.
            NotImplemented: no provider runs a node of it.
            InvalidArgument: an option is wrong.
            EPFail: a provider failed to compile its part.
            ModelLoadCanceled, ModelLoadTimedOut: the options ended it.
        """
        for name in unknown.keys() - {"enable_fallback", "read_config_from_model"}:
            warnings.warn(
                f"InferenceSession takes no argument {name!r}, which has no effect", UserWarning, stacklevel=user_stacklevel()
            )
        options = copied_options(sess_options)
        self._read_config_from_model = bool(unknown.get("read_config_from_model", reads_options_of_models()))
        if self._read_config_from_model:
            with without_fork():
                from sardonyx.session.model_config import options_of_model  # which few sessions need

            options = options_of_model(path_or_bytes, options)
        options.verify = options.verify or verify
        super().__init__(bool(unknown.get("enable_fallback", True)))
        self._arguments, self._kept_model = Arguments(options, (), None, None), model_of(path_or_bytes)
        self._create_inference_session(providers, provider_options, disabled_optimizers)
