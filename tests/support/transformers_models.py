"""Models of the package transformers with random weights, and the ONNX folders that they are exported to."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

LAYERS, HEADS, SIZE, WIDTH, VOCABULARY = 2, 4, 16, 64, 300
BEGIN, END = 1, 2


def make(name: str) -> Any:
    """Return a model: gpt2, llama, t5 or whisper; its classes have no types, hence Any."""
    torch.manual_seed(0)
    common = {
        "vocab_size": VOCABULARY,
        "bos_token_id": BEGIN,
        "eos_token_id": END,
        "pad_token_id": 0,
        "attn_implementation": "eager",
    }
    if name == "gpt2":
        shape = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "n_positions": 128, "initializer_range": 0.4}
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape, **common)).eval()
    if name == "llama":
        shape = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": 2, "hidden_size": WIDTH}
        more = {"intermediate_size": 128, "max_position_embeddings": 128, "initializer_range": 0.3}
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape, **more, **common)).eval()
    if name == "t5":
        shape = {
            "num_layers": LAYERS,
            "num_decoder_layers": LAYERS,
            "d_model": WIDTH,
            "d_kv": SIZE,
            "d_ff": 128,
            "num_heads": HEADS,
        }
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(**shape, decoder_start_token_id=0, **common)).eval()
        with torch.no_grad():
            for weight in model.parameters():
                weight.copy_(torch.randn_like(weight) * (0.3 if weight.dim() > 1 else 0.1) + (1 if weight.dim() == 1 else 0))
        return model
    shape = {"encoder_layers": LAYERS, "decoder_layers": LAYERS, "d_model": WIDTH, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    heads = {"encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "num_mel_bins": 16, "init_std": 0.3}
    ranges = {"max_source_positions": 30, "max_target_positions": 80, "decoder_start_token_id": 3}
    suppressed: dict[str, Any] = {"suppress_tokens": None, "begin_suppress_tokens": [5, 2]}
    model = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(**shape, **heads, **ranges, **suppressed, **common)
    ).eval()
    model.generation_config.begin_suppress_tokens = [5, 2]
    return model


def export(name: str, model: Any, folder: Path) -> Path:
    """Write a model's graphs and configurations as Hugging Face's exporters do."""
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    if name in ("gpt2", "llama"):
        _export_decoder(model, folder / "model.onnx", 2 if name == "llama" else HEADS)
    else:
        _export_encoder_decoder(model, folder, has_mask=name == "t5")
    return folder


class _Decoder(torch.nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Any, mask: Any, positions: Any, *past: Any) -> tuple[Any, ...]:
        cache = DynamicCache()
        for layer in range(LAYERS):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        found = self.model(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
        return (found.logits, *(part for layer in found.past_key_values.layers for part in (layer.keys, layer.values)))


class _Encoder(torch.nn.Module):
    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, given: Any, mask: Any = None) -> Any:
        found = self.encoder(given) if mask is None else self.encoder(given, attention_mask=mask)
        return found.last_hidden_state


class _CrossDecoder(torch.nn.Module):
    def __init__(self, model: Any, *, is_first: bool, has_mask: bool) -> None:
        super().__init__()
        self.model, self.is_first, self.has_mask = model, is_first, has_mask

    def forward(self, ids: Any, *given: Any) -> tuple[Any, ...]:
        rest = list(given)
        masked = {"attention_mask": rest.pop(0)} if self.has_mask else {}
        states, cache = rest.pop(0), EncoderDecoderCache(DynamicCache(), DynamicCache())
        for layer in range(0 if self.is_first else LAYERS):
            own, cross = rest[4 * layer : 4 * layer + 2], rest[4 * layer + 2 : 4 * layer + 4]
            cache.self_attention_cache.update(*own, layer)
            cache.cross_attention_cache.update(*cross, layer)
            cache.is_updated[layer] = True
        encoded = BaseModelOutput(last_hidden_state=states)
        found = self.model(encoder_outputs=encoded, decoder_input_ids=ids, past_key_values=cache, use_cache=True, **masked)
        caches = [found.past_key_values.self_attention_cache, found.past_key_values.cross_attention_cache]
        kept = caches if self.is_first else caches[:1]
        return (
            found.logits,
            *(part for layer in range(LAYERS) for held in kept for part in (held.layers[layer].keys, held.layers[layer].values)),
        )


def _write(
    module: Any, arguments: list[Any], path: Path, names: dict[str, dict[int, str]], outputs: dict[str, dict[int, str]]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about what it traces
        torch.onnx.export(
            module.eval(),
            tuple(arguments),
            str(path),
            input_names=list(names),
            output_names=list(outputs),
            dynamic_axes=names | outputs,
            opset_version=17,
            dynamo=False,
        )


def _export_decoder(model: Any, path: Path, heads: int) -> None:
    rows, tokens, past = 2, 3, 4
    pairs = [f"{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value")]
    names = {
        "input_ids": {0: "batch", 1: "sequence"},
        "attention_mask": {0: "batch", 1: "total"},
        "position_ids": {0: "batch", 1: "sequence"},
        **{f"past_key_values.{pair}": {0: "batch", 2: "past"} for pair in pairs},
    }
    outputs = {"logits": {0: "batch", 1: "sequence"}, **{f"present.{pair}": {0: "batch", 2: "total"} for pair in pairs}}
    ids, mask = torch.ones(rows, tokens, dtype=torch.long), torch.ones(rows, past + tokens, dtype=torch.long)
    positions = torch.arange(past, past + tokens)[None].repeat(rows, 1)
    _write(_Decoder(model), [ids, mask, positions, *(torch.randn(rows, heads, past, SIZE) for _ in pairs)], path, names, outputs)


def _export_encoder_decoder(model: Any, folder: Path, *, has_mask: bool) -> None:
    rows, source, past = 2, 7, 4
    states = {"last_hidden_state": {0: "batch", 1: "source"}}
    mask = torch.ones(rows, source, dtype=torch.long)
    if has_mask:
        tokens = {"input_ids": {0: "batch", 1: "source"}, "attention_mask": {0: "batch", 1: "source"}}
        _write(_Encoder(model.encoder), [mask, mask], folder / "encoder_model.onnx", tokens, states)
    else:
        features = {"input_features": {0: "batch"}}
        _write(
            _Encoder(model.model.encoder),
            [torch.randn(rows, 16, 60)],
            folder / "encoder_model.onnx",
            features,
            {"last_hidden_state": {0: "batch"}},
        )
    for is_first in (True, False):
        names: dict[str, dict[int, str]] = {"input_ids": {0: "batch", 1: "sequence"}}
        arguments = [torch.ones(rows, 3 if is_first else 1, dtype=torch.long)]
        if has_mask:
            names["encoder_attention_mask"] = {0: "batch", 1: "source"}
            arguments.append(mask)
        names["encoder_hidden_states"] = {0: "batch", 1: "source"}
        arguments.append(torch.randn(rows, source, WIDTH))
        outputs = {"logits": {0: "batch", 1: "sequence"}}
        for layer in range(LAYERS):
            for kind, length in (("decoder", "past"), ("encoder", "source")):
                for part in ("key", "value"):
                    if not is_first:
                        names[f"past_key_values.{layer}.{kind}.{part}"] = {0: "batch", 2: length}
                        arguments.append(torch.randn(rows, HEADS, past if kind == "decoder" else source, SIZE))
                    if is_first or kind == "decoder":
                        outputs[f"present.{layer}.{kind}.{part}"] = {0: "batch", 2: "total" if kind == "decoder" else "source"}
        file = folder / f"{'decoder_model' if is_first else 'decoder_with_past_model'}.onnx"
        _write(_CrossDecoder(model, is_first=is_first, has_mask=has_mask), arguments, file, names, outputs)
