"""Kernels on numbers of 8 bits and less."""
