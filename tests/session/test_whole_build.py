"""The chain from a file to something that runs."""

from support.models import model

from sardonyx.formats.onnx import to_bytes
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source
from sardonyx.session.whole_build import build_whole


def test_a_model_is_built_stage_by_stage() -> None:
    """Its inputs, outputs and placements are those of the model."""
    source = Source(to_bytes(model("graph(x: float[2]) -> (y: float[2]) { y = Relu(x) }")))
    built = build_whole(source, read_settings(SessionOptions()), ProviderList.of([ReferenceProvider()]), None, None)
    assert [value.name for value in built.inputs] == ["x"]
    assert [argument.name for argument in built.declared] == ["y"]
    assert [place.op_type for place in built.placements] == ["Relu"]
