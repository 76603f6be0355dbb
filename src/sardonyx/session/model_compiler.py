"""Compiling a model ahead, in onnxruntime's words.

    compiler = ort.ModelCompiler(options, "model.onnx")
    compiler.compile_to_file("compiled.onnx")
"""

from __future__ import annotations

import enum
import os
from pathlib import Path

from sardonyx.errors import Fail, InvalidArgument
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import GraphOptimizationLevel, SessionOptions

__all__ = ["ModelCompiler", "OrtCompileApiFlags"]


class OrtCompileApiFlags(enum.IntFlag):
    """What else a compiler does; the numbers are onnxruntime's."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class ModelCompiler:
    """Writes models whose partitions are compiled already."""

    def __init__(self, sess_options: SessionOptions, input_model_path_or_bytes: str | os.PathLike[str] | bytes,
                 embed_compiled_data_into_model: bool = False,
                 external_initializers_file_path: str | os.PathLike[str] | None = None,
                 external_initializers_size_threshold: int = 1024, flags: int = OrtCompileApiFlags.NONE,
                 graph_optimization_level: GraphOptimizationLevel | None = None) -> None:  # fmt: skip
        """Make a compiler, which does nothing yet.

        Args:
            sess_options: options of the session that compiles, its providers among them.
            input_model_path_or_bytes: the model.
            embed_compiled_data_into_model: whether programs go into the model, else into files beside it.
            external_initializers_file_path: a file beside the model for the weights of nodes that are not compiled.
            external_initializers_size_threshold: how large such a weight is at least.
            flags: of OrtCompileApiFlags.
            graph_optimization_level: by default that of `sess_options`, not that of onnxruntime, which optimizes nothing.
        """
        self._model, self._embed, self._flags = input_model_path_or_bytes, embed_compiled_data_into_model, OrtCompileApiFlags(flags)
        self._options = sess_options.copy()
        if graph_optimization_level is not None:
            self._options.graph_optimization_level = graph_optimization_level
        if external_initializers_file_path:
            entries = {"file_name": Path(external_initializers_file_path).name, "size": str(external_initializers_size_threshold)}
            for name, text in entries.items():
                self._options.add_session_config_entry(f"ep.context_model_external_initializers_{name}", text)

    def compile_to_file(self, output_model_path: str | os.PathLike[str] | None = None) -> None:
        """Compile to a file, by default `NAME_ctx.onnx` beside the model; one that exists is written over.

        Raises:
            InvalidArgument: the path is left out, and the model comes from no file.
            Fail: the file exists, or no node was compiled, and the flags say that this is an error.
        """
        path = self._path_of(output_model_path)
        if path.exists():
            if OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS in self._flags:
                raise Fail(f"the compiled model {str(path)!r} exists; remove it, or leave out ERROR_IF_OUTPUT_FILE_EXISTS")
            path.unlink()
        self._compile(path, embed=self._embed)

    def compile_to_bytes(self) -> bytes:
        """Compile to the bytes of a model that holds its programs; raises Fail as `compile_to_file` does."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "compiled.onnx"
            self._compile(path, embed=True)
            return path.read_bytes()

    def _path_of(self, output: str | os.PathLike[str] | None) -> Path:
        if output is not None:
            return Path(output)
        if isinstance(self._model, bytes):
            raise InvalidArgument("the model comes from bytes, so the compiled one needs a path: pass output_model_path")
        source = Path(self._model)
        return source.with_name(f"{source.stem}_ctx.onnx")

    def _compile(self, path: Path, *, embed: bool) -> None:
        options = self._options.copy()
        entries = {"enable": "1", "file_path": str(path), "embed_mode": str(int(embed))}
        for name, text in entries.items():
            options.add_session_config_entry(f"ep.context_{name}", text)
        InferenceSession(self._model, options)
        if OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED in self._flags and not _has_contexts(path):
            raise Fail("no node was compiled: none of the session's providers keeps programs, or none claims a node")


def _has_contexts(path: Path) -> bool:
    """Whether a model has compiled partitions; what reads it is imported here, since sardonyx's own import has no need of it."""
    from sardonyx.formats import onnx as onnx_format
    from sardonyx.ir.walk import all_nodes
    from sardonyx.partition.contexts import is_context

    return any(map(is_context, all_nodes(onnx_format.load(path))))
