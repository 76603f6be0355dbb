"""Tests of what folders of models say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.decoders import END, POSITIONS, write_decoder, write_folder

from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.generate.folders import read_folder


def test_a_folder_of_hugging_face_is_read(tmp_path: Path) -> None:
    """The model, its range, how it generates, its tokenizer and template."""
    folder = read_folder(write_folder(tmp_path / "model", temperature=0.5, do_sample=True, transformers_version="5"))
    assert (folder.decoder.name, folder.longest, folder.settings.temperature) == ("model.onnx", POSITIONS, 0.5)
    assert (folder.settings.eos_token_id, folder.special_tokens) == ((END,), {"bos_token": "<s>", "eos_token": "</s>"})
    assert folder.tokenizer is not None
    assert folder.chat_template is not None


def test_models_lie_in_a_subfolder(tmp_path: Path) -> None:
    """As exporters of the hub's models write them, with variants beside one another."""
    (tmp_path / "onnx").mkdir()
    for name in ("model", "model_fp16"):
        write_decoder(tmp_path / "onnx" / f"{name}.onnx")
    assert read_folder(tmp_path).decoder.name == "model.onnx"
    assert read_folder(tmp_path, "fp16").decoder.name == "model_fp16.onnx"


def test_encoder_and_decoders_are_found(tmp_path: Path) -> None:
    """A merged decoder comes before two of them."""
    for name in ("encoder_model", "decoder_model", "decoder_with_past_model"):
        (tmp_path / f"{name}.onnx").write_bytes(b"")
    (tmp_path / "config.json").write_text(json.dumps({"decoder_start_token_id": 0, "model_type": "t5", "n_positions": 9}))
    folder = read_folder(tmp_path)
    assert folder.first is not None
    assert folder.encoder is not None
    assert (folder.decoder.name, folder.first.name) == ("decoder_with_past_model.onnx", "decoder_model.onnx")
    assert (folder.start_ids, folder.longest) == ((0,), None)
    (tmp_path / "decoder_model_merged.onnx").write_bytes(b"")
    assert (read_folder(tmp_path).decoder.name, read_folder(tmp_path).first) == ("decoder_model_merged.onnx", None)


def test_a_configuration_of_onnxruntime_genai_is_read(tmp_path: Path) -> None:
    """Names of inputs, caches by layer, the range, tokens that end rows, and how it searches."""
    write_decoder(tmp_path / "decoder.onnx")
    decoder = {
        "filename": "decoder.onnx",
        "num_hidden_layers": 2,
        "inputs": {"input_ids": "tokens", "past_key_names": "pk.%d", "past_value_names": "pv.%d"},
        "outputs": {"logits": "scores", "present_key_names": "nk.%d", "present_value_names": "nv.%d"},
    }
    model = {"decoder": decoder, "context_length": 99, "eos_token_id": [1, 2], "vocab_size": 7}
    (tmp_path / "genai_config.json").write_text(
        json.dumps({"model": model, "search": {"top_k": 5, "do_sample": True, "max_length": 9}})
    )
    folder = read_folder(tmp_path)
    assert (folder.names, folder.longest, folder.vocabulary) == ({"ids": "tokens", "logits": "scores"}, 99, 7)
    assert folder.caches == {"pk.0": "nk.0", "pk.1": "nk.1", "pv.0": "nv.0", "pv.1": "nv.1"}
    assert (folder.settings.eos_token_id, folder.settings.top_k, folder.settings.draws) == ((1, 2), 5, True)


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        ({}, NoSuchFile, "has none of"),
        ({"a.onnx": "", "b.onnx": ""}, NoSuchFile, "choose with"),
        ({"model.onnx": "", "config.json": "{"}, InvalidArgument, "is no JSON"),
        ({"model.onnx": "", "config.json": "[]"}, InvalidArgument, "a list where an object"),
        ({"model.onnx": "", "config.json": '{"decoder_start_token_id": "x"}'}, InvalidArgument, "decoder_start_token_id"),
        ({"genai_config.json": '{"search": {}}'}, InvalidArgument, "no object 'model'"),
        ({"genai_config.json": '{"model": {"decoder": {}}}'}, NoSuchFile, r"names model\.onnx"),
        ({"encoder_model.onnx": "", "decoder_with_past_model.onnx": ""}, NoSuchFile, r"no decoder_model\.onnx"),
    ],
)
def test_what_a_folder_lacks_is_an_error(tmp_path: Path, files: dict[str, str], error: type[Exception], message: str) -> None:
    """It names the file, and what was expected."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(error, match=message):
        read_folder(tmp_path)


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """It names the path."""
    with pytest.raises(NoSuchFile, match="there is no model"):
        read_folder(tmp_path / "nothing")
