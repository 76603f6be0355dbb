"""Families of kernels of mixtures of experts, one file each."""
