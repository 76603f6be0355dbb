"""Folders that hold a model in several variants, one of which suits the providers of a session."""
