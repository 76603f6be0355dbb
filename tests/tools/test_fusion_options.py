"""Flags of fusions."""

from __future__ import annotations

import argparse

from sardonyx.optimize.names import own_names
from sardonyx.optimize.pipeline import known_items
from sardonyx.tools.fusion_options import FusionOptions


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
