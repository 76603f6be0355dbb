"""RotaryEmbedding of models: both forms of x, both kinds of pairs, partial rotation."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_close, cpu_session, declined, reference, steps_of

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument


def _feeds(B: int, S: int, H: int, D: int, half: int, *, packed: bool) -> dict[str, Array]:
    rng = np.random.default_rng(B + S)
    angles = rng.uniform(-3, 3, (B, S, half))
    x = rng.standard_normal((B, S, H * D) if packed else (B, H, S, D))
    return {"x": x.astype(np.float32), "c": np.cos(angles).astype(np.float32), "s": np.sin(angles).astype(np.float32)}


def _text(half: int, *, packed: bool, attributes: str) -> str:
    x = "b, s, 96" if packed else "b, 4, s, 24"
    more = f"num_heads = 4, {attributes}" if packed else attributes
    return f"""graph(x: float[{x}], c: float[b, s, {half}], s: float[b, s, {half}]) -> (y: float[{x}]) {{
        y = RotaryEmbedding(x, c, s) {{{more}}} }}"""


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("half", "attributes"),
    [
        (12, "interleaved = 0"),
        (12, "interleaved = 1"),
        (5, "rotary_embedding_dim = 10"),
        (8, "rotary_embedding_dim = 16, interleaved = 1"),
    ],
)
@pytest.mark.parametrize("isa", LEVELS)
def test_every_form(isa: str, half: int, attributes: str, packed: bool) -> None:
    """Of one session, for several sizes, as the reference provider has it."""
    body = _text(half, packed=packed, attributes=attributes)
    session = cpu_session(body, opset=23, isa=isa)
    for B, S in ((1, 1), (2, 7), (3, 16), (1, 0)):
        feeds = _feeds(B, S, 4, 24, half, packed=packed)
        assert_close(session.run(None, feeds)[0], reference(body, feeds, opset=23)[0], 1e-6)


def test_threads_share_the_work() -> None:
    """The same elements on two threads."""
    body = _text(12, packed=False, attributes="interleaved = 0")
    feeds = _feeds(4, 300, 4, 24, 12, packed=False)
    one, two = (cpu_session(body, opset=23, threads=threads).run(None, feeds)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_heads_are_read_where_they_lie() -> None:
    """A transpose before is not done."""
    body = """graph(x: float[b, s, 4, 24], c: float[b, s, 12], s: float[b, s, 12]) -> (y: float[b, 4, s, 24]) {
        t = Transpose(x) {perm = [0, 2, 1, 3]} y = RotaryEmbedding(t, c, s) }"""
    assert steps_of(body, opset=23) == ["RotaryEmbedding"]
    feeds = _feeds(2, 5, 4, 24, 12, packed=False)
    feeds["x"] = np.ascontiguousarray(feeds["x"].transpose(0, 2, 1, 3))
    session = cpu_session(body, opset=23)
    assert_close(session.run(None, feeds)[0], reference(body, feeds, opset=23)[0], 1e-6)


def test_angles_for_other_sizes_are_refused() -> None:
    """Angles of another number of batches or positions."""
    session = cpu_session(_text(12, packed=False, attributes="interleaved = 0").replace("c: float[b, s", "c: float[d, t"), opset=23)
    feeds = _feeds(2, 5, 4, 24, 12, packed=False)
    feeds["c"] = feeds["c"][:, :4]
    with pytest.raises(InvalidArgument, match="angles of shape"):
        session.run(None, feeds)


def test_left_to_others() -> None:
    """Heads of unknown size."""
    body = "graph(x: float[1, 4, s, d], c: float[1, s, 4], s: float[1, s, 4]) -> (y: float[1, 4, s, d]) { y = RotaryEmbedding(x, c, s) }"
    assert "not known" in declined(body, opset=23)[0]
