"""What a user says about the memory that providers may take.

    session.memory_limits = "MyExecutionProvider=65536; OpenVINO=4096,stats.csv"      KiB, and a file of what nodes need
    session.resource_cuda_partitioning_settings = "65536,stats.csv"                   the same for CUDAExecutionProvider
    session.max_shape_override = "input_ids:[8,4096]; mask:[8,4096]"                  shapes to reckon with
    session.collect_node_memory_stats_to_file = "stats.csv"                           where runs write what nodes need

The last three are onnxruntime's. Files are beside the model, or in the working folder where it comes from no file. Where no file
says what a node needs, it is reckoned from its weights and from the shapes of its outputs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx.errors import InvalidArgument
from sardonyx.ir import Expr, Model, Value
from sardonyx.partition.budget import Accountant, Budget
from sardonyx.partition.node_memory import load_node_memory
from sardonyx.partition.placement import find_provider
from sardonyx.session.options import SessionOptions

__all__ = ["COLLECT_ENTRY", "LIMITS_ENTRY", "accountant_for", "beside", "read_max_shapes"]

LIMITS_ENTRY = "session.memory_limits"
COLLECT_ENTRY = "session.collect_node_memory_stats_to_file"
_CUDA_ENTRY = "session.resource_cuda_partitioning_settings"
_SHAPES_ENTRY = "session.max_shape_override"
_CUDA = "CUDAExecutionProvider"
_LIMIT = re.compile(r"(\d+)\s*(?:,(.*))?")
_SHAPE = re.compile(r"(.+):\s*\[([^\[\]]*)\]")


def accountant_for(model: Model, options: SessionOptions, limits: Mapping[str, str], providers: Sequence[str]) -> Accountant | None:
    """What counts the memory of a session's providers; None where no limit is set.

    Args:
        model: prepared; its inputs say what symbols the shapes are of.
        options: the session's.
        limits: provider -> "KIB" or "KIB,FILE", from a placement file; the config entries stand above them.
        providers: the session's.

    Raises:
        InvalidArgument: a limit or a shape is malformed, or names what the session or the model does not have.
        NoSuchFile: there is no such file.
    """
    entries = options.session_config_entries
    budgets: dict[str, Budget] = {}
    for name, text in (*limits.items(), *_pairs(entries.get(LIMITS_ENTRY, ""))):
        full_name = find_provider(name, providers, "a memory limit")
        budgets[full_name] = _budget(f"the memory limit of {full_name}", text, model)
    if entries.get(_CUDA_ENTRY) and _CUDA in providers:
        budgets[_CUDA] = _budget(_CUDA_ENTRY, entries[_CUDA_ENTRY], model)
    sizes = read_max_shapes(entries.get(_SHAPES_ENTRY, ""), model.graph.inputs)
    return Accountant(budgets, sizes) if budgets else None


def beside(model: Model, name: str) -> Path:
    """Where a file of this name is."""
    return Path(name) if model.path is None else model.path.parent / name


def read_max_shapes(text: str, inputs: Sequence[Value]) -> dict[str, int]:
    """Symbol -> size, where the inputs have the shapes of `text`; raises InvalidArgument where they cannot have them."""
    found: dict[str, int] = {}
    named = {value.name: value for value in inputs}
    for part in _parts(text):
        match = _SHAPE.fullmatch(part)
        if match is None or not all(size.strip().isdigit() and int(size) > 0 for size in match[2].split(",")):
            raise InvalidArgument(f"{_SHAPES_ENTRY} is a list NAME:[SIZE,SIZE]; ... with sizes from 1 on, got {part!r}")
        name, sizes = match[1].strip(), [int(size) for size in match[2].split(",")]
        if name not in named:
            raise InvalidArgument(f"{_SHAPES_ENTRY} names {name!r}, which is no input of the model; its inputs are {list(named)}")
        shape = named[name].shape
        if shape is None:
            continue
        if len(shape) != len(sizes):
            raise InvalidArgument(f"{_SHAPES_ENTRY} gives {name!r} {len(sizes)} dimensions, the model {len(shape)}: {shape}")
        for dim, size in zip(shape, sizes, strict=True):
            symbol = dim.name if isinstance(dim, Expr) else None
            known = found.setdefault(symbol, size) if symbol is not None else dim if isinstance(dim, int) else size
            if known != size:
                raise InvalidArgument(f"{_SHAPES_ENTRY} gives {name!r} the shape {sizes}, but {symbol or 'a dimension'} is {known}")
    return found


def _pairs(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for part in _parts(text):
        name, separator, limit = (item.strip() for item in part.partition("="))
        if not separator or not name:
            raise InvalidArgument(f"{LIMITS_ENTRY} is a list PROVIDER=KIB; PROVIDER=KIB,FILE; ... got {part!r}")
        found.append((name, limit))
    return found


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


def _budget(what: str, text: str, model: Model) -> Budget:
    match = _LIMIT.fullmatch(text.strip())
    if match is None:
        raise InvalidArgument(f"{what} is KIB or KIB,FILE, as how much memory a device has is not known here; got {text!r}")
    name = (match[2] or "").strip()
    return Budget(1024 * int(match[1]), load_node_memory(beside(model, name)) if name else {})
