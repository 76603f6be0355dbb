"""What a user says about the memory that providers may take.

    session.memory_limits = "MyExecutionProvider=65536; OpenVINO=4096,stats.csv"      KiB, and a file of what nodes need
    session.resource_cuda_partitioning_settings = "65536,stats.csv"                   the same for CUDAExecutionProvider
    session.max_shape_override = "input_ids:[8,4096]; mask:[8,4096]"                  shapes to reckon with
    session.collect_node_memory_stats_to_file = "stats.csv"                           where runs write what nodes need

The last three are onnxruntime's. A limit without a number (",stats.csv") is what the provider says that it has. Files are beside
the model, or in the working folder where it comes from no file. Where no file says what a node needs, it is reckoned from its
weights and from the shapes of its outputs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx.errors import EPFail, InvalidArgument, blamed, describe
from sardonyx.ir import Expr, Model, Value
from sardonyx.partition.budget import Accountant, Budget
from sardonyx.partition.node_memory import load_node_memory
from sardonyx.partition.placement import find_provider
from sardonyx.provider import KnowsMemory, Provider
from sardonyx.session.options import SessionOptions

__all__ = ["COLLECT_ENTRY", "LIMITS_ENTRY", "accountant_for", "beside", "read_max_shapes"]

LIMITS_ENTRY = "session.memory_limits"
COLLECT_ENTRY = "session.collect_node_memory_stats_to_file"
_CUDA_ENTRY = "session.resource_cuda_partitioning_settings"
_SHAPES_ENTRY = "session.max_shape_override"
_CUDA = "CUDAExecutionProvider"
_LIMIT = re.compile(r"(\d*)\s*(?:,(.*))?")
_SHAPE = re.compile(r"(.+):\s*\[([^\[\]]*)\]")


def accountant_for(
    model: Model, options: SessionOptions, limits: Mapping[str, str], providers: Sequence[Provider]
) -> Accountant | None:
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
    made = {provider.name: provider for provider in providers}
    budgets: dict[str, Budget] = {}
    for name, text in (*limits.items(), *_pairs(entries.get(LIMITS_ENTRY, ""))):
        full_name = find_provider(name, list(made), "a memory limit")
        budgets[full_name] = _budget(f"the memory limit of {full_name}", text, model, made[full_name])
    if entries.get(_CUDA_ENTRY) and _CUDA in made:
        budgets[_CUDA] = _budget(_CUDA_ENTRY, entries[_CUDA_ENTRY], model, made[_CUDA])
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


def _budget(what: str, text: str, model: Model, provider: Provider) -> Budget:
    match = _LIMIT.fullmatch(text.strip())
    if match is None or not text.strip():
        raise InvalidArgument(f"{what} is KIB, KIB,FILE or ,FILE; got {text!r}")
    limit_bytes = 1024 * int(match[1]) if match[1] else _available_bytes(what, text, provider)
    name = (match[2] or "").strip()
    return Budget(limit_bytes, load_node_memory(beside(model, name)) if name else {})


def _available_bytes(what: str, text: str, provider: Provider) -> int:
    if not isinstance(provider, KnowsMemory):
        raise InvalidArgument(f"{what} has no number, got {text!r}, but {provider.name} does not say what it has; write KIB,FILE")
    try:
        return int(provider.available_bytes())
    except Exception as error:
        message = f"{provider.name} failed when asked how much memory it has: {describe(error)}"
        raise blamed(EPFail(message), provider.name) from error
