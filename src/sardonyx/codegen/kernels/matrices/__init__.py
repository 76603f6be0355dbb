"""Kernels of whole matrices, one file each."""
