"""Hashes of text and numbers, and random bits."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.operator import Operator, imports

__all__ = ["lsh_projection", "random_bits", "skip_gram"]


@imports("LSH_PROJECTION")
def lsh_projection(op: Operator) -> None:
    """Compute the signs of sums of hashes, one for each seed."""
    kind = op.options("LSHProjectionOptions").choice("type", "UNKNOWN SPARSE DENSE")
    if kind == "UNKNOWN":
        op.refuse("its type is UNKNOWN; expected SPARSE or DENSE")
    if op.info(1).dtype is DataType.STRING:
        op.unsupported("text is not hashed; numbers are")
    weights = op.raw(2) if op.has(2) else None
    op.put_raw(0, op.own("LshProjection", op.raw(0), op.raw(1), weights, is_sparse=int(kind == "SPARSE")))


@imports("SKIP_GRAM")
def skip_gram(op: Operator) -> None:
    """List the groups of words of a text, between which some may be left out."""
    options = op.options("SkipGramOptions")
    sizes = {name: options.integer(name) for name in ("ngram_size", "max_skip_size")}
    op.put_raw(0, op.own("SkipGram", op.raw(0), include_all_ngrams=int(options.flag("include_all_ngrams")), **sizes))


@imports("STABLEHLO_RNG_BIT_GENERATOR")
def random_bits(op: Operator) -> None:
    """Draw bits by a counter and a key, and return the next state first."""
    options = op.options("StablehloRngBitGeneratorOptions", "builtin_options_2")
    algorithm, made = options.choice("algorithm", "DEFAULT PHILOX THREEFRY"), op.output(1)
    if -1 in made.signature or made.dtype not in (DataType.INT32, DataType.UINT32, DataType.INT64, DataType.UINT64):
        op.unsupported(f"bits of type {made.dtype} in the shape {list(made.signature)}; integers in a known shape are drawn")
    name = "THREEFRY" if algorithm == "THREEFRY" else "PHILOX"
    found = op.build.nodes(
        "RngBitGenerator",
        op.raw(0),
        outputs=2,
        domain="sardonyx.tflite",
        algorithm=name,
        shape=tuple(made.shape),
        to=int(made.dtype),
    )
    for index, value in enumerate(found):
        op.put_raw(index, value)
