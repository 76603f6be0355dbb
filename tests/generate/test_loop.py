"""Tests of the loop over steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.decoders import write_decoder

from sardonyx.generate.loading import load
from sardonyx.generate.loop import continue_rows
from sardonyx.generate.row import Row
from sardonyx.generate.settings import Settings


@pytest.mark.parametrize("kind", ["growing", "shared", "none"])
def test_a_row_that_ends_early_leaves_the_batch(tmp_path: Path, kind: str) -> None:
    """The others go on with the tokens that they have alone."""
    decoder = load(write_decoder(tmp_path / "model.onnx", kind)).decoder
    prompts, most = [[1, 2, 3], [5, 6], [11]], [3, 9, 6]
    alone = []
    for prompt in prompts:
        row = Row(prompt, Settings(max_new_tokens=9))
        list(continue_rows(decoder, *decoder.start([prompt]), [row]))
        alone.append(row.new)
    rows = [
        Row(prompt, Settings(max_new_tokens=count), place=place)
        for place, (prompt, count) in enumerate(zip(prompts, most, strict=True))
    ]
    steps = list(continue_rows(decoder, *decoder.start(prompts), rows))
    assert [row.new for row in rows] == [ids[:count] for ids, count in zip(alone, most, strict=True)]
    assert [len(step) for step in steps] == [3, 3, 3, 2, 2, 2, 1, 1, 1]
