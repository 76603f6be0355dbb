"""Tests of texts and tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.decoders import BEGIN, END, write_tokenizer

from sardonyx.errors import InvalidArgument
from sardonyx.generate.text import TextStream, Tokenizer

pytest.importorskip("tokenizers")


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    """Return a tokenizer whose tokens are bytes."""
    return Tokenizer(write_tokenizer(tmp_path / "tokenizer.json"))


def test_texts_become_tokens_and_back(tokenizer: Tokenizer) -> None:
    """Special tokens have no text."""
    assert tokenizer.encode("aé") == list("aé".encode())
    assert tokenizer.decode([BEGIN, *"aé".encode(), END]) == "aé"
    assert tokenizer.vocabulary == 258


def test_text_of_bytes_that_are_no_utf8_is_an_error(tokenizer: Tokenizer) -> None:
    """It says which character is none."""
    with pytest.raises(InvalidArgument, match="character 1 of the text"):
        tokenizer.encode(b"a\xff".decode(errors="surrogateescape"))


def test_characters_come_when_they_are_whole(tokenizer: Tokenizer) -> None:
    """The bytes of é are two tokens, of which the first gives nothing."""
    stream = TextStream(tokenizer)
    assert [stream.push(byte) for byte in "aé!".encode()] == ["a", "", "é", "!"]


def test_an_unfinished_character_comes_at_the_end(tokenizer: Tokenizer) -> None:
    """As the tokenizer writes it."""
    stream = TextStream(tokenizer)
    assert (stream.push("é".encode()[0]), stream.finish(), stream.text) == ("", "\ufffd", "\ufffd")


def test_a_stop_word_is_not_given_out(tokenizer: Tokenizer) -> None:
    """Not even its beginning; what follows it is dropped."""
    stream = TextStream(tokenizer, ["STOP"])
    assert "".join(stream.push(byte) for byte in b"a S STOP b") == "a S "
    assert (stream.is_stopped, stream.finish(), stream.text) == (True, "", "a S ")


def test_what_was_no_stop_word_is_given_out(tokenizer: Tokenizer) -> None:
    """As soon as that is certain, at the latest at the end."""
    stream = TextStream(tokenizer, ["STOP"])
    assert [stream.push(byte) for byte in b"STX"] == ["", "", "STX"]
    assert (stream.push(ord("S")), stream.finish()) == ("", "S")


def test_a_stream_goes_back_to_a_mark(tokenizer: Tokenizer) -> None:
    """In the middle of a character, and before a stop word."""
    stream = TextStream(tokenizer, ["é!"])
    stream.push("é".encode()[0])
    mark = stream.mark()
    first = [stream.push(byte) for byte in "é!".encode()[1:]]
    stream.go_back(mark)
    assert [stream.push(byte) for byte in "é!".encode()[1:]] == first
    assert (stream.is_stopped, stream.text) == (True, "")


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    """It names the file."""
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InvalidArgument, match=r"tokenizer\.json describes no tokenizer"):
        Tokenizer(tmp_path / "tokenizer.json")
