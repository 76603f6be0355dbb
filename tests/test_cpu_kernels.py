"""What a file outside the package needs to write a kernel of the CPU provider."""

from __future__ import annotations

from sardonyx import cpu_kernels


def test_every_name_of_the_module_is_there() -> None:
    """And none is there twice."""
    assert sorted(set(cpu_kernels.__all__), key=cpu_kernels.__all__.index) == cpu_kernels.__all__
    assert [name for name in cpu_kernels.__all__ if getattr(cpu_kernels, name, None) is None] == []
