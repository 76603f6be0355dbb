"""Names of ONNX Runtime's optimizations."""

import numpy as np
import pytest
from support.models import model

from sardonyx import InferenceSession, SessionOptions
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.optimize.names import ELSEWHERE, NAMES, own_names
from sardonyx.optimize.pipeline import known_names

RULES = """EliminateIdentity EliminateSlice UnsqueezeElimination EliminateDropout ExpandElimination CastElimination
CastChainElimination PreShapeNodeElimination NoopElimination DivMulFusion FuseReluClip GemmSumFusion GemmTransposeFusion
NotWhereFusion ConvAddFusion ConvMulFusion ConvBNFusion Pad_Fusion MatMul_BatchNormalization_Fusion LabelEncoderFusion
ClipQuantFusion ReluQuantFusion""".split()
TRANSFORMERS = """FreeDimensionOverrideTransformer Level1_RuleBasedTransformer DoubleQDQPairsRemover ConstantSharing
CommonSubexpressionElimination ConstantFolding MatMulAddFusion ReshapeFusion SliceConcatToSpaceToDepthFusion GeluFusion
LayerNormFusion QDQPropagationTransformer WeightBiasQuantization EnsureUniqueDQForNodeUnit WhereDummyDq DQMatMulNBitsFusion
TransposeOptimizer Level2_RuleBasedTransformer QDQS8ToU8Transformer QDQSelectorActionTransformer GemmActivationFusion
MatMulIntegerToFloatFusion DynamicQuantizeMatMulFusion ConvActivationFusion SimplifiedLayerNormFusion AttentionFusion
EmbedLayerNormFusion GatherSliceToSplitFusion GatherToSliceFusion MatmulTransposeFusion BiasGeluFusion GroupQueryAttentionFusion
SkipLayerNormFusion BiasSkipLayerNormFusion FastGeluFusion QuickGeluFusion GeluApproximation BiasSoftmaxFusion BiasDropoutFusion
MatMulScaleFusion MatMulActivationFusion Avx2WeightS8ToU8Transformer MatMulNBitsFusion GroupQueryAttentionPreNormFusion
MatMulNBitsMlpFusion MatMulNBitsQkvFusion QDQFinalCleanupTransformer NchwcTransformer NhwcTransformer ConvAddActivationFusion
InsertCastTransformer FuseFp16InitializerToFp32NodeTransformer MemcpyTransformer ConcatSliceElimination PropagateCastOps
IdenticalChildrenConsolidation IsInfReduceSumFusion STFTDecomposition UpstreamGather UpstreamReshape""".split()


@pytest.mark.parametrize("name", [*RULES, *TRANSFORMERS])
def test_every_name_is_understood(name):
    """It stands for something here, or there is a reason why there is nothing to leave out."""
    assert (name in NAMES) != (name in ELSEWHERE)


def test_names_stand_for_what_there_is():
    """No name points to a rule that is called otherwise."""
    assert {own for names in NAMES.values() for own in names} <= set(known_names())


def test_translation():
    """Names of ONNX Runtime's, of ours, of what is elsewhere, and unknown ones."""
    names = own_names(["ConvBNFusion", "fuse_gelu", "MemcpyTransformer", "no_such"])
    assert names == {"fuse_conv_batchnorm", "fuse_gelu", "no_such"}
    with pytest.raises(InvalidArgument, match="named in a list"):
        own_names("ConvBNFusion")


def test_dimensions_may_be_left_as_they_are():
    """Overrides of a session are no optimization that it names, but ONNX Runtime has a name for them."""
    options = SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    body = to_bytes(model("graph(x: float[n]) -> (y: float[n]) { y = Neg(x) }"))
    shapes = [
        InferenceSession(body, options, disabled_optimizers=names).get_inputs()[0].shape
        for names in ([], ["FreeDimensionOverrideTransformer"])
    ]
    assert shapes == [[2], ["n"]]


BODY = to_bytes(model("graph(x: float[2]) -> (y: float[2]) { a = Identity(x) b = Relu(a) y = Identity(b) }"))


@pytest.mark.parametrize("name", ["EliminateIdentity", "eliminate_identities"])
def test_of_a_session(name):
    """By keyword and by config entry; the result is the same."""
    options = SessionOptions()
    options.add_session_config_entry("optimization.disable_specified_optimizers", f"{name};MemcpyTransformer")
    for session in (InferenceSession(BODY, options), InferenceSession(BODY, disabled_optimizers=[name])):
        assert len(session.explain()) == 3
        np.testing.assert_array_equal(session.run(None, {"x": np.array([-1, 2], np.float32)})[0], [0, 2])
    assert len(InferenceSession(BODY).explain()) == 1
