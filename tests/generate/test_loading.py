"""Tests of how generators are made."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.decoders import write_decoder, write_folder

from sardonyx.errors import InvalidArgument, NoSuchFile, NotFound
from sardonyx.generate.loading import load
from sardonyx.session.inference_session import InferenceSession


def test_a_file_and_a_session_make_the_same_tokens(tmp_path: Path) -> None:
    """What is known of the file only makes it faster."""
    path = write_decoder(tmp_path / "model.onnx", "shared")
    one, other = load(path), load(InferenceSession(path))
    assert (one.decoder.shares_caches, other.decoder.shares_caches) == (True, False)
    assert one.generate([1, 2], max_new_tokens=8) == other.generate([1, 2], max_new_tokens=8)


def test_a_folder_brings_text_and_settings(tmp_path: Path) -> None:
    """Prompts are text, and rows end as the configuration says."""
    pytest.importorskip("tokenizers")
    model = load(write_folder(tmp_path / "model", max_new_tokens=3))
    (found,) = model.generate("Hello")
    assert (len(found.ids), found.prompt_tokens, model.decoder.longest) == (3, 5, 64)
    assert found.text is not None


def test_conversations_are_answered(tmp_path: Path) -> None:
    """By the folder's template."""
    pytest.importorskip("tokenizers")
    pytest.importorskip("jinja2")
    model = load(write_folder(tmp_path / "model"))
    assert model.chat_prompt([{"role": "user", "content": "A"}]) == [256, *b"user: A\n> "]
    assert len(model.chat([{"role": "user", "content": "A"}], max_new_tokens=3).ids) <= 3


def test_tokens_need_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `tokenizers`, a folder continues tokens; a text is an error that names the package."""
    for package in ("tokenizers", "jinja2"):
        monkeypatch.setitem(sys.modules, package, None)
    model = load(write_folder(tmp_path / "model"))
    assert model.generate([1, 2], max_new_tokens=2)[0].text is None
    with pytest.raises(NotFound, match=r"pip install .sardonyx\[generate\]"):
        model.generate("text")
    with pytest.raises(NotFound, match="tokenizers"):
        model.chat([{"role": "user", "content": "A"}])


def test_a_tokenizer_of_another_model_is_an_error(tmp_path: Path) -> None:
    """It has tokens that the model gives no logit for."""
    pytest.importorskip("tokenizers")
    folder = write_folder(tmp_path / "model")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] |= {f"word{place}": 300 + place for place in range(50)}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(InvalidArgument, match="gives 260 logits"):
        load(folder)


def test_a_model_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """It names the path."""
    with pytest.raises(NoSuchFile, match="nothing"):
        load(tmp_path / "nothing")


@pytest.mark.parametrize("model", [None, 5, b"model.onnx"])
def test_what_is_no_path_and_no_session_is_refused(model: object) -> None:
    """By a typed error."""
    with pytest.raises(InvalidArgument, match="a folder, an ONNX file or an InferenceSession"):
        load(model)  # type: ignore[arg-type]  # what the test is about
