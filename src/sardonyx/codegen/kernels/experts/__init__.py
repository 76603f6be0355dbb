"""Kernels of mixtures of experts, one file each."""
