"""GatherBlockQuantized: the reference provider's numbers, bit for bit, and what is left to it."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, declined, reference

from sardonyx.errors import InvalidArgument

_INDICES = np.array([[0, -1, 3], [7, -20, 19]], np.int64)


def _body(kind: str, K: int = 64, zeros: bool = True, bits: int = 4, index: str = "int64", more: str = "") -> str:
    packed, blocks = (K * bits // 8, -(-(K // 16) * bits // 8)) if kind == "uint8" else (K, K // 16)
    given = f"w: {kind}[20,{packed}] = ... 1 s: float[20,{K // 16}] = ... 2 z: {kind}[20,{blocks}] = ... 3"
    return f"""graph(i: {index}[2,3]) -> (y: float[2,3,{K}]) {{ {given} y = com.microsoft.GatherBlockQuantized(w, i, s{", z" if zeros else ""})
        {{gather_axis = 0, quantize_axis = 1, block_size = 16, bits = {bits}{more}}} }}"""


@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize(("kind", "bits"), [("uint8", 2), ("uint8", 4), ("uint8", 8), ("int4", 4), ("uint4", 4)])
@pytest.mark.parametrize("isa", LEVELS)
def test_rows_are_the_references(kind: str, bits: int, zeros: bool, isa: str) -> None:
    """Of every width and type, an odd number of blocks too; an index out of range gives zeros."""
    for K in (64, 48):
        body = _body(kind, K, zeros, bits)
        feeds = {"i": np.where(_INDICES == 3, 1000, _INDICES)}
        for threads in (1, 2):
            found = cpu_session(body, isa=isa, threads=threads).run(None, feeds)[0]
            assert_same_bits(found, reference(body, feeds)[0])


def test_tables_that_are_fed() -> None:
    """Of sizes that only the run shows, of several rows for each entry; int32 indices; of none, all are out of range."""
    body = """graph(w: uint8[v,r,k], i: int32[n], s: float[v,r,b]) -> (y: float[n,r,j]) {
        y = com.microsoft.GatherBlockQuantized(w, i, s) {gather_axis = 0, quantize_axis = 2, block_size = 32, bits = 4} }"""
    generator = np.random.default_rng(0)
    feeds = {
        "w": generator.integers(0, 256, (6, 3, 24)).astype(np.uint8),
        "i": np.array([5, 0, -1], np.int32),
        "s": generator.uniform(0.1, 1, (6, 3, 2)).astype(np.float32),
    }
    session = cpu_session(body)
    assert_same_bits(session.run(None, feeds)[0], reference(body, feeds)[0])
    empty = {"w": feeds["w"][:0], "i": feeds["i"], "s": feeds["s"][:0]}
    assert_same_bits(session.run(None, empty)[0], np.zeros((3, 3, 48), np.float32))
    with pytest.raises(InvalidArgument, match=r"scales of shape \(6, 3, 1\), expected \(6, 3, 2\)"):
        session.run(None, {**feeds, "s": feeds["s"][..., :1]})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (_body("uint8", bits=8).replace("quantize_axis = 1", "quantize_axis = 0"), "blocks along axis 0"),
        (_body("uint8").replace("s: float[", "s: float16[").replace("y: float[", "y: float16["), "scales of type float16"),
        (_body("uint8", bits=8).replace("bits = 8", "bits = 1099511627776"), "numbers of 1099511627776 bits"),
        (
            _body("int4").replace("graph(", "graph(w: int4[20,64], ").replace("w: int4[20,64] = ... 1", ""),
            "that the model computes",
        ),
    ],
)
def test_declines(body: str, reason: str) -> None:
    """Other axes, scales of float16, unknown widths, and numbers of a byte each that the model computes."""
    assert [reason in found for found in declined(body)] == [True]
