"""The rules that make quantized operators; that they do is in test_quantize.py."""

from sardonyx.quantization.operators import OPERATOR_RULES


def test_no_rule_stands_twice() -> None:
    """Names are unique."""
    assert len({rule.name for rule in OPERATOR_RULES}) == len(OPERATOR_RULES)
