"""Texts of ONNX messages."""

from __future__ import annotations

import onnx
import pytest

from sardonyx.errors import InvalidProtobuf
from sardonyx.formats.onnx_text import check_texts, text_of


def test_text_is_passed_on() -> None:
    """Valid UTF-8 comes as it is."""
    proto = onnx.NodeProto(name="größe")
    assert text_of(proto.name) == "größe"
    check_texts([proto.name, ""])


def test_bytes_that_are_no_text_are_refused() -> None:
    """The message shows how they begin."""
    proto = onnx.NodeProto.FromString(b"\x1a\x03a\xff\xfe")
    with pytest.raises(InvalidProtobuf, match=r"is no UTF-8: b'a\\xff\\xfe'"):
        text_of(proto.name)
    with pytest.raises(InvalidProtobuf, match="no UTF-8"):
        check_texts(["good", proto.name])
