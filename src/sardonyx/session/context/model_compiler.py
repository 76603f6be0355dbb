"""Compiling a model ahead, in onnxruntime's words.

compiler = ort.ModelCompiler(options, "model.onnx")
compiler.compile_to_file("compiled.onnx")
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.arguments import as_index, instance
from sardonyx.errors import Fail, InvalidArgument, SardonyxError
from sardonyx.forks import without_fork
from sardonyx.session.context.data import ContextOutput, InitializerValue, OrtExternalInitializerInfo, WriteData
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import GraphOptimizationLevel, SessionOptions
from sardonyx.session.providers import ProviderRequest

__all__ = ["GetInitializerLocation", "ModelCompiler", "OrtCompileApiFlags"]

GetInitializerLocation = Callable[[str, InitializerValue, OrtExternalInitializerInfo | None], OrtExternalInitializerInfo | None]
"""A callback for an initializer that stays in the model: returns where it has written it; None: it goes into the model."""
_CHUNK_BYTES = 1 << 20


class OrtCompileApiFlags(enum.IntFlag):
    """What else a compiler does; the numbers are onnxruntime's."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class ModelCompiler:
    """Writes models whose partitions are compiled already."""

    def __init__(
        self,
        sess_options: SessionOptions,
        input_model_path_or_bytes: str | os.PathLike[str] | bytes,
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path: str | os.PathLike[str] | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = OrtCompileApiFlags.NONE,
        graph_optimization_level: GraphOptimizationLevel | None = None,
        get_initializer_location_func: GetInitializerLocation | None = None,
        providers: Sequence[ProviderRequest] | None = None,
    ) -> None:
        """Make a compiler, which does nothing yet.

        Args:
            sess_options: options of the session that compiles, its providers among them.
            input_model_path_or_bytes: the model.
            embed_compiled_data_into_model: whether programs go into the model, else into files beside it.
            external_initializers_file_path: a file beside the model for the weights of nodes that are not compiled.
            external_initializers_size_threshold: how large such a weight is at least.
            flags: of OrtCompileApiFlags.
            graph_optimization_level: by default that of `sess_options`, not that of onnxruntime, which optimizes nothing.
            get_initializer_location_func: is called with the name and the value of each weight of nodes that are not compiled, and
                with where the model had it, if that was another file; returns where it is to be found, below the folder of the
                compiled model, or None for in it.
            providers: those of the session that compiles, as InferenceSession takes them, objects of yours among them; None for
                those of `sess_options`.

        Raises:
            InvalidArgument: there is no model, or weights have two places.
            TypeError: the model is neither a path nor bytes.
        """
        given: object = input_model_path_or_bytes
        if not isinstance(given, (str, bytes, os.PathLike)):
            kind = type(given).__name__
            raise TypeError(f"input_model_path_or_bytes is a path or the bytes of a model: unable to load from type {kind!r}")
        if not input_model_path_or_bytes:
            raise InvalidArgument(f"the model to compile is the path of a file or its bytes, got {input_model_path_or_bytes!r}")
        if get_initializer_location_func is not None and external_initializers_file_path:
            raise InvalidArgument("give external_initializers_file_path or get_initializer_location_func, not both")
        threshold = as_index("external_initializers_size_threshold", external_initializers_size_threshold)
        if threshold < 0:
            raise InvalidArgument(f"external_initializers_size_threshold is a number of bytes, got {threshold}")
        self._output = ContextOutput(locate=_wrapped(get_initializer_location_func), replaces=True)
        self._model, self._embed, self._flags = input_model_path_or_bytes, embed_compiled_data_into_model, OrtCompileApiFlags(flags)
        self._providers = providers
        self._binary: Path | None = None
        self._options = instance("sess_options", sess_options, SessionOptions).copy()
        if graph_optimization_level is not None:
            self._options.graph_optimization_level = graph_optimization_level
        if external_initializers_file_path:
            entries = {"file_name": Path(external_initializers_file_path).name, "size": str(threshold)}
            for name, text in entries.items():
                self._options.add_session_config_entry(f"ep.context_model_external_initializers_{name}", text)

    def compile_to_file(self, output_model_path: str | os.PathLike[str] | None = None) -> None:
        """Compile to a file, by default `NAME_ctx.onnx` beside the model; one that exists is written over.

        Raises:
            InvalidArgument: the path is left out, and the model comes from no file.
            Fail: the file exists, or no node was compiled, and the flags say that this is an error.
        """
        path = self._path_of(output_model_path)
        if path.exists() and OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS in self._flags:
            raise Fail(f"the compiled model {str(path)!r} exists already; remove it, or leave out ERROR_IF_OUTPUT_FILE_EXISTS")
        self._compile(path, embed=self._embed)

    def set_ep_context_data_write_func(self, write_func: WriteData) -> None:
        """Have a callback store what would lie in files beside the model: it gets a name and an OrtEpContextData.

        A session that loads the model gets it back by `SessionOptions.set_ep_context_data_read_func`.
        """
        self._output = dataclasses.replace(self._output, write_data=write_func)

    def clear_ep_context_data_write_func(self) -> None:
        """Write files again."""
        self._output = dataclasses.replace(self._output, write_data=None)

    def set_ep_context_binary_information(self, output_directory: str | os.PathLike[str], model_name: str) -> None:
        """Have `compile_to_bytes` and `compile_to_stream` put programs that are not embedded into a file.

        A session that loads these bytes finds them where "ep.context_file_path" is a path in that folder. The file that
        `compile_to_file` writes has its programs beside it in any case.

        Args:
            output_directory: the folder of that file, which exists.
            model_name: what its name begins with; an extension is left off.

        Raises:
            InvalidArgument: there is no such folder, or the name is empty or has a folder in it.
        """
        folder = os.fspath(output_directory)
        if not folder or not model_name:
            raise InvalidArgument(f"output_dir or model_name is empty: output_directory={folder!r}, model_name={model_name!r}")
        if not os.path.isdir(folder):
            raise InvalidArgument(f"output_dir is not a valid directory: there is no folder {folder!r}")
        if Path(model_name).name != model_name:
            raise InvalidArgument(f"model_name is a name without a folder, got {model_name!r}; the folder is output_directory")
        self._binary = Path(folder) / f"{Path(model_name).stem}_ctx.onnx"

    def compile_to_bytes(self) -> bytes:
        """Compile to the bytes of a model; raises Fail as `compile_to_file` does.

        The model holds its programs, unless they were not to be embedded and a callback or a file takes them.
        """
        if self._binary is not None and not self._embed:
            self._compile(self._binary, embed=False)
            content = self._binary.read_bytes()
            self._binary.unlink()
            return content
        with without_fork():
            import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / self._name()
            self._compile(path, embed=self._embed or self._output.write_data is None)
            return path.read_bytes()

    def compile_to_stream(self, write_function: Callable[[bytes], object]) -> None:
        """Compile, and call `write_function` with the bytes of the model, part after part, as `compile_to_bytes` makes them.

        Raises:
            Fail: `write_function` failed, or as `compile_to_bytes`.
        """
        content = memoryview(self.compile_to_bytes())
        try:
            for begin in range(0, len(content), _CHUNK_BYTES):
                write_function(bytes(content[begin : begin + _CHUNK_BYTES]))
        except Exception as error:
            raise Fail(f"the function that was to write the compiled model failed: {type(error).__name__}: {error}") from error

    def _name(self) -> str:
        return "model_ctx.onnx" if isinstance(self._model, bytes) else f"{Path(self._model).stem}_ctx.onnx"

    def _path_of(self, output: str | os.PathLike[str] | None) -> Path:
        if output is not None:
            return Path(output)
        if isinstance(self._model, bytes):
            raise InvalidArgument("the model comes from bytes, so the compiled one needs a path: pass output_model_path")
        return Path(self._model).with_name(self._name())

    def _compile(self, path: Path, *, embed: bool) -> None:
        options = self._options.copy()
        options.context_output = self._output
        entries = {"enable": "1", "file_path": str(path), "embed_mode": str(int(embed))}
        for name, text in entries.items():
            options.add_session_config_entry(f"ep.context_{name}", text)
        InferenceSession(self._model, options, providers=self._providers)
        if OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED in self._flags and not _has_contexts(path):
            raise Fail("Unable to compile any nodes: none of the session's providers keeps programs, or none claims a node")


def _wrapped(locate: GetInitializerLocation | None) -> GetInitializerLocation | None:
    """Return `locate`, whose failures are raised as those of a callback."""
    if locate is None:
        return None

    def wrapped(name: str, value: InitializerValue, info: OrtExternalInitializerInfo | None) -> OrtExternalInitializerInfo | None:
        try:
            return locate(name, value, info)
        except SardonyxError:
            raise
        except Exception as error:
            raise Fail(f"get_initializer_location_func failed for {name!r}: {type(error).__name__}: {error}") from error

    return wrapped


def _has_contexts(path: Path) -> bool:
    """Return whether a model has compiled partitions.

    What reads it is imported here, since sardonyx's own import has no need of it.
    """
    with without_fork():
        from sardonyx.formats import models
        from sardonyx.ir.walk import all_nodes
        from sardonyx.partition.contexts import is_context

    return any(map(is_context, all_nodes(models.load(path))))
