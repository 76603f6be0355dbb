"""From a file to a model that is checked: its structure, and each node against its operator's schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument, InvalidGraph, SardonyxError, locating
from sardonyx.formats.files import FileStamp
from sardonyx.formats.opened import OpenedModel
from sardonyx.ir import Model, OptionalType, SequenceType, SparseTensorType, Tensor, TensorType, ValueType
from sardonyx.ir.verify import verify
from sardonyx.ir.walk import all_nodes
from sardonyx.ops.infer import infer_graph
from sardonyx.ops.schema import place_of
from sardonyx.ops.schemas import check_node, find_schema, is_too_new, unknown_operator
from sardonyx.ops.session_operators import find_session_operator
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.override_dimensions import OverrideDimensions
from sardonyx.session.settings.settings import LoadSettings
from sardonyx.session.stages.loop_bodies import separate_lengths
from sardonyx.session.stages.owned_model import OwnedModel
from sardonyx.session.stages.source import Source
from sardonyx.session.values import ModelMetadata, NodeArg, metadata_of, node_arg
from sardonyx.session.variant import Variant
from sardonyx.trace import span

__all__ = ["FIRST_WITH_DEFAULTS", "Loaded", "fix_dimensions", "load"]

FIRST_WITH_DEFAULTS = 4
"""The IR version from which on an input that is an initializer too may be fed; before, every initializer was an input."""


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    """A model as its file has it, checked."""

    model: OwnedModel
    """The model; its inputs have no constants any more."""
    declared: tuple[NodeArg, ...]
    """The outputs as the model declares them."""
    types: tuple[ValueType | None, ...]
    """Their types there, None where there is none."""
    defaults: Mapping[str, Array]
    """Input -> the initializer that it is where a feed leaves it out."""
    metadata: ModelMetadata
    """What the file says about itself."""
    stamps: Mapping[Path, FileStamp]
    """What the files that it was read from were then."""
    placed: Mapping[Tensor, int | tuple[str, int, int]]
    """The numbers of tensors whose elements are in the model's own file, and the places of those in other files."""


def load(
    source: Source,
    settings: LoadSettings,
    variant: Variant | None = None,
    disabled: Collection[str] = frozenset(),
    opened: OpenedModel | None = None,
) -> Loaded:
    """Read a model and check it.

    Args:
        source: where it comes from.
        settings: where its external data is, which initializers are replaced and which dimensions fixed.
        variant: in what the model is to differ from its file.
        disabled: passes that are not to run, of which one fixes the dimensions.
        opened: the model's file, where it is open already.

    Raises:
        SardonyxError: the model cannot be read, or is invalid; the message begins with its name.
    """
    with span("session.load"):
        model = source.read(settings, opened)
    owned = OwnedModel(model)
    try:
        with locating(f"model {model.label}"):
            if variant is not None:
                variant.apply(model)
            _replace_initializers(model, settings.initializers)
            separate_lengths(model)
            _open_elements(model)
            fix_dimensions(model, settings, disabled)
            defaults = _take_defaults(model)
            declared = tuple(node_arg(value) for value in model.graph.outputs)
            types = tuple(value.type for value in model.graph.outputs)
            _make_outputs_dense(model)
            with span("session.check"):
                verify(model)
                _check_operators(model)
                if settings.is_strict:
                    infer_graph(model, strict=True)
    except SardonyxError:
        owned.dismantle()
        raise
    return Loaded(owned, declared, types, defaults, metadata_of(model), model.stamps, model.placed)


def fix_dimensions(model: Model, settings: LoadSettings, disabled: Collection[str] = frozenset()) -> None:
    """Give the dimensions that the settings fix their sizes."""
    if OverrideDimensions.name not in disabled:
        OverrideDimensions(settings.dimensions, settings.denotations).run(model, Context())


def _replace_initializers(model: Model, given: Mapping[str, Array]) -> None:
    for name, array in given.items():
        value = model.graph.initializers.get(name)
        if value is None or value.constant is None:
            raise InvalidArgument(f"add_initializer names {name!r}, which is no initializer of the model")
        tensor = Tensor.from_array(array, name)
        if (tensor.dtype, tensor.shape) != (value.constant.dtype, value.constant.shape):
            raise InvalidArgument(f"add_initializer gives {tensor!r} for {name!r}, which the model has as {value.constant!r}")
        value.constant = tensor


def _make_outputs_dense(model: Model) -> None:
    """Declare sparse outputs as the dense tensors that are computed; the session makes them sparse again."""
    for value in model.graph.outputs:
        if isinstance(value.type, SparseTensorType):
            value.type = TensorType(value.type.dtype, value.type.shape)


def _open_elements(model: Model) -> None:
    """Leave open which shapes the elements of lists have that are inputs: ONNX Runtime takes any.

    A tensor that is optional has the shape that is declared.
    """
    for value in model.graph.inputs:
        if isinstance(value.type, SequenceType) or (
            isinstance(value.type, OptionalType) and isinstance(value.type.element, SequenceType)
        ):
            value.type = _without_shapes(value.type)


def _without_shapes(kind: ValueType | None) -> ValueType | None:
    if isinstance(kind, TensorType):
        return TensorType(kind.dtype)
    if isinstance(kind, (SequenceType, OptionalType)):
        return type(kind)(_without_shapes(kind.element))
    return kind


def _take_defaults(model: Model) -> dict[str, Array]:
    """Turn initializers that a feed may override (IR version 4 and later) into inputs with a default.

    Before IR version 4 every initializer had to be an input as well, and none could be overridden: there the input goes.
    """
    both = [value for value in model.graph.inputs if value.constant is not None]
    if model.ir_version < FIRST_WITH_DEFAULTS:
        model.graph.inputs = [value for value in model.graph.inputs if value.constant is None]
        return {}
    defaults = {value.name: value.constant.numpy() for value in both if value.constant is not None}
    for value in both:
        del model.graph.initializers[value.name]
        value.constant = None
    return defaults


_HOST_COPIES = ("MemcpyFromHost", "MemcpyToHost")
"""Copies to and from a device in models that ONNX Runtime saved for one: the partitioner puts in those that are needed here."""


def _check_operators(model: Model) -> None:
    for node in all_nodes(model):
        check_cancelled()
        if (node.domain, node.op_type, node.overload) in model.functions:
            continue
        schema = find_schema(node.domain, node.op_type, node.version)
        if schema is not None:
            check_node(node, schema)
        elif not node.domain and node.op_type in _HOST_COPIES:
            node.op_type = "Identity"
        elif is_too_new(node.domain, node.op_type) and find_session_operator(node.domain, node.op_type, node.version) is None:
            raise InvalidGraph(f"{place_of(node)}: {unknown_operator(node.domain, node.op_type, node.version)}")
