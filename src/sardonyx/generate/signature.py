"""What the inputs and outputs of a decoder are: tokens, masks, positions, caches; found by name, type and shape.

past_key_values.0.key ─► decoder ─► present.0.key        one pair of the cache "0.key"
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.session.interface import SessionInterface
from sardonyx.session.values import NodeArg
from sardonyx.spelling import nearest

__all__ = ["ROLES", "CacheSlot", "Signature", "find_signature"]

ROLES: Mapping[str, tuple[str, ...]] = {
    "ids": ("input_ids", "decoder_input_ids", "tokens", "ids"),
    "mask": ("attention_mask", "decoder_attention_mask", "attn_mask", "attn_bias", "attention_bias", "mask"),
    "positions": ("position_ids", "decoder_position_ids", "positions", "pos_ids"),
    "cache_positions": ("cache_position", "cache_positions"),
    "lengths": ("seqlens_k", "seqlens", "sequence_lengths"),
    "longest": ("total_sequence_length", "total_seq_len"),
    "past_length": ("past_sequence_length", "past_seq_len"),
    "cache_branch": ("use_cache_branch",),
    "encoder_states": ("encoder_hidden_states", "encoder_outputs", "encoder_output", "audio_features"),
    "encoder_mask": ("encoder_attention_mask", "encoder_mask"),
    "token_types": ("token_type_ids",),
    "logits": ("logits", "lm_logits", "output"),
}
"""What an input or output is for -> the names that exporters give it; a map of a user's has these keys."""

_SPELT_PAST = re.compile(r"^(past_key_values|past_key_value|past_kv|past)")
_SPELT_PRESENT = re.compile(r"^(present_key_values|present_key_value|present_kv|present|new_key_values|new_past|updated_past)")
_OF_ENCODER = re.compile(r"(^|[._])(encoder|cross)([._]|$)")
_USUAL_AXES = {3: (0, 1), 4: (0, 2), 5: (1, 3)}
"""Rank -> axes of the batch and of the length: (B, P, E), (B, H, P, D), and (2, B, H, P, D) or (L, B, H, P, D)."""


@dataclasses.dataclass(frozen=True, slots=True)
class CacheSlot:
    """One cache of a decoder: the input that takes it, and the output that gives it out longer."""

    key: str
    """What both names share, such as "0.key"."""
    past: str
    """The input, "" where this model computes the cache and takes none."""
    present: str
    """The output, "" where the cache never changes."""
    dtype: DataType
    """The type of its elements."""
    shape: tuple[int | None, ...]
    """Its sizes; None for the batch and the length, and where the model leaves one open."""
    batch_axis: int
    """Which axis is the batch."""
    length_axis: int
    """Which axis grows by a row with each token."""
    is_cross: bool
    """Whether it holds keys or values of the encoder's states, which do not grow."""


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a decoder by what they are for."""

    roles: Mapping[str, NodeArg]
    """Key of ROLES -> the input or output, of those that there are; "ids" and "logits" always are."""
    caches: tuple[CacheSlot, ...]
    """The caches, in the order of the inputs; empty where the model has none."""

    @property
    def vocabulary(self) -> int | None:
        """How many tokens have a logit; None where the model leaves it open."""
        shape = self.roles["logits"].shape
        return shape[-1] if shape and isinstance(shape[-1], int) else None

    @property
    def places_rows(self) -> bool:
        """Whether rows of different lengths can share a batch, padded on the left: the mask hides padding, positions skip it."""
        return "mask" in self.roles and "positions" in self.roles


def find_signature(
    session: SessionInterface,
    names: Mapping[str, str] | None = None,
    caches: Mapping[str, str] | None = None,
    given: Collection[str] = (),
) -> Signature:
    """Find what the inputs and outputs of a session are for.

    Args:
        session: a decoder's session.
        names: key of ROLES -> name, for what is called otherwise.
        caches: name of an input -> name of the output that is fed to it in the next step, for what is called otherwise.
        given: inputs that somebody else feeds.

    Raises:
        InvalidArgument: there are no token ids or logits, or an input whose purpose is not known.
    """
    inputs, outputs = {value.name: value for value in session.get_inputs()}, {value.name: value for value in session.get_outputs()}
    _check_map(names or {}, caches or {}, inputs, outputs)
    roles = _found_roles(inputs, outputs, names or {})
    ids = roles.get("ids") or next((value for value in inputs.values() if _is_tokens(value)), None)
    if ids is None:
        raise InvalidArgument(
            f"none of the inputs {list(inputs)} is known to take token ids: an integer tensor (batch, sequence), usually "
            "'input_ids'; "
            'name it with names={"ids": "…"}'
        )
    logits = roles.get("logits") or _likely_logits(list(outputs.values()))
    if logits is None:
        raise InvalidArgument(
            f"none of the outputs {list(outputs)} is known to give logits: a float tensor (batch, sequence, vocabulary), usually "
            '\'logits\'; name it with names={"logits": "…"}'
        )
    roles |= {"ids": ids, "logits": logits}
    used = {value.name for value in roles.values()}
    free = [value for value in inputs.values() if value.name not in used and value.name not in given]
    slots = _found_slots(free, [value for value in outputs.values() if value.name not in used], ids, caches or {})
    unknown = [value.name for value in free if value.name not in {slot.past for slot in slots}]
    if unknown:
        raise InvalidArgument(
            f"the purpose of the inputs {unknown} is not known: they fit neither a cache (past… with an output present…) nor "
            "any of "
            f"{sorted(ROLES)}; name them with `names` or `caches`, or give their values with `inputs`"
        )
    return Signature(roles, tuple(slots))


def _check_map(
    names: Mapping[str, str], caches: Mapping[str, str], inputs: Mapping[str, NodeArg], outputs: Mapping[str, NodeArg]
) -> None:
    for role, name in names.items():
        if role not in ROLES:
            close = nearest(role, ROLES)
            raise InvalidArgument(
                f"names has no key {role!r}; {f'did you mean {close!r}?' if close else f'they are {sorted(ROLES)}'}"
            )
        known = outputs if role == "logits" else inputs
        if name not in known:
            raise InvalidArgument(f"names[{role!r}]: the model has no {name!r}; it has {list(known)}")
    for past, present in caches.items():
        if past not in inputs or present not in outputs:
            raise InvalidArgument(
                f"caches: {past!r} → {present!r} is not an input and an output of the model; it has {list(inputs)} → "
                f"{list(outputs)}"
            )


def _found_roles(inputs: Mapping[str, NodeArg], outputs: Mapping[str, NodeArg], names: Mapping[str, str]) -> dict[str, NodeArg]:
    found: dict[str, NodeArg] = {}
    for role, spellings in ROLES.items():
        known = outputs if role == "logits" else inputs
        wanted = [names[role]] if role in names else [name for name in spellings if name not in names.values()]
        present = next((known[name] for name in wanted if name in known), None)
        if present is not None:
            found[role] = present
    return found


def _is_tokens(value: NodeArg) -> bool:
    return value.type in ("tensor(int64)", "tensor(int32)") and len(value.shape) == 2


def _likely_logits(outputs: Sequence[NodeArg]) -> NodeArg | None:
    """Return the one output of floats with three dimensions that is no cache."""
    likely = [
        value for value in outputs if len(value.shape) == 3 and "float" in value.type and not _SPELT_PRESENT.match(value.name)
    ]
    return likely[0] if len(likely) == 1 else None


def _found_slots(inputs: Sequence[NodeArg], outputs: Sequence[NodeArg], ids: NodeArg, caches: Mapping[str, str]) -> list[CacheSlot]:
    presents = {_key(_SPELT_PRESENT, value.name): value for value in outputs if _SPELT_PRESENT.match(value.name)}
    by_name = {value.name: value for value in outputs}
    slots: list[CacheSlot] = []
    for value in inputs:
        if value.name in caches:
            key, present = value.name, by_name.get(caches[value.name])
        elif _SPELT_PAST.match(value.name):
            key = _key(_SPELT_PAST, value.name)
            present = presents.pop(key, None)
        else:
            continue
        if present is not None or _OF_ENCODER.search(key):
            slots.append(_slot(key, value, present, ids))
    if not any(slot.past for slot in slots):
        slots += [_slot(key, None, present, ids) for key, present in presents.items() if len(present.shape) in _USUAL_AXES]
    return slots


def _key(spelling: re.Pattern[str], name: str) -> str:
    return spelling.sub("", name).strip("._")


def _slot(key: str, past: NodeArg | None, present: NodeArg | None, ids: NodeArg) -> CacheSlot:
    known = past or present
    assert known is not None
    shape = known.shape
    if len(shape) not in _USUAL_AXES:
        raise InvalidArgument(f"the cache {known.name!r} has the shape {shape}; known are caches of 3, 4 and 5 dimensions")
    batch, length = _axes(shape, None if present is None else present.shape, ids.shape[0] if ids.shape else None)
    other = shape if present is None or len(present.shape) != len(shape) else present.shape
    sizes = tuple(
        None if axis in (batch, length) else size if isinstance(size, int) else more if isinstance(more, int) else None
        for axis, (size, more) in enumerate(zip(shape, other, strict=True))
    )
    dtype = DataType.parse(known.type.removeprefix("tensor(").removesuffix(")"))
    return CacheSlot(
        key,
        "" if past is None else past.name,
        "" if present is None else present.name,
        dtype,
        sizes,
        batch,
        length,
        bool(_OF_ENCODER.search(key)),
    )


def _axes(past: Sequence[int | str | None], present: Sequence[int | str | None] | None, batch: int | str | None) -> tuple[int, int]:
    """Return which axes are the batch and the length."""
    usual_batch, usual_length = _USUAL_AXES[len(past)]
    named = [axis for axis, size in enumerate(past) if isinstance(size, str) and size == batch]
    first = named[0] if len(named) == 1 else usual_batch
    dynamic = [axis for axis, size in enumerate(past) if axis != first and not isinstance(size, int)]
    if len(dynamic) == 1:
        return first, dynamic[0]
    if present is not None and len(present) == len(past):
        changed = [axis for axis in dynamic if past[axis] != present[axis]]
        if len(changed) == 1:
            return first, changed[0]
    return first, usual_length
