"""Families of kernels of whole matrices, one file each."""
