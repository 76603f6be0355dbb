"""Folders of models: what Hugging Face's exporters write, and onnxruntime-genai's with `genai_config.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.generate.settings import Settings, settings_of

__all__ = ["ModelFolder", "read_folder"]

_DECODERS = ("decoder_model_merged", "decoder_with_past_model", "model", "decoder_model")
"""Files of a decoder without their ending, the preferred ones first."""
_RANGES = ("max_position_embeddings", "n_positions", "n_ctx", "max_target_positions", "seq_length")
_UNLIMITED = ("t5", "mt5", "umt5", "longt5", "switch_transformers", "bloom", "mpt")
"""Kinds of models whose positions are relative, so that no length is out of range."""
_SETTINGS = tuple(
    field.name for field in dataclasses.fields(Settings) if field.name not in ("processors", "stop_words", "stop_sequences")
)
_GENAI_NAMES = {
    "input_ids": "ids",
    "attention_mask": "mask",
    "position_ids": "positions",
    "past_sequence_length": "past_length",
    "total_sequence_length": "longest",
    "encoder_hidden_states": "encoder_states",
    "encoder_attention_mask": "encoder_mask",
}
"""Names of inputs in genai_config.json -> keys of `signature.ROLES`."""


@dataclasses.dataclass(frozen=True, slots=True)
class ModelFolder:
    """The files of a model that generates text, and what its configuration says."""

    decoder: Path
    """The decoder that is run once per token."""
    first: Path | None = None
    """The decoder of the first run, where it is a file of its own."""
    encoder: Path | None = None
    """The encoder; None where there is none."""
    tokenizer: Path | None = None
    """tokenizer.json; None where there is none."""
    chat_template: str | None = None
    """The text of the template of conversations; None where there is none."""
    special_tokens: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Texts of tokens that templates name, such as bos_token."""
    settings: Settings = dataclasses.field(default_factory=Settings)
    """How the model's authors want it to generate."""
    longest: int | None = None
    """How many tokens the model reads at most; None where that is not known."""
    start_ids: tuple[int, ...] = ()
    """What a decoder with an encoder begins with."""
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Key of `signature.ROLES` -> name, as far as a configuration says it."""
    caches: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Input -> output of caches, as far as a configuration says it."""
    vocabulary: int | None = None
    """How many tokens the configuration counts; None where it does not."""


def read_folder(path: Path, variant: str = "") -> ModelFolder:
    """Read what a folder, or the folder of a model's file, says about a model.

    Args:
        path: a folder, or an ONNX file, beside which configurations are read where there are any.
        variant: which files of a folder: "fp16" for model_fp16.onnx, "" for model.onnx.

    Raises:
        NoSuchFile: there is no such path, or a file that it should have.
        InvalidArgument: a configuration is no JSON, or says what no model can be.
    """
    if not path.exists():
        raise NoSuchFile(f"there is no model {path}")
    folder = path if path.is_dir() else path.parent
    genai = _json(folder / "genai_config.json")
    if path.is_dir() and genai:
        return _genai_folder(folder, genai)
    files = _Files(folder, variant)
    root = folder.parent if folder.name == "onnx" and not (folder / "config.json").exists() else folder
    config, generation = _json(root / "config.json"), _json(root / "generation_config.json")
    encoder, first = files.find("encoder_model"), None
    if path.is_dir():
        decoder = next((found for name in _DECODERS if (found := files.find(name)) is not None), None) or files.only()
        if decoder.stem.startswith("decoder_with_past"):
            first = files.find("decoder_model")
            if first is None and encoder is not None:
                raise NoSuchFile(f"{folder} has {decoder.name} and no decoder_model.onnx, which reads the prompt; export it too")
    else:
        decoder, encoder = path, None
    starts = [source.get("decoder_start_token_id") for source in (generation, config)]
    start = next((token for token in starts if token is not None), None)
    return ModelFolder(
        decoder,
        first,
        encoder,
        **_texts(root),
        settings=_settings(config, generation),
        longest=_longest(config),
        start_ids=() if start is None else (_whole(start, "decoder_start_token_id"),),
        vocabulary=config.get("vocab_size"),
    )


class _Files:
    """The ONNX files of a folder and its subfolder onnx."""

    def __init__(self, folder: Path, variant: str) -> None:
        self._folder, self._suffix = folder, f"_{variant}" if variant else ""

    def _all(self) -> Iterator[Path]:
        for place in (self._folder, self._folder / "onnx"):
            yield from sorted(place.glob("*.onnx"))

    def find(self, name: str) -> Path | None:
        """Return the file of a name, without its ending; None where there is none."""
        return next((path for path in self._all() if path.stem == name + self._suffix), None)

    def only(self) -> Path:
        """Return the one file that there is."""
        found = [path for path in self._all() if path.stem.endswith(self._suffix) and "encoder" not in path.stem]
        if len(found) == 1:
            return found[0]
        wanted = [f"{name}{self._suffix}.onnx" for name in _DECODERS]
        there = [path.name for path in self._all()]
        raise NoSuchFile(
            f"{self._folder} has none of {wanted}; its ONNX files are {there}"
            + ("" if self._suffix or not there else "; choose with `variant`")
        )


def _genai_folder(folder: Path, config: Mapping[str, Any]) -> ModelFolder:
    """Read genai_config.json of onnxruntime-genai."""
    model, search = _part(config, "model"), config.get("search", {})
    decoder = _part(model, "decoder")
    inputs, outputs = decoder.get("inputs", {}), decoder.get("outputs", {})
    names = {role: inputs[name] for name, role in _GENAI_NAMES.items() if name in inputs}
    if "logits" in outputs:
        names["logits"] = outputs["logits"]
    caches: dict[str, str] = {}
    for past, present in (
        ("past_key_names", "present_key_names"),
        ("past_value_names", "present_value_names"),
        ("past_names", "present_names"),
    ):
        if past in inputs and present in outputs:
            layers = range(_whole(decoder.get("num_hidden_layers", 0), "num_hidden_layers"))
            caches |= {inputs[past].replace("%d", str(layer)): outputs[present].replace("%d", str(layer)) for layer in layers}
    file, encoder = folder / str(decoder.get("filename", "model.onnx")), model.get("encoder")
    paths = [file] if encoder is None else [file, folder / str(encoder.get("filename", "encoder.onnx"))]
    for path in paths:
        if not path.is_file():
            raise NoSuchFile(f"genai_config.json names {path.name}, and {folder} has no such file")
    start = model.get("decoder_start_token_id")
    return ModelFolder(
        file,
        None,
        None if encoder is None else paths[1],
        **_texts(folder),
        settings=_settings(model, search),
        longest=model.get("context_length"),
        start_ids=() if start is None else (_whole(start, "decoder_start_token_id"),),
        names=names,
        caches=caches,
        vocabulary=model.get("vocab_size"),
    )


def _part(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = config.get(name)
    if not isinstance(part, dict):
        raise InvalidArgument(f"genai_config.json has no object {name!r}; it has {sorted(config)}")
    return part


def _json(path: Path) -> dict[str, Any]:
    """Return a file's JSON object; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgument(f"{path} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidArgument(f"{path} has a {type(found).__name__} where an object is expected")
    return found


def _texts(folder: Path) -> dict[str, Any]:
    """Return what a folder has for texts, as fields of ModelFolder."""
    config, tokenizer, template = _json(folder / "tokenizer_config.json"), folder / "tokenizer.json", folder / "chat_template.jinja"
    chosen = template.read_text(encoding="utf-8") if template.is_file() else config.get("chat_template")
    if isinstance(chosen, list):
        named = {item.get("name"): item.get("template") for item in chosen if isinstance(item, dict)}
        chosen = named.get("default")
    tokens = {
        name: value["content"] if isinstance(value, dict) else value
        for name, value in config.items()
        if name.endswith("_token")
        and (isinstance(value, str) or (isinstance(value, dict) and isinstance(value.get("content"), str)))
    }
    return {
        "tokenizer": tokenizer if tokenizer.is_file() else None,
        "chat_template": chosen if isinstance(chosen, str) else None,
        "special_tokens": tokens,
    }


def _settings(config: Mapping[str, Any], generation: Mapping[str, Any]) -> Settings:
    """Return the settings that the files of a model name; tokens that end a row may stand in either file."""
    found = {name: generation[name] for name in _SETTINGS if generation.get(name) is not None}
    if "eos_token_id" not in found and config.get("eos_token_id") is not None:
        found["eos_token_id"] = config["eos_token_id"]
    if found.get("num_beams", 1) == 1 and not found.get("do_sample"):
        found.pop("num_return_sequences", None)
    return settings_of(Settings(), {"do_sample": False, **found})


def _longest(config: Mapping[str, Any]) -> int | None:
    if config.get("model_type") in _UNLIMITED:
        return None
    found: Sequence[Any] = [config[name] for name in _RANGES if isinstance(config.get(name), int)]
    return _whole(found[0], "max_position_embeddings") if found else None


def _whole(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidArgument(f"{name} is a whole number of at least 0, the configuration has {value!r}")
    return value
