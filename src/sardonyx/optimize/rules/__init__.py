"""Rewrite rules: small patterns, one subject a file."""
