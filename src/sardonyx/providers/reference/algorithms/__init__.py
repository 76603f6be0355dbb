"""Algorithms that reference kernels share; no kernel is registered here."""
