"""Changes fields of the standard's own models, whatever they mean, and runs what comes of it: shares nothing with the other searches.

    PYTHONPATH=src python tests/fuzz/fields.py SECONDS [--seed N]

A field of any message of the model is removed, repeated, moved, set to a number at the edge of its type, or to a message of its kind from
elsewhere in the model; names, operators and opsets are exchanged, and now and then bytes. Feeds are the standard's or random ones, with
numbers at the edge of their types. Sessions are of the CPU provider or the reference provider, with one thread or two, in children
with limits of time and memory; `SARDONYX_GUARD=1` puts buffers between unmapped pages. Prints each case that ends the process, or
raises what is no error of sardonyx, and exits with 1 where there was one. About 30 cases a second on a core.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from onnx import numpy_helper

LIMITS = {"SARDONYX_COMPILE": "inline", "SARDONYX_MAX_TENSOR_BYTES": str(1 << 24), "SARDONYX_MAX_ITERATIONS": "2000"}
_SECONDS, _MEMORY_BYTES, _PER_CHILD = 20, 6 << 30, 100
_EDGES = [0, 1, -1, 2, 3, 7, -2, 63, 64, 65, 127, 128, 255, 256, 1 << 16, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 32]
_EDGES += [(1 << 63) - 1, -(1 << 63), 1 << 62, 10**9]
_FLOATS = [0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3.4e38, -3.4e38, 1e300, 0.5]
_OPSETS = [*range(1, 26), 0, -1, 1 << 40]
_KINDS = {"float": "f4", "double": "f8", "float16": "f2", "bool": "?"} | {
    f"{sign}int{bits}": f"{sign or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_OPERATORS = sorted(schema.name for schema in onnx.defs.get_all_schemas())
_CASES = sorted((Path(onnx.__file__).parent / "backend/test/data").glob("*/*/model.onnx"))


def messages(message: Any) -> Iterator[Any]:
    """Yield a message and all within it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in value if field.is_repeated else [value]:
                yield from messages(item)


def drawn_value(draw: random.Random, field: Any, names: list[str]) -> Any:
    """Return a value for a field that holds no message."""
    if field.type == FieldDescriptor.TYPE_STRING:
        return draw.choice([*names, "", "x", "a" * 300])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return draw.randbytes(draw.choice((0, 1, 4, 8, 33)))
    if field.enum_type is not None:
        return draw.choice(list(field.enum_type.values_by_number))
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return draw.choice(_FLOATS)
    return draw.choice(_EDGES) if draw.random() < 0.7 else draw.randrange(-20, 40)


def change(draw: random.Random, model: Any) -> None:
    """Change one thing of a model; what protobuf does not let us do is left undone."""
    names = [name for node in model.graph.node for name in (*node.input, *node.output)] or [""]
    found = list(messages(model))
    message, kind = draw.choice(found), draw.random()
    with contextlib.suppress(TypeError, ValueError, IndexError):
        if kind < 0.7:
            present = [field for field, _ in message.ListFields()]
            fields = present if kind < 0.45 and present else list(message.DESCRIPTOR.fields)
            _change_field(draw, message, draw.choice(fields), found, names)
        elif kind < 0.8:
            model.opset_import[0].version = draw.choice(_OPSETS)
        else:
            node = draw.choice(model.graph.node)
            if kind < 0.9:
                node.input[draw.randrange(len(node.input))] = draw.choice(names)
            else:
                node.op_type = draw.choice(_OPERATORS)


def _change_field(draw: random.Random, message: Any, field: Any, found: list[Any], names: list[str]) -> None:
    value = getattr(message, field.name)
    if field.message_type is None and not field.is_repeated:
        setattr(message, field.name, drawn_value(draw, field, names))
        return
    if not field.is_repeated:
        donors = [item.SerializeToString() for item in found if field.message_type == item.DESCRIPTOR]
        message.ClearField(field.name)
        if draw.random() < 0.7:
            value.ParseFromString(draw.choice(donors))
        return
    kind = draw.randrange(4)
    items = [item if field.message_type is None else item.SerializeToString() for item in value]
    if kind == 0:
        del items[draw.randrange(len(items))]
    elif kind == 1:
        items.insert(draw.randrange(len(items) + 1), draw.choice(items) if items else b"")
    elif kind == 2:
        draw.shuffle(items)
    elif field.message_type is None:
        items += [drawn_value(draw, field, names)] * draw.choice((1, 7, 70))
    else:
        items += [item.SerializeToString() for item in found if field.message_type == item.DESCRIPTOR][:2]
    message.ClearField(field.name)
    for item in items:
        if field.message_type is None:
            value.append(item)
        else:
            value.add().ParseFromString(item)


def drawn_model(draw: random.Random) -> tuple[Path, bytes]:
    """Return a changed model, and the path of the one that it was."""
    path = draw.choice(_CASES)
    model = onnx.load(path)
    if draw.random() < 0.15:
        content = bytearray(model.SerializeToString())
        for _ in range(draw.choice((1, 2, 8))):
            content[draw.randrange(len(content))] = draw.randrange(256)
        return path, bytes(content)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 5))):
        change(draw, model)
    return path, model.SerializeToString()


def drawn_feeds(draw: random.Random, inputs: list[Any], path: Path) -> dict[str, Any]:
    """Return an array for each input, the standard's where there is one."""
    feeds: dict[str, Any] = {}
    for index, item in enumerate(inputs):
        array = np.random.default_rng(draw.randrange(1 << 30)).standard_normal(_drawn_shape(draw, item.shape or [])) * 3
        with np.errstate(all="ignore"):
            array = array.astype(_KINDS.get(item.type[7:-1], "f4"))
        own = path.parent / "test_data_set_0" / f"input_{index}.pb"
        if draw.random() < 0.7 and own.is_file():
            with contextlib.suppress(Exception):
                array = np.array(numpy_helper.to_array(onnx.load_tensor(str(own))))
        if draw.random() < 0.3 and array.size and array.dtype != object:
            with np.errstate(all="ignore"), contextlib.suppress(OverflowError):
                edges = _EDGES if array.dtype.kind in "iu" else _FLOATS
                array.reshape(-1)[draw.randrange(array.size)] = np.array(draw.choice(edges)).astype(array.dtype)
        feeds[item.name] = array[..., ::-1] if draw.random() < 0.1 and array.ndim else array
    return feeds


def _drawn_shape(draw: random.Random, shape: list[Any]) -> list[int]:
    sizes = [size if isinstance(size, int) and 0 <= size < 40 else draw.choice((0, 1, 2, 3, 5)) for size in shape]
    return sizes if np.prod(sizes) < 1e6 else [1] * len(sizes)


def outcome_of(seed: int) -> str:
    """Return "ok", "refused", or what else came of a case."""
    from sardonyx import GraphOptimizationLevel, InferenceSession, SessionOptions
    from sardonyx.errors import SardonyxError

    draw = random.Random(seed)
    path, content = drawn_model(draw)
    options = SessionOptions()
    options.intra_op_num_threads = 1 + seed % 2
    if seed % 7 == 0:
        options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = InferenceSession(content, options, providers=None if seed % 3 else ["ReferenceExecutionProvider"])
        session.run(None, drawn_feeds(draw, list(session.get_inputs()), path))
    except SardonyxError:
        return "refused"
    except Exception as error:  # noqa: BLE001  which class it is of is what we want to know
        return f"untyped {type(error).__name__}: {str(error)[:300]} ({path.parent.name})"
    return "ok"


def outcomes(first: int, seconds: float) -> Iterator[tuple[int, str]]:
    """Yield what came of each case from seed `first` on, for so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            _be_a_child(first, writing)
        os.close(writing)
        with os.fdopen(reading, errors="replace") as lines:
            for line in lines:
                seed, _, said = line.rstrip("\n").partition(" ")
                first = int(seed) + 1
                yield int(seed), said
        status = os.waitpid(child, 0)[1]
        if status:
            yield first, f"crashed or hung, status {status}"
            first += 1


def _be_a_child(first: int, writing: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    status = 1
    with contextlib.suppress(BaseException):
        for seed in range(first, first + _PER_CHILD):
            signal.setitimer(signal.ITIMER_PROF, _SECONDS)
            os.write(writing, f"{seed} {outcome_of(seed)}".replace("\n", " ").encode() + b"\n")
        status = 0
    os._exit(status)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ.update(LIMITS)
    outcome_of(arguments.seed)
    counts: collections.Counter[str] = collections.Counter()
    for seed, said in outcomes(arguments.seed, arguments.seconds):
        counts[said.partition(" ")[0]] += 1
        if said not in ("ok", "refused"):
            sys.stdout.write(f"seed {seed}: {said}\n")
    sys.stdout.write(f"{counts.total()} cases: {dict(counts)}\n")
    return int(bool(counts.keys() - {"ok", "refused"}))


if __name__ == "__main__":
    sys.exit(main())
