"""Families of kernels of integers of 8 bits and less, one file each."""
