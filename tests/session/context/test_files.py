"""Where compiled partitions go."""

from __future__ import annotations

import base64
import gc
from pathlib import Path

import numpy as np
import pytest
from support.models import graph

from sardonyx import errors
from sardonyx.formats.program_file import digest_of, read_program, write_program
from sardonyx.session.context.data import OrtEpContextData
from sardonyx.session.context.files import Content, Placed, ProgramsFile, Sharing, hand_over, place_beside, place_inside

_WEIGHT = np.arange(600, dtype=np.float32)
_FOREIGN = Content("part/1", memoryview(b"in a form of its own"))


def _content(factor: int = 1, name: str = "part_0") -> Content:
    held = graph("graph(x: float[n]) -> (y: float[n]) { y = Relu(x) }")
    return Content(name, memoryview(write_program({}, held, [_WEIGHT * factor], objects={"one": b"code"})))


def _array(content: bytes, placed: Placed) -> list[float]:
    view = memoryview(content)[: placed.attributes["max_size"]]
    assert digest_of(view) == placed.digest
    return list(read_program(view).arrays[0])


def test_nodes_hold_programs_in_base64() -> None:
    """Each its own, and what a provider writes in a form of its own as it is."""
    own, foreign = place_inside([_content(), _FOREIGN], {})
    assert (own.attributes["embed_mode"], foreign.attributes["embed_mode"]) == (1, 1)
    assert _array(base64.b64decode(own.attributes["ep_cache_context"]), own) == list(_WEIGHT)
    assert base64.b64decode(foreign.attributes["ep_cache_context"]) == bytes(_FOREIGN.data)


def test_programs_of_a_model_lie_in_one_file(tmp_path: Path) -> None:
    """Those of another form have files of their own."""
    path = tmp_path / "model_ctx.bin"
    one, two, foreign = place_beside([_content(), _content(2), _FOREIGN], ProgramsFile(path), {})
    assert sorted(item.name for item in tmp_path.iterdir()) == ["model_ctx.bin", "model_ctx_part_1.bin"]
    assert _array(path.read_bytes(), one) == list(_WEIGHT)
    assert _array(path.read_bytes(), two) == list(_WEIGHT * 2)
    assert (tmp_path / foreign.attributes["ep_cache_context"]).read_bytes() == bytes(_FOREIGN.data)


def test_a_file_that_is_mapped_is_not_written_into(tmp_path: Path) -> None:
    """A new one takes its place: who has mapped the old one keeps it."""
    path = tmp_path / "model_ctx.bin"
    place_beside([_content()], ProgramsFile(path), {})
    before = path.read_bytes()
    with path.open("rb") as old:
        place_beside([_content(2)], ProgramsFile(path), {})
        assert old.read() == before
    assert path.read_bytes() != before


def test_a_file_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    """It may be a model's weights."""
    path = tmp_path / "model_ctx.bin"
    for content in (b"", b"weights", bytes(1000)):
        path.write_bytes(content)
        with pytest.raises(errors.Fail, match="model_ctx.bin' exists, and holds no programs; remove it"):
            place_beside([_content()], ProgramsFile(path), {})
        assert path.read_bytes() == content


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """With its path, and nothing is left behind."""
    with pytest.raises(errors.Fail, match="programs cannot be written into .*nowhere.*model_ctx.bin"):
        place_beside([_content()], ProgramsFile(tmp_path / "nowhere" / "model_ctx.bin"), {})
    assert not list(tmp_path.iterdir())


def test_a_callback_gets_what_would_be_files() -> None:
    """Under the names that nodes state."""
    found: dict[str, bytes] = {}
    placed = hand_over([_content(), _FOREIGN], "a.bin", lambda name, data: found.update({name: data.read()}), {})
    assert [item.attributes["ep_cache_context"] for item in placed] == ["a.bin", "a_part_1.bin"]
    assert _array(found["a.bin"], placed[0]) == list(_WEIGHT)
    assert found["a_part_1.bin"] == bytes(_FOREIGN.data)


def test_a_callback_may_leave_its_bytes_in_a_cycle() -> None:
    """The collector frees them, as it frees the frames of a callback that fails."""

    def keep(name: str, data: OrtEpContextData) -> None:
        cycle: list[object] = [data]
        cycle.append(cycle)

    hand_over([_content()], "x.bin", keep, {})
    assert gc.collect() > 0


def test_sessions_share_a_file_until_one_stops(tmp_path: Path) -> None:
    """Equal weights are there once."""
    sharing = Sharing()
    with sharing.file_for(tmp_path / "a.bin", stops=False) as file:
        (one,) = place_beside([_content()], file, {})
    size = (tmp_path / "a.bin").stat().st_size
    with sharing.file_for(tmp_path / "b.bin", stops=True) as file:
        (two,) = place_beside([_content(name="part_7")], file, {})
    assert one.attributes["ep_cache_context"] == two.attributes["ep_cache_context"] == "a.bin"
    assert (tmp_path / "a.bin").stat().st_size < size + _WEIGHT.nbytes
    assert _array((tmp_path / "a.bin").read_bytes(), two) == list(_WEIGHT)
    with sharing.file_for(tmp_path / "c.bin", stops=True) as file:
        assert file.path.name == "c.bin"


def test_models_that_share_lie_in_one_folder(tmp_path: Path) -> None:
    """Files are looked for beside the model, so each folder has a file of its own."""
    sharing = Sharing()
    for folder in (tmp_path / "one", tmp_path / "other"):
        folder.mkdir()
        for name in ("a.bin", "b.bin"):
            with sharing.file_for(folder / name, stops=False) as file:
                assert file.path == folder / "a.bin"


@pytest.mark.parametrize("state", ["is gone", "has 3 bytes"])
def test_a_shared_file_that_changed_is_an_error(state: str, tmp_path: Path) -> None:
    """What is in it is not known; the next session begins a new one."""
    sharing, path = Sharing(), tmp_path / "a.bin"
    with sharing.file_for(path, stops=False) as file:
        place_beside([_content()], file, {})
    path.unlink()
    if state != "is gone":
        path.write_bytes(b"abc")
    with (
        pytest.raises(errors.Fail, match=f"and {state} now; compile all its models again"),
        sharing.file_for(tmp_path / "b.bin", stops=False) as file,
    ):
        place_beside([_content(3)], file, {})
    with sharing.file_for(tmp_path / "c.bin", stops=False) as file:
        assert file.path.name == "c.bin"
