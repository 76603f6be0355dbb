"""Nodes of onnxruntime-extensions with small vocabularies, images and sounds made here: one or more for every operator that can be fed."""

from __future__ import annotations

import dataclasses
import io
import json
import struct
import wave
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType

__all__ = ["CASES", "IMAGES", "ExtensionCase"]

IMAGES = "com.microsoft.extensions"
F, N, S, B, U8, I32 = DataType.FLOAT, DataType.INT64, DataType.STRING, DataType.BOOL, DataType.UINT8, DataType.INT32


@dataclasses.dataclass(frozen=True, slots=True)
class ExtensionCase:
    """One node to run in both runtimes."""

    op_type: str
    """The operator."""
    inputs: tuple[Any, ...]
    """Its inputs; None for one left out."""
    outputs: tuple[DataType, ...]
    """The types of its outputs."""
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Its attributes."""
    domain: str = "ai.onnx.contrib"
    """Its domain."""


def _texts(*items: Any) -> Array:
    return np.array(items, dtype=object)


def _ints(*items: Any) -> Array:
    return np.array(items, dtype=np.int64)


def _floats(*items: Any) -> Array:
    return np.array(items, dtype=np.float32)


def _byte_tokens() -> list[str]:
    """The characters that stand for bytes in GPT-2's vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [code for code in range(256) if code not in plain]
    names = {code: chr(code) for code in plain} | {code: chr(256 + index) for index, code in enumerate(others)}
    return [names[code] for code in range(256)]


_BYTES = _byte_tokens()
_MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld"]
_GPT2 = [*_BYTES, *(merge.replace(" ", "") for merge in _MERGES), "<|endoftext|>"]
_GPT2_VOCABULARY = json.dumps({token: index for index, token in enumerate(dict.fromkeys(_GPT2))})
_MERGES_TEXT = "#version: 0.2\n" + "\n".join(_MERGES)
_CLIP_MERGES = ["h e", "l l", "he ll", "hell o</w>", "w or", "o r", "l d</w>", "wor ld</w>"]
_CLIP = [*_BYTES, *(f"{token}</w>" for token in _BYTES), *(merge.replace(" ", "") for merge in _CLIP_MERGES)]
_CLIP_VOCABULARY = json.dumps(
    {token: index for index, token in enumerate(dict.fromkeys([*_CLIP, "<|startoftext|>", "<|endoftext|>"]))}
)
_ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", *_GPT2[:-1], "<mask>"]
_ROBERTA_VOCABULARY = json.dumps({token: index for index, token in enumerate(dict.fromkeys(_ROBERTA))})
_WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "want",
    "##want",
    "##ed",
    "wa",
    "un",
    "runn",
    "##ing",
    ",",
    "low",
    "##est",
    "hello",
    "world",
]
_WORD_LINES = "\n".join(_WORDS)
_WORD_JSON = json.dumps({word: index for index, word in enumerate(_WORDS)})
_TRIE = "\n".join(f"{index} '{word}' {len(word)}" for index, word in enumerate(["a", "b", "ab", "abc", " ", "c"], 1))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def _sentencepiece_model() -> bytes:
    """A unigram model of a few pieces, as a ModelProto of SentencePiece."""
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("▁hello", -1.0, 1), ("▁world", -1.5, 1), ("▁", -3.0, 1)]
    pieces += [(letter, -4.0 - index / 10, 1) for index, letter in enumerate("helowrd!")]
    made = b"".join(
        _field(1, _field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([3 << 3, kind]))
        for text, score, kind in pieces
    )
    return made + _field(2, bytes([3 << 3, 1])) + _field(3, _field(1, b"identity"))


_PIECES = _sentencepiece_model()


def _wave() -> Array:
    """A second of a tone: 16 bits, 8000 samples per second."""
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((np.sin(np.arange(800) / 5) * 20000).astype("<i2").tobytes())
    return np.frombuffer(sound.getvalue(), np.uint8)


def _image() -> Array:
    return (np.arange(12 * 10 * 3) * 7 % 256).astype(np.uint8).reshape(12, 10, 3)


def _encoded(kind: str) -> Array:
    """An image in a file's form; without Pillow the bytes of no image, which both runtimes refuse alike."""
    try:
        from PIL import Image
    except ImportError:
        return np.zeros(16, np.uint8)
    out = io.BytesIO()
    Image.fromarray(_image()).save(out, kind)
    return np.frombuffer(out.getvalue(), np.uint8)


_X = _floats([1, -2, 3], [-4, 5, -6])
_SIGNAL = np.sin(np.arange(400, dtype=np.float32) / 7)[None]
_BPE = {"vocab": _GPT2_VOCABULARY, "merges": _MERGES_TEXT, "padding_length": -1}
_BERT = {"vocab_file": _WORD_LINES}
_SENTENCE = (_ints(0), _floats(0), np.array([False]), np.array([False]), np.array([False]))
_DECODER = {
    "id_vocab": "\n".join(dict.fromkeys(_GPT2)),
    "byte_decoder": "\n".join(f"{ord(token)}\t{code}" for code, token in enumerate(_BYTES)),
    "added_tokens": "",
    "all_special_ids": "",
    "skip_special_tokens": 0,
    "en_normalization": 0,
}

CASES: dict[str, ExtensionCase] = {
    "NegPos": ExtensionCase("NegPos", (_X,), (F, F)),
    "NegPos of nothing": ExtensionCase("NegPos", (np.zeros((0, 2), np.float32),), (F, F)),
    "Inverse": ExtensionCase("Inverse", (_floats([2, 1], [1, 3]),), (F,)),
    "SegmentSum": ExtensionCase("SegmentSum", (_X, _ints(0, 0)), (F,)),
    "SegmentSum of two": ExtensionCase("SegmentSum", (_X, _ints(0, 1)), (F,)),
    "SegmentExtraction": ExtensionCase("SegmentExtraction", (_ints(0, 0, 2, 2, 3, 0),), (N, N)),
    "StringLower": ExtensionCase("StringLower", (_texts("AbC", "É", ""),), (S,)),
    "StringUpper": ExtensionCase("StringUpper", (_texts("AbC", "é", ""),), (S,)),
    "StringUpper of nothing": ExtensionCase("StringUpper", (_texts(),), (S,)),
    "StringStrip": ExtensionCase("StringStrip", (_texts("  a b ", "\tc\n"),), (S,)),
    "StringLength": ExtensionCase("StringLength", (_texts("abc", "", "é"),), (N,)),
    "StringConcat": ExtensionCase("StringConcat", (_texts("a", "b"), _texts("c", "d")), (S,)),
    "StringEqual": ExtensionCase("StringEqual", (_texts("a", "b"), _texts("a", "c")), (B,)),
    "StringJoin": ExtensionCase("StringJoin", (_texts(["a", "b"], ["c", "d"]), _texts(";"), _ints(1)), (S,)),
    "StringJoin of columns": ExtensionCase("StringJoin", (_texts(["a", "b"], ["c", "d"]), _texts("-"), _ints(0)), (S,)),
    "StringSplit": ExtensionCase("StringSplit", (_texts("a,b", "c", ",d"), _texts(","), np.array([True])), (N, S, N)),
    "StringSplit with empty parts": ExtensionCase("StringSplit", (_texts("a,,b"), _texts(","), np.array([False])), (N, S, N)),
    "StringToHashBucket": ExtensionCase("StringToHashBucket", (_texts("a", "bc", ""), _ints(100)), (N,)),
    "StringToHashBucketFast": ExtensionCase("StringToHashBucketFast", (_texts("a", "bc", ""), _ints(100)), (N,)),
    "StringRegexReplace": ExtensionCase(
        "StringRegexReplace", (_texts("def f(): pass"), _texts(r"(\w+)\("), _texts(r"<\1>(")), (S,)
    ),
    "StringRegexReplace once": ExtensionCase(
        "StringRegexReplace", (_texts("aaa", "baa"), _texts("a"), _texts("x")), (S,), {"global_replace": 0}
    ),
    "StringECMARegexReplace": ExtensionCase("StringECMARegexReplace", (_texts("a1b22"), _texts(r"(\d+)"), _texts("<$1>")), (S,)),
    "StringECMARegexReplace of any case": ExtensionCase(
        "StringECMARegexReplace", (_texts("aAbB"), _texts("a"), _texts("x")), (S,), {"ignore_case": 1}
    ),
    "StringRegexSplitWithOffsets": ExtensionCase(
        "StringRegexSplitWithOffsets", (_texts("hello there", "x"), _texts(r"(\s)"), _texts(r"(\s)")), (S, N, N, N)
    ),
    "StringECMARegexSplitWithOffsets": ExtensionCase(
        "StringECMARegexSplitWithOffsets", (_texts("hello there"), _texts(r"(\s)"), _texts("")), (S, N, N, N)
    ),
    "StringMapping": ExtensionCase("StringMapping", (_texts("a", "b", "z"),), (S,), {"map": "a\tone\nb\ttwo"}),
    "StringToVector": ExtensionCase("StringToVector", (_texts("a", "z"),), (N,), {"map": "a\t1\nb\t3", "unk": "-1"}),
    "VectorToString": ExtensionCase("VectorToString", (_ints(1, 2, 9),), (S,), {"map": "a\t1\nb\t2", "unk": "?"}),
    "MaskedFill": ExtensionCase("MaskedFill", (_texts("a", "b", "c"), np.array([True, False, True])), (S,)),
    "RaggedTensorToSparse": ExtensionCase("RaggedTensorToSparse", (_ints(0, 2, 2, 3),), (N, N)),
    "RaggedTensorToDense": ExtensionCase(
        "RaggedTensorToDense", (_ints(0), _ints(1, 2, 3), _ints(-1), _ints(0, 2, 2, 3)), (N,), {"missing_value": -1}
    ),
    "StringRaggedTensorToDense": ExtensionCase(
        "StringRaggedTensorToDense", (_ints(0), _texts("a", "b", "c"), _ints(-1), _texts("#")), (S,)
    ),
    "StftNorm": ExtensionCase(
        "StftNorm",
        (_SIGNAL, np.array(100, np.int64), np.array(50, np.int64), np.hanning(100).astype(np.float32), np.array(100, np.int64)),
        (F,),
    ),
    "SplitSignalSegments": ExtensionCase(
        "SplitSignalSegments",
        (_SIGNAL, np.array([[8000]], np.int64), np.array([[10]], np.int64), np.array([[5]], np.int64), _floats([-20])),
        (N,),
    ),
    "MergeSignalSegments": ExtensionCase("MergeSignalSegments", (_ints([0, 100], [150, 300], [900, 950]), _ints([100])), (N,)),
    "GPT2Tokenizer": ExtensionCase("GPT2Tokenizer", (_texts("hello world", "low"),), (N, N), _BPE),
    "GPT2Tokenizer padded": ExtensionCase("GPT2Tokenizer", (_texts("hello world", "low"),), (N, N), _BPE | {"padding_length": 6}),
    "GPT2Tokenizer with offsets": ExtensionCase("GPT2Tokenizer", (_texts("hello world"),), (N, N, N), _BPE),
    "GPT2Tokenizer of the other domain": ExtensionCase("GPT2Tokenizer", (_texts("hello é"),), (N, N), _BPE, IMAGES),
    "CLIPTokenizer": ExtensionCase(
        "CLIPTokenizer",
        (_texts("Hello world"),),
        (N, N),
        _BPE | {"vocab": _CLIP_VOCABULARY, "merges": "#\n" + "\n".join(_CLIP_MERGES)},
    ),
    "RobertaTokenizer": ExtensionCase("RobertaTokenizer", (_texts("hello world"),), (N, N), _BPE | {"vocab": _ROBERTA_VOCABULARY}),
    "SpmTokenizer": ExtensionCase(
        "SpmTokenizer",
        (_texts("hello"),),
        (N, N),
        {
            "vocab": json.dumps({t: i for i, t in enumerate(["<unk>", "<s>", "</s>", "▁", "h", "e", "l", "o", "he", "ll"])}),
            "merges": "#\nh e\nl l",
        },
    ),
    "BpeDecoder": ExtensionCase("BpeDecoder", (_ints(259, 264),), (S,), _DECODER),
    "BpeDecoder of bytes": ExtensionCase("BpeDecoder", (_ints(104, 101, 33),), (S,), _DECODER),
    "WordpieceTokenizer": ExtensionCase(
        "WordpieceTokenizer",
        (_texts("unwanted running", "lowest"), _ints(0, 1, 2)),
        (S, N, N, N),
        {"vocab": _WORD_JSON, "suffix_indicator": "##", "unknown_token": "[UNK]"},
    ),
    "BasicTokenizer": ExtensionCase("BasicTokenizer", (_texts("Hello, World!"),), (S,)),
    "BertTokenizer": ExtensionCase("BertTokenizer", (_texts("hello, wanted"),), (N, N, N), _BERT),
    "BertTokenizer of two texts": ExtensionCase("BertTokenizer", (_texts("hello", "lowest world"),), (N, N, N), _BERT),
    "BertTokenizer of unknown words": ExtensionCase("BertTokenizer", (_texts("xyz hello"),), (N, N, N), _BERT),
    "HfBertTokenizer": ExtensionCase("HfBertTokenizer", (_texts("hello", "lowest world"),), (N, N, N), _BERT),
    "BertTokenizerDecoder": ExtensionCase("BertTokenizerDecoder", (_ints(15, 16), _ints([0, 2])), (S,), _BERT | {"use_indices": 0}),
    "TrieTokenizer": ExtensionCase("TrieTokenizer", (_texts("abc ab"),), (N,), {"vocab": _TRIE}),
    "TrieDetokenizer": ExtensionCase("TrieDetokenizer", (_ints([4, 5, 3]),), (S,), {"vocab": _TRIE}),
    "SentencepieceTokenizer": ExtensionCase(
        "SentencepieceTokenizer", (_texts("hello world"), *_SENTENCE), (I32, N), {"model": _PIECES}
    ),
    "SentencepieceTokenizer of letters": ExtensionCase(
        "SentencepieceTokenizer", (_texts("held", "!"), *_SENTENCE), (I32, N), {"model": _PIECES}
    ),
    "SentencepieceDecoder": ExtensionCase("SentencepieceDecoder", (_ints(3, 4),), (S,), {"model": _PIECES}),
    "AudioDecoder": ExtensionCase("AudioDecoder", (_wave(), _texts("wav")), (F,)),
    "AudioDecoder at another rate": ExtensionCase("AudioDecoder", (_wave(), _texts("wav")), (F,), {"downsampling_rate": 4000}),
    "AudioDecoder without format": ExtensionCase("AudioDecoder", (_wave(),), (F,)),
    "DecodeImage of PNG": ExtensionCase("DecodeImage", (_encoded("png"),), (U8,), {}, IMAGES),
    "DecodeImage of JPEG": ExtensionCase("DecodeImage", (_encoded("jpeg"),), (U8,), {}, IMAGES),
    "DecodeImage in RGB": ExtensionCase("DecodeImage", (_encoded("png"),), (U8,), {"color_space": "rgb"}, IMAGES),
    "EncodeImage to PNG": ExtensionCase("EncodeImage", (_image(),), (U8,), {"format": "png"}, IMAGES),
    "EncodeImage to JPEG": ExtensionCase("EncodeImage", (_image(),), (U8,), {"format": "jpg"}, IMAGES),
    "DrawBoundingBoxes": ExtensionCase(
        "DrawBoundingBoxes",
        (_image(), _floats([2, 2, 8, 9, 0.9, 1])),
        (U8,),
        {"thickness": 1, "num_classes": 2, "mode": "XYXY", "colour_by_classes": 1},
        IMAGES,
    ),
}
