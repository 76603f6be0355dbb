"""Domains of replaced operators."""

from __future__ import annotations

import pytest

from sardonyx.ir.replaced import is_replaced, original_domain, replaced_domain


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml", "com.microsoft", "mine"])
def test_the_domain_comes_back(domain: str) -> None:
    """What a replaced operator's domain is made of is found again, and the domain itself is none of them."""
    assert original_domain(replaced_domain(domain)) == domain
    assert is_replaced(replaced_domain(domain))
    assert original_domain(domain) == domain
    assert not is_replaced(domain)
