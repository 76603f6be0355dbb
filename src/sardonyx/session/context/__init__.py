"""Compiled models: EPContext nodes, their files and their seal."""
