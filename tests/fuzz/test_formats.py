"""Changed files of the formats beside ONNX are models or typed errors."""

import pytest
from fuzz.draw import Draw
from fuzz.formats import damaged, judge, seeds

_FILES = seeds()


@pytest.mark.parametrize("kind", list(_FILES))
def test_files_load_as_they_are(kind: str) -> None:
    """So changes of them are near to what loads."""
    assert judge(_FILES[kind], kind, runs=True) in ("ran", "InvalidArgument")


@pytest.mark.parametrize("kind", list(_FILES))
@pytest.mark.parametrize("seed", range(40))
def test_a_changed_file_is_a_model_or_an_error(kind: str, seed: int) -> None:
    """With a message."""
    judge(damaged(Draw.seeded(seed), _FILES[kind]), kind, runs=False)
