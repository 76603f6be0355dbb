"""The stages from a file to an executor; `session/build.py` lists them."""
