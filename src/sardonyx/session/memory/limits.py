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

from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx.errors import EPFail, InvalidArgument, blamed, describe
from sardonyx.ir import Expr, Model, Value
from sardonyx.partition.budget import Accountant, Budget
from sardonyx.partition.node_memory import load_node_memory
from sardonyx.partition.placement import find_provider
from sardonyx.provider import KnowsMemory, Provider
from sardonyx.session.settings.grammar import Limit
from sardonyx.session.settings.keys import CUDA_LIMIT, MAX_SHAPES
from sardonyx.session.settings.settings import MemorySettings

__all__ = ["accountant_for", "beside", "sizes_of"]

_CUDA = "CUDAExecutionProvider"


def accountant_for(model: Model, settings: MemorySettings, providers: Sequence[Provider]) -> Accountant | None:
    """Return what counts the memory of a session's providers; None where no limit is set.

    Args:
        model: prepared; its inputs say what symbols the shapes are of.
        settings: the limits.
        providers: the session's.

    Raises:
        InvalidArgument: a limit or a shape names what the session or the model does not have.
        NoSuchFile: there is no such file.
    """
    made = {provider.name: provider for provider in providers}
    limits: dict[str, tuple[str, Limit]] = {}
    for name, limit in settings.limits:
        full_name = find_provider(name, list(made), "a memory limit")
        limits[full_name] = f"the memory limit of {full_name}", limit
    if settings.cuda is not None and _CUDA in made:
        limits[_CUDA] = CUDA_LIMIT.name, settings.cuda
    budgets = {name: _budget(what, limit, model, made[name]) for name, (what, limit) in limits.items()}
    sizes = sizes_of(settings.shapes, model.graph.inputs)
    return Accountant(budgets, sizes) if budgets else None


def beside(model: Model, name: str) -> Path:
    """Return where a file of this name is."""
    return Path(name) if model.path is None else model.path.parent / name


def sizes_of(shapes: Mapping[str, tuple[int, ...]], inputs: Sequence[Value]) -> dict[str, int]:
    """Return the size of each symbol, where the inputs have these shapes; raises InvalidArgument where they cannot have them."""
    found: dict[str, int] = {}
    named = {value.name: value for value in inputs}
    for name, sizes in shapes.items():
        if name not in named:
            raise InvalidArgument(f"{MAX_SHAPES.name} names {name!r}, which is no input of the model; its inputs are {list(named)}")
        shape = named[name].shape
        if shape is None:
            continue
        if len(shape) != len(sizes):
            raise InvalidArgument(f"{MAX_SHAPES.name} gives {name!r} {len(sizes)} dimensions, the model {len(shape)}: {shape}")
        for dim, size in zip(shape, sizes, strict=True):
            symbol = dim.name if isinstance(dim, Expr) else None
            known = found.setdefault(symbol, size) if symbol is not None else dim if isinstance(dim, int) else size
            if known != size:
                raise InvalidArgument(
                    f"{MAX_SHAPES.name} gives {name!r} the shape {list(sizes)}, but {symbol or 'a dimension'} is {known}"
                )
    return found


def _budget(what: str, limit: Limit, model: Model, provider: Provider) -> Budget:
    limit_bytes = _available_bytes(what, provider) if limit.kib is None else 1024 * limit.kib
    return Budget(limit_bytes, load_node_memory(beside(model, limit.file)) if limit.file else {})


def _available_bytes(what: str, provider: Provider) -> int:
    if not isinstance(provider, KnowsMemory):
        raise InvalidArgument(f"{what} has no number, but {provider.name} does not say what it has; write KIB,FILE")
    try:
        return int(provider.available_bytes())
    except Exception as error:
        message = f"{provider.name} failed when asked how much memory it has: {describe(error)}"
        raise blamed(EPFail(message), provider.name) from error
