"""What a node of a compiled custom operator costs beside its kernel.

    python benchmarks/custom_ops.py

A library in C (compiled here) has an operator that does nothing but ask for its input and its output. Printed is the time of a
node in a chain of 200, in sardonyx and, where it is installed, in onnxruntime, and of a session of one node; all in microseconds,
best of nine.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper

import sardonyx

_NODES = 200
_SOURCE = """
#include <stddef.h>
#include <stdint.h>
typedef void *(*Function)();
static Function *api;
static void *compute(void *kernel, void *context) {
  void *in, *out, *info; float *x, *y; int64_t dims[8]; size_t rank; void *status;
  if ((status = api[90](context, (size_t)0, &in)) || (status = api[65](in, &info))) return status;
  if ((status = api[61](info, &rank))) return status;
  if ((status = api[62](info, dims, rank)) || (status = api[51](in, &x))) return status;
  api[99](info);
  if ((status = api[91](context, (size_t)0, dims, rank, &out)) || (status = api[51](out, &y))) return status;
  y[0] = x[0] + 1;
  return NULL;
}
static void *create(void *op, void *table, void *info, void **kernel) { *kernel = NULL; return NULL; }
static const char *name(void *op) { return "AddOne"; }
static const char *provider(void *op) { return NULL; }
static int type(void *op, size_t index) { return 1; }
static size_t one(void *op) { return 1; }
static int zero(void *op, size_t index) { return 0; }
static int first(void *op) { return 1; }
static int last(void *op) { return 2147483647; }
static void destroy(void *kernel) {}
typedef struct { uint32_t version; void *callbacks[25]; } Operator;
static Operator op = {17, {0, name, provider, type, one, type, one, 0, destroy, zero, zero, zero, first, first, first, first,
                           create, compute, 0, first, last}};
void *RegisterCustomOps(void *options, void **base) {
  void *domain, *status;
  api = ((Function *(*)(uint32_t))base[0])(17);
  if ((status = api[26]("bench", &domain)) || (status = api[27](domain, &op))) return status;
  return api[28](options, domain);
}
"""


def _compile(folder: Path) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("this needs a C compiler called cc")
    source, library = folder / "ops.c", folder / "libops.so"
    source.write_text(_SOURCE)
    subprocess.run([compiler, "-O2", "-w", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return str(library)


def _model(nodes: int) -> bytes:
    made = [helper.make_node("AddOne", [f"x{index}"], [f"x{index + 1}"], domain="bench") for index in range(nodes)]
    given, result = (helper.make_tensor_value_info(name, 1, [4]) for name in ("x0", f"x{nodes}"))
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("bench", 1)]
    content: bytes = helper.make_model(
        helper.make_graph(made, "chain", [given], [result]), opset_imports=imports, ir_version=8
    ).SerializeToString()
    return content


def _microseconds(call: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(500):
            call()
        best = min(best, (time.perf_counter() - start) / 500)
    return best * 1e6


def _measure(runtime: Any, library: str) -> tuple[float, float]:
    options = runtime.SessionOptions()
    options.register_custom_ops_library(library)
    x = np.zeros(4, np.float32)
    sessions = [runtime.InferenceSession(_model(nodes), options, providers=["CPUExecutionProvider"]) for nodes in (1, 1 + _NODES)]
    one, many = (_microseconds(lambda session=session: session.run(None, {"x0": x})) for session in sessions)
    return (many - one) / _NODES, one


def main() -> None:
    """Print the table."""
    runtimes = [sardonyx]
    try:
        import onnxruntime

        runtimes.append(onnxruntime)
    except ImportError:
        pass
    with tempfile.TemporaryDirectory() as folder:
        for runtime in runtimes:
            library = shutil.copy(_compile(Path(folder)), Path(folder) / f"{runtime.__name__}.so")
            node, session = _measure(runtime, str(library))
            print(f"{runtime.__name__:12} {node:6.3f} us a node, {session:6.2f} us a session of one node")


if __name__ == "__main__":
    main()
