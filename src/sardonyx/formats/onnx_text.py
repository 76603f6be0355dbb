"""Texts of ONNX messages, which protobuf gives as bytes where they are no UTF-8."""

from __future__ import annotations

from collections.abc import Iterable

from sardonyx.errors import InvalidProtobuf
from sardonyx.formats.protos import Message

__all__ = ["check_texts", "text_of"]


def text_of(field: Message) -> str:
    """Return the text in a string field.

    Raises InvalidProtobuf where it is no UTF-8.
    """
    if isinstance(field, str):
        return field
    raise InvalidProtobuf(
        f"a name or text is no UTF-8: {bytes(field)[:40]!r}; the file is damaged, or was written with another encoding"
    )


def check_texts(fields: Iterable[Message]) -> None:
    """Raise InvalidProtobuf where any of `fields` is no text; far faster than `text_of` for each."""
    texts = list(fields)
    try:
        "".join(texts)
    except TypeError:
        for text in texts:
            text_of(text)
