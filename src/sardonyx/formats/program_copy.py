"""Compiled partitions taken out of memory that others may change while it is read, such as a mapped file.

    given     objects | arrays | header | digest …      of whoever can write the file
    taken     a copy of header, objects and arrays      private; digested and then used, so nothing changes in between
              weights                                   views of what was given, or copies

Weights that stay where they were, in a mapped file, can be changed by whoever can write the file, whenever he likes: that changes
numbers, but no address, size or instruction, since only arrays that decide none are weights (`program_file`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.digests import sha256
from sardonyx.dtypes import Array
from sardonyx.errors import EPFail
from sardonyx.formats.page_sums import code_of_sums
from sardonyx.formats.program_file import (
    Blocks,
    Json,
    aligned,
    array_at,
    bytes_of,
    damaged,
    digest_of,
    head_of,
    is_program,
    open_program,
    sample_of,
)
from sardonyx.ir import Tensor, Value

__all__ = ["Compared", "TakenProgram", "take_program"]

_WEIGHT_FIELDS = 7
_FEW_BYTES = 1 << 20
"""Weights of a program that take no time worth speaking of to copy and to compare."""


class Compared(enum.Enum):
    """What of weights is compared with what was written; few weights are compared, and copied, as ALL says."""

    SAMPLES = enum.auto()
    """8 KiB of each, in four parts: of a mapped file, which is not to be read as a whole."""
    SUMS = enum.auto()
    """Sums of all elements."""
    ALL = enum.auto()
    """A SHA-256 of all elements, which are copied before."""


@dataclasses.dataclass(frozen=True, slots=True)
class TakenProgram:
    """A compiled partition that nobody else can change."""

    content: memoryview
    """The program, in which `weights` are named."""
    digest: bytes
    """The digest of what was given, which was compared with what was taken."""
    weights: tuple[Value, ...]
    """Constants by the names that they have in `content`."""
    elsewhere: tuple[str, ...]
    """The names of weights that lie in the model that was compiled."""


def take_program(content: memoryview, compared: Compared = Compared.SUMS, pages: Array | None = None) -> TakenProgram:
    """Return a private copy of a compiled partition; of bytes of another kind all are copied.

    Args:
        content: the bytes, which others may be changing.
        compared: what of weights is compared.
        pages: the sums of its pages, as far as they are known.

    Raises:
        EPFail: the program is damaged.
    """
    if not is_program(content):
        copy = memoryview(bytes(content))
        return TakenProgram(copy, digest_of(copy), (), ())
    header, sealed, digest = open_program(content, copies=True)
    parts, blocks = iter(sealed), Blocks()
    header["objects"] = {name: blocks.add(next(parts)) for name in header["objects"]}
    elsewhere = tuple(entry[2] for entry in header["arrays"] if len(entry) == 4 and isinstance(entry[2], str))
    weights, prefix = [], _unused_prefix(elsewhere)
    if _are_few([entry[3] for entry in header["arrays"] if len(entry) == _WEIGHT_FIELDS]):
        compared = Compared.ALL
    for index, entry in enumerate(header["arrays"]):
        if len(entry) == 4 and not isinstance(entry[2], str):
            entry[2:] = blocks.add(next(parts))
        elif len(entry) == _WEIGHT_FIELDS:
            array = _weight(content, compared, pages, index, *entry)
            weights.append(Value(f"{prefix}{index}", constant=Tensor.from_array(array)))
            entry[2:] = [weights[-1].name, None]
    taken = b"".join((*blocks.contents, head_of(header, sealed)))
    return TakenProgram(memoryview(taken), digest, tuple(weights), elsewhere)


def _are_few(sizes: list[Json]) -> bool:
    """Return whether weights of these sizes, as a header has them, are compared whole."""
    return all(isinstance(size, int) for size in sizes) and sum(sizes) <= _FEW_BYTES


def _weight(
    content: memoryview,
    compared: Compared,
    pages: Array | None,
    index: int,
    kind: str,
    shape: list[int],
    begin: int,
    size: int,
    *codes: str,
) -> Array:
    try:
        found = array_at(content, kind, shape, begin, size)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(error) from error
    found = aligned(found) if compared is Compared.ALL else found
    held = bytes_of(found)
    if compared is Compared.ALL:
        is_same = sha256(held).hexdigest() == codes[0]
    elif compared is Compared.SUMS:
        is_same = code_of_sums(held, begin, pages) == codes[1]
    else:
        is_same = sample_of(held) == codes[2]
    if not is_same:
        raise EPFail(
            f"a compiled partition has other elements in its weight {index}, {kind}{shape}, than it was written with: the file is "
            "damaged or was changed; restore it, or make the context anew"
        )
    return found


def _unused_prefix(names: Iterable[str]) -> str:
    """Return what none of the names begins with."""
    return "#" * (1 + max((len(name) - len(name.lstrip("#")) for name in names), default=0))
