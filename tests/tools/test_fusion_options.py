"""Flags of fusions."""

from __future__ import annotations

import argparse

from sardonyx.optimize.names import own_names
from sardonyx.optimize.pipeline import known_items
from sardonyx.tools.fusion_options import AttentionMaskFormat, AttentionOpType, FusionOptions


def test_all_fusions_are_made_unless_a_flag_is_off() -> None:
    """A flag names rules that there are."""
    options = FusionOptions("bert")
    assert options.disabled_rules == frozenset()
    for flag in [name for name in vars(options) if name.startswith("enable_")]:
        setattr(options, flag, False)
    known = {item.name for item in known_items()}
    assert own_names(options.disabled_rules) <= known
    assert "fuse_attention" in options.disabled_rules


def test_models_of_some_types_keep_their_embedding() -> None:
    """As in onnxruntime."""
    assert "EmbedLayerNormFusion" in FusionOptions("clip").disabled_rules


def test_the_command_line_switches_flags() -> None:
    """By the names that onnxruntime's has."""
    parser = argparse.ArgumentParser()
    FusionOptions.add_arguments(parser)
    options = FusionOptions.parse(parser.parse_args(["--disable_gelu", "--enable_gelu_approximation"]))
    assert (options.enable_gelu, options.enable_attention, options.enable_gelu_approximation) == (False, True, True)


def test_masks_and_operators_of_attention_are_kept() -> None:
    """Under onnxruntime's names and numbers, without effect on the rules."""
    options = FusionOptions("bert")
    assert (options.attention_mask_format, FusionOptions("gpt2").attention_mask_format) == (0, 2)
    options.use_raw_attention_mask()
    assert options.attention_mask_format == AttentionMaskFormat.AttentionMask
    options.use_raw_attention_mask(False)
    assert options.attention_mask_format == AttentionMaskFormat.MaskIndexEnd
    options.disable_attention_mask()
    assert options.attention_mask_format == AttentionMaskFormat.NoMask
    options.set_attention_op_type(AttentionOpType.MultiHeadAttention)
    assert str(options.attention_op_type) == "MultiHeadAttention"
    assert not options.disabled_rules
