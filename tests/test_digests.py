"""SHA-256 and BLAKE2b: the same digests with and without OpenSSL, which small ones do not load."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from sardonyx import digests
from sardonyx.digests import blake2b, sha256


@pytest.mark.parametrize("count", [0, 1, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
@pytest.mark.parametrize("further", [0, 1 << 20])
def test_digests_are_those_of_hashlib(count: int, further: int) -> None:
    """Of bytes and of views, at once and by parts."""
    data = np.random.default_rng(count).bytes(count)
    assert sha256(data, more_bytes=further).hexdigest() == hashlib.sha256(data).hexdigest()
    digest = sha256(memoryview(data)[: count // 2], more_bytes=further)
    digest.update(data[count // 2 :])
    assert digest.digest() == hashlib.sha256(data).digest()


@pytest.mark.parametrize("has_own", [True, False])
def test_blake2b_is_that_of_hashlib(has_own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In 32 bytes, also in a Python that was built without a module of its own for it."""
    monkeypatch.setitem(sys.modules, "_blake2", sys.modules["_blake2"] if has_own else None)  # type: ignore[arg-type]  # importing None is an ImportError
    digests._own_blake2b.cache_clear()
    digest = blake2b(b"some bytes")
    digest.update(b" and more")
    digests._own_blake2b.cache_clear()
    assert digest.digest() == hashlib.blake2b(b"some bytes and more", digest_size=32).digest()


def test_a_view_of_wide_elements_counts_its_bytes() -> None:
    """Not its elements."""
    view = memoryview(np.arange(1 << 18))
    assert sha256(view).hexdigest() == hashlib.sha256(view).hexdigest()


def test_a_session_does_not_load_openssl() -> None:
    """Which takes some MiB of memory: neither the first one of a model nor one whose decisions are kept."""
    code = """
import sys
import numpy as np
import sardonyx
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

model = to_bytes(parse_model("ir_version 8\\nopset 17\\ngraph g(x: float[2]) -> (y: float[2]) { y = Relu(x) }"))
for _ in range(2):
    sardonyx.InferenceSession(model).run(None, {"x": np.ones(2, np.float32)})
assert "_hashlib" not in sys.modules, [name for name in sys.modules if "hash" in name]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
