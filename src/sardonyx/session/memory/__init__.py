"""Limits of memory and statistics about it."""
