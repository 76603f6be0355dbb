"""A small library of custom operators in C, compiled for the tests where there is a compiler, and models of its operators."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import sardonyx
from sardonyx.dtypes import DataType

__all__ = ["DOMAIN", "custom_model", "library_path", "peer_session", "run_custom", "session_of"]

DOMAIN = "test.ops"
_SOURCE = Path(__file__).with_name("custom_ops.c")


@functools.cache
def library_path(*flags: str) -> str:
    """The compiled library; the test is skipped where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = Path(tempfile.mkdtemp(prefix="sardonyx_custom_ops_"))
    path = folder / "libtestops.so"
    command = [compiler, "-std=gnu11", "-w", "-O1", "-shared", "-fPIC", *flags, "-o", str(path), str(_SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(path)


def custom_model(
    op_type: str,
    inputs: Sequence[Any],
    output_types: Sequence[DataType | None],
    *,
    domain: str = DOMAIN,
    constants: Sequence[int] = (),
    name: str = "node",
    **attributes: Any,
) -> bytes:
    """A model of one custom operator on inputs of these types, any shape; None for one left out.

    Args:
        op_type: the operator.
        inputs: arrays; those whose index is in `constants` are initializers.
        output_types: the type of each output.
        domain: the operator's domain.
        constants: which inputs are initializers.
        name: the node's name.
        attributes: the node's attributes.
    """
    from onnx import numpy_helper

    names = ["" if item is None else f"x{index}" for index, item in enumerate(inputs)]
    results = [f"y{index}" for index in range(len(output_types))]
    node = helper.make_node(op_type, names, results, name=name, domain=domain, **attributes)
    arrays = [(index, np.asarray(item)) for index, item in enumerate(inputs) if item is not None]
    declared = [
        helper.make_tensor_value_info(f"x{index}", int(DataType.from_numpy(item.dtype)), [None] * item.ndim)
        for index, item in arrays
        if index not in constants
    ]
    made = [
        helper.make_empty_tensor_value_info(result) if kind is None else helper.make_tensor_value_info(result, int(kind), None)
        for result, kind in zip(results, output_types, strict=True)
    ]
    held = [numpy_helper.from_array(item, f"x{index}") for index, item in arrays if index in constants]
    graph = helper.make_graph([node], "custom", declared, made, held)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    content: bytes = helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()
    return content


def session_of(model: bytes, *libraries: str) -> sardonyx.InferenceSession:
    """A session of a model with these libraries registered; by default with that of the tests."""
    options = sardonyx.SessionOptions()
    for path in libraries or (library_path(),):
        options.register_custom_ops_library(path)
    return sardonyx.InferenceSession(model, options)


@functools.cache
def _copy_of(path: str) -> str:
    """A copy of a library, with static variables of its own: one image cannot serve two runtimes."""
    folder = tempfile.mkdtemp(prefix="sardonyx_custom_ops_")
    return shutil.copy(path, Path(folder) / f"copy_of_{Path(path).name}")


def peer_session(model: bytes, *libraries: str) -> Any:
    """The same in onnxruntime, from a copy of the libraries; the test is skipped where it is not installed."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for path in libraries or (library_path(),):
        options.register_custom_ops_library(str(_copy_of(path)))
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_custom(op_type: str, inputs: Sequence[Any], output_types: Sequence[DataType | None], **settings: Any) -> list[Any]:
    """What an operator of the test library computes."""
    session = session_of(custom_model(op_type, inputs, output_types, **settings))
    feed = {item.name: np.asarray(inputs[int(item.name[1:])]) for item in session.get_inputs()}
    return session.run(None, feed)
