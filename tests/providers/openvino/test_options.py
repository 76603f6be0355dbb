"""The provider options."""

from __future__ import annotations

from pathlib import Path

import pytest

from sardonyx import errors
from sardonyx.providers.openvino.options import settings_of


def test_floats_are_computed_as_floats_by_default() -> None:
    """OpenVINO's own default would be bfloat16 where the processor has it."""
    assert settings_of({}) == ("CPU", {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"})


def test_options_are_properties_of_openvino() -> None:
    """Names are onnxruntime's, properties OpenVINO's."""
    given = {"device_type": "GPU.1", "precision": "fp16", "num_of_threads": "3", "num_streams": "2", "cache_dir": "c"}
    assert settings_of(given) == (
        "GPU.1",
        {
            "INFERENCE_PRECISION_HINT": "f16",
            "INFERENCE_NUM_THREADS": 3,
            "NUM_STREAMS": 2,
            "CACHE_DIR": "c",
        },
    )


def test_a_config_is_text_or_a_file(tmp_path: Path) -> None:
    """Of all devices in it the session's own counts, and it has the last word."""
    text = '{"CPU": {"INFERENCE_PRECISION_HINT": "bf16", "AFFINITY": "NONE"}, "GPU": {"X": 1}}'
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    for given in (text, str(path)):
        _, found = settings_of({"load_config": given})
        assert found == {"INFERENCE_PRECISION_HINT": "bf16", "EXECUTION_MODE_HINT": "ACCURACY", "AFFINITY": "NONE"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": "1"}, r"no options \['speed'\]; it has device_type, precision"),
        ({"precision": "FP8"}, "precision is one of ACCURACY, BF16, FP16, FP32, got 'FP8'"),
        ({"num_of_threads": "0"}, "num_of_threads is a number of at least 1, got '0'"),
        ({"load_config": "{"}, "must be JSON text or the path of a JSON file"),
        ({"load_config": '{"CPU": 1}'}, "must hold {device: {property: value}}"),
    ],
)
def test_wrong_options_are_errors(options: dict[str, str], message: str) -> None:
    """The message says what would be right."""
    with pytest.raises(errors.InvalidArgument, match=message):
        settings_of(options)


def test_a_config_that_is_not_there_is_no_such_file() -> None:
    """The path is named."""
    with pytest.raises(errors.NoSuchFile, match="nowhere.json"):
        settings_of({"load_config": "nowhere.json"})
