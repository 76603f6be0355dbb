"""FarmHash's fingerprints."""

import numpy as np
import pytest

from sardonyx.providers.reference.algorithms.farm_hash import fingerprint64


@pytest.mark.parametrize("length", [0, 1, 3, 4, 7, 8, 16, 17, 32, 33, 64, 65, 128, 129, 300])
def test_each_key_is_hashed_alone(length: int) -> None:
    """Whatever others there are; equal keys have equal fingerprints, others have others."""
    keys = np.random.default_rng(length).integers(0, 256, (5, length)).astype(np.uint8)
    keys[4] = keys[0]
    found = fingerprint64(keys)
    assert [int(fingerprint64(keys[place : place + 1])[0]) for place in range(5)] == found.tolist()
    assert len(set(found.tolist())) == (4 if length > 1 else len({key.tobytes() for key in keys}))


def test_no_bytes() -> None:
    """The constant that the algorithm gives."""
    assert int(fingerprint64(np.zeros((1, 0), np.uint8))[0]) == 0x9AE16A3B2F90404F
