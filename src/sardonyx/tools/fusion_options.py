"""Which fusions the optimizer makes, with the names of `onnxruntime.transformers.fusion_options`."""

from __future__ import annotations

import enum
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

__all__ = ["AttentionMaskFormat", "AttentionOpType", "FusionOptions"]

_RULES: Mapping[str, tuple[str, ...]] = {
    "enable_gelu": ("GeluFusion", "BiasGeluFusion"),
    "enable_layer_norm": ("LayerNormFusion", "SimplifiedLayerNormFusion", "SkipLayerNormFusion", "EmbedLayerNormFusion"),
    "enable_attention": ("fuse_attention", "fuse_attention_cache", "fuse_attention_groups", "fuse_attention_projections"),
    "enable_rotary_embeddings": ("fuse_rotary_embedding", "fuse_partial_rotary_embedding"),
    "enable_skip_layer_norm": ("SkipLayerNormFusion",),
    "enable_embed_layer_norm": ("EmbedLayerNormFusion",),
    "enable_bias_gelu": ("BiasGeluFusion",),
    "enable_group_norm": ("fuse_group_norm",),
}
"""Flag -> the rules, by our names or ONNX Runtime's, that do not run where it is off."""
_DIFFUSION = ("unet", "vae", "clip")
"""The types that have flags of their own."""
_DIFFUSION_FLAGS = (
    *("enable_nhwc_conv", "enable_skip_group_norm", "enable_bias_splitgelu"),
    *("enable_packed_qkv", "enable_packed_kv", "enable_bias_add"),
)
_FLAGS = (*_RULES, "enable_bias_skip_layer_norm", "enable_shape_inference", *_DIFFUSION_FLAGS)
_ARGUMENTS = {f"disable_{flag.removeprefix('enable_')}": flag for flag in _FLAGS}


class AttentionMaskFormat:
    """onnxruntime's numbers for the masks that fused attentions read."""

    MaskIndexEnd = 0
    MaskIndexEndAndStart = 1
    AttentionMask = 2
    NoMask = 3


class AttentionOpType(enum.StrEnum):
    """The operators that attention may become."""

    Attention = "Attention"
    MultiHeadAttention = "MultiHeadAttention"
    GroupQueryAttention = "GroupQueryAttention"
    PagedAttention = "PagedAttention"


_MASKS = {
    "bert": AttentionMaskFormat.MaskIndexEnd,
    "vit": AttentionMaskFormat.NoMask,
    "qwen3": AttentionMaskFormat.NoMask,
}
"""Type -> the mask of its attentions."""


class FusionOptions:
    """Flags, each True unless set otherwise; further attributes that scripts set are kept, without effect."""

    def __init__(self, model_type: str = "bert") -> None:
        """Switch on what fits models of a type: all, but for the embedding's fusion in `clip` and `qwen3`.

        Those of diffusion models (`unet`, `vae`, `clip`) have flags beyond these, which have no effect: `enable_nhwc_conv`,
        `enable_skip_group_norm`, `enable_bias_splitgelu`, `enable_packed_qkv`, `enable_packed_kv` and `enable_bias_add`.

        Args:
            model_type: a type of `onnxruntime.transformers`, such as "bert".
        """
        self.model_type = model_type
        self.enable_gelu = True
        """Gelu of its parts."""
        self.enable_layer_norm = True
        """LayerNormalization and SimplifiedLayerNormalization of their parts, and what is made of these."""
        self.enable_attention = True
        """Attention and MultiHeadAttention of their parts."""
        self.enable_rotary_embeddings = True
        """RotaryEmbedding of its parts."""
        self.enable_skip_layer_norm = True
        """SkipLayerNormalization of an addition and a normalization."""
        self.enable_bias_skip_layer_norm = True
        """Accepted: the bias goes into SkipLayerNormalization together with it."""
        self.enable_embed_layer_norm = model_type not in ("clip", "qwen3")
        """EmbedLayerNormalization of look-ups and a normalization."""
        self.enable_bias_gelu = True
        """BiasGelu of an addition and a Gelu."""
        self.enable_group_norm = True
        """GroupNorm of its parts."""
        self.enable_gelu_approximation = False
        """FastGelu in the place of Gelu, which changes results."""
        self.enable_shape_inference = True
        """Accepted: shapes are always inferred."""
        self.enable_qordered_matmul = True
        """Accepted: products of ordered integers are left as they are."""
        self.enable_gemm_fast_gelu = False
        """Accepted: FastGelu stays a node of its own, which the CPU provider computes in the product's store."""
        self.use_multi_head_attention = False
        """Accepted: the graph decides which operator attention becomes."""
        self.disable_multi_head_attention_bias = False
        """Accepted: as `use_multi_head_attention`."""
        self.group_norm_channels_last = True
        """Accepted: channels stay where they are."""
        self.attention_mask_format = _MASKS.get(model_type, AttentionMaskFormat.AttentionMask)
        """Accepted: masks stay what they are, so that results do."""
        self.attention_op_type: AttentionOpType | None = None
        """Accepted: as `use_multi_head_attention`."""
        if model_type in _DIFFUSION:
            for flag in _DIFFUSION_FLAGS:
                setattr(self, flag, True)

    def use_raw_attention_mask(self, use_raw_mask: bool = True) -> None:
        """Set `attention_mask_format` to a mask of all positions, or else to lengths."""
        self.attention_mask_format = AttentionMaskFormat.AttentionMask if use_raw_mask else AttentionMaskFormat.MaskIndexEnd

    def disable_attention_mask(self) -> None:
        """Set `attention_mask_format` to none; masks of the model stay nevertheless."""
        self.attention_mask_format = AttentionMaskFormat.NoMask

    def set_attention_op_type(self, attn_op_type: AttentionOpType) -> None:
        """Set `attention_op_type`."""
        self.attention_op_type = attn_op_type

    @property
    def disabled_rules(self) -> frozenset[str]:
        """The rules that do not run, by our names or ONNX Runtime's."""
        return frozenset(name for flag, names in _RULES.items() if not getattr(self, flag) for name in names)

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        """Add the options of the command line."""
        for argument, flag in _ARGUMENTS.items():
            parser.add_argument(f"--{argument}", action="store_true", help=f"without {flag.removeprefix('enable_')}")
        parser.add_argument("--enable_gelu_approximation", action="store_true", help="FastGelu in the place of Gelu")
        parser.add_argument("--enable_gemm_fast_gelu", action="store_true", help="accepted")
        parser.add_argument("--use_mask_index", action="store_true", help="accepted: masks stay what they are")
        parser.add_argument("--use_raw_attention_mask", action="store_true", help="accepted: masks stay what they are")
        parser.add_argument("--no_attention_mask", action="store_true", help="accepted: masks stay what they are")
        parser.add_argument("--use_multi_head_attention", action="store_true", help="accepted: the graph decides")
        parser.add_argument("--use_group_norm_channels_first", action="store_true", help="accepted: channels stay where they are")

    @staticmethod
    def parse(args: Namespace) -> FusionOptions:
        """Return the options that a command line says; what it does not mention is as for models of its type."""
        options = FusionOptions(getattr(args, "model_type", "bert"))
        for argument, flag in _ARGUMENTS.items():
            if getattr(args, argument, False) and hasattr(options, flag):
                setattr(options, flag, False)
        options.enable_gelu_approximation = bool(getattr(args, "enable_gelu_approximation", False))
        options.enable_gemm_fast_gelu = bool(getattr(args, "enable_gemm_fast_gelu", False))
        options.use_multi_head_attention = bool(getattr(args, "use_multi_head_attention", False))
        if options.model_type in _DIFFUSION and getattr(args, "use_group_norm_channels_first", False):
            options.group_norm_channels_last = False
        if getattr(args, "use_mask_index", False):
            options.use_raw_attention_mask(False)
        if getattr(args, "use_raw_attention_mask", False):
            options.use_raw_attention_mask()
        if getattr(args, "no_attention_mask", False):
            options.disable_attention_mask()
        return options
